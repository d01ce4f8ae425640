"""Text in columns: CSV with any delimiter, and the pipe tables of markdown."""

from __future__ import annotations

import csv
import io
import re
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kdyno.measure.readers.delimited import DELIMITERS, LINE_END, SAMPLE, agreement
from kdyno.measure.readers.errors import (
    BadValue,
    BeyondLimits,
    ColumnTwice,
    HugeField,
    NoHeader,
    NothingButComments,
    RaggedRow,
    TooLarge,
)
from kdyno.measure.readers.headings import name_statistics
from kdyno.measure.readers.numerals import Decimal, Mark, decimal_of_columns
from kdyno.measure.readers.source import LOOKED_AT, FileSource

LONGEST_FIELD = 1000
"""Characters; a longer field is an unclosed quote or not a name."""
MOST_COLUMNS = 1000
MOST_ROWS = 10_000
"""Rows of a table that is held as text."""
LEAST, LARGEST = 1e-60, 1e60
"""The limits of values and standard deviations: statistics are made of fourth powers."""
LIMITS = f"{LEAST:g} to {LARGEST:g}".replace("+", "")
MOST_NAMES = 20
"""Columns for which names are made up."""
MOST_DIGITS = 9
"""Digits of a whole number."""
DOUBLE_DIGITS = 15
"""Digits of a number that was written as precisely as it was known."""
_WRITTEN = re.compile(r"[-+]?(?:[0-9]{1,100}(?:\.[0-9]{0,100})?|\.[0-9]{1,100})(?:[eE][-+]?[0-9]{1,3})?")
_SEPARATOR_LINE = re.compile(r"sep=(?P<delimiter>[,;\t|])")
"""The first line of a file that tells Excel its delimiter."""


@dataclass(frozen=True)
class SheetRow:
    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class SheetGrid:
    """One table, small enough to be held as text."""

    header: tuple[str, ...]
    rows: tuple[SheetRow, ...]
    line: int = 1
    """The line of the header."""
    decimal: Mark = "."
    """The decimal mark, if no number shows it."""


@dataclass(frozen=True)
class Shape:
    """The form of a delimited file."""

    delimiter: str
    header: tuple[str, ...]
    above: int
    """Lines above the header: comments and blank lines."""
    decimal: Decimal
    """The decimal mark."""
    first: tuple[tuple[str, ...], ...]
    """The first rows, for guessing."""


def whole_number(text: str) -> int | None:
    """Return a text as a number above 0; None if it is not one, or has more digits than a size can have."""
    return (int(text) or None) if text.isdecimal() and len(text) <= MOST_DIGITS else None


def is_written_number(text: str) -> bool:
    """Return whether a text is a number as people write them, whether or not it can be judged."""
    return bool(_WRITTEN.fullmatch(text))


def is_printed_number(text: str) -> bool:
    """Return whether a text is a number that can be judged, or 0."""
    return is_written_number(text) and not is_beyond(text)


def is_beyond(number: str) -> bool:
    """Return whether a number as it was written is too large or too small to be judged; False for 0."""
    size = abs(float(number))
    is_zero = not number.lower().partition("e")[0].strip("+-.0")
    return not (is_zero or LEAST < size < LARGEST)


def refusal(file: str, line: int, column: str, text: str, number: str = "") -> BadValue | BeyondLimits:
    """Return the error for a cell with this text that is not a measurement; `number` is the one in it, if there is
    one.
    """
    if is_written_number(number) and is_beyond(number) and float(number) >= 0:
        return BeyondLimits(file=file, line=line, column=column, value=text, limits=LIMITS)
    return BadValue(file=file, line=line, column=column, value=text)


_ROW_START = re.compile(r"\d\.\d|[:=][ \t]*\d")
"""In a cell that begins a row: the version of a kernel, or a name with its first value."""


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def shape_of(source: FileSource) -> Shape:
    """Find out delimiter and header.

    Raise NothingButComments, HugeField, TooLarge, ColumnTwice, NoHeader, and the errors of Source.require_text.
    """
    source.require_text()
    source = source.delimited
    lines = LINE_END.split(source.head)
    whole = len(lines) - (len(source.data) > LOOKED_AT)  # the last one may be cut
    told = _SEPARATOR_LINE.fullmatch(lines[0].strip())
    above = next((index for index, line in enumerate(lines) if _is_content(line, index)), None)
    if above is None:
        raise NothingButComments(file=source.shown, size=min(LOOKED_AT, len(source.data)))
    if above >= whole:
        raise TooLarge(file=source.shown, most=LOOKED_AT, what="bytes in its first line")
    sample = lines[above : min(above + SAMPLE, whole)]
    delimiter = told["delimiter"] if told else max(DELIMITERS, key=lambda candidate: agreement(sample, candidate))
    rows = [tuple(cell.strip() for cell in row) for row in csv.reader(sample, delimiter=delimiter) if row]
    header, first = _fill_header(name_statistics(rows[0])), tuple(rows[1:])
    require_small(source, above + 1, header)
    require_different(source, above + 1, header)
    if all(is_number(cell) or not cell for cell in rows[0]) or _is_row_of_values(rows[0]):
        raise NoHeader(file=source.shown, command=header_command(source.shown, len(header), delimiter))
    columns = [[row[index] for row in first if index < len(row)] for index in range(len(header))]
    return Shape(delimiter, header, above, decimal_of_columns(columns, "." if delimiter == "," else ","), first)


def _is_row_of_values(cells: Sequence[str]) -> bool:
    """Return whether a first line is that of a kernel with its values, and not of names: `linux-6.12,1,101.2`."""
    return bool(_ROW_START.search(cells[0])) and len(cells) > 1 and all(map(is_number, cells[1:]))


def header_command(file: str, columns: int, delimiter: str) -> str:
    """Return the command that puts a line of names above a file."""
    names = ["value"] if columns == 1 else [f"value{number}" for number in range(1, columns + 1)]
    return shlex.join(["sed", "-i", f"1i {delimiter.join(names[:MOST_NAMES])}", file])


def has_columns(source: FileSource) -> bool:
    """Return whether a text is divided into columns, judging by its beginning: most lines have as many fields as the
    first; or it is one column of numbers under a name.
    """
    source = source.delimited
    if source.form != "text":
        return False
    lines = [line for index, line in enumerate(LINE_END.split(source.head)[:SAMPLE]) if _is_content(line, index)]
    if not lines:
        return True  # and says what is wrong with it
    delimiter = max(DELIMITERS, key=lambda candidate: agreement(lines, candidate))
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        return True
    if len(rows[0]) > 1:
        alike = sum(len(row) == len(rows[0]) for row in rows)
        return 2 * alike > len(rows) or (len(rows) == 2 and '"' not in lines[0])
    if len(rows) == 1:
        return not re.search(r"\d", rows[0][0])  # a name above nothing; else what another program printed
    return sum(is_number(row[0].replace(",", ".")) for row in rows[1:]) * 2 > len(rows) - 1


def _is_content(line: str, index: int) -> bool:
    """Return whether a line is neither blank, nor a comment, nor Excel's line about the delimiter."""
    return bool(line.strip()) and not line.startswith("#") and not (index == 0 and _SEPARATOR_LINE.match(line))


def last_place(text: str) -> float:
    """Return the step that a printed decimal number was rounded to: 0.01 for `0.31`; 0 if it has all the digits of a
    double.
    """
    digits, _, exponent = text.lower().partition("e")
    fraction = digits.partition(".")[2]
    if len(digits.lstrip("-+0.").replace(".", "")) >= DOUBLE_DIGITS:
        return 0.0
    return float(f"1e{int(exponent or 0) - len(fraction)}")


def rows(source: FileSource, shape: Shape) -> Iterator[SheetRow]:
    """Yield all rows below the header, with the number of the line that each ends in. Raise HugeField and RaggedRow."""
    text = io.TextIOWrapper(io.BytesIO(source.delimited.data), encoding="utf-8-sig", newline="")
    reader = csv.reader(text, delimiter=shape.delimiter)
    below = False
    try:
        for cells in reader:
            if reader.line_num <= shape.above or not any(cell.strip() for cell in cells):
                continue
            if not below:
                below = True
                continue
            require_small(source, reader.line_num, cells)
            if len(cells) != len(shape.header):
                raise RaggedRow(
                    file=source.shown,
                    line=reader.line_num,
                    fields=len(cells),
                    columns=len(shape.header),
                    delimiter=repr(shape.delimiter),
                )
            yield SheetRow(reader.line_num, tuple(cell.strip() for cell in cells))
    except csv.Error as error:
        size = csv.field_size_limit()
        raise HugeField(file=source.shown, line=reader.line_num, size=f"more than {size}") from error


def require_small(source: FileSource, line: int, cells: Sequence[str]) -> None:
    if len(cells) > MOST_COLUMNS:
        raise TooLarge(file=source.shown, most=MOST_COLUMNS, what="columns")
    longest = max(map(len, cells), default=0)
    if longest > LONGEST_FIELD:
        raise HugeField(file=source.shown, line=line, size=longest)


def require_different(source: FileSource, line: int, header: Sequence[str]) -> None:
    """Raise ColumnTwice if two columns have one name, which would name both."""
    first: dict[str, int] = {}
    for number, column in enumerate(header, 1):
        if column and column in first:
            raise ColumnTwice(file=source.shown, line=line, column=column, first=first[column], second=number)
        first[column] = number


def _fill_header(header: Sequence[str]) -> tuple[str, ...]:
    """Return the header with a name for every column that has none, such as those of commas at the ends of lines."""
    return tuple(column or f"column {number}" for number, column in enumerate(header, 1))
