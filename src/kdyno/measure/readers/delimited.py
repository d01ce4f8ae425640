"""Tables that are rewritten as delimited text: columns aligned by blanks, JSON, and files put one after the other."""

from __future__ import annotations

import csv
import io
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any

from kdyno.measure.readers import units
from kdyno.measure.readers.errors import UnalignedRow
from kdyno.measure.readers.headings import looks_like_a_variant
from kdyno.measure.readers.numerals import NUMBER, tidy

DELIMITERS = ",;\t|"
SAMPLE = 30
"""Lines that show how a text is divided into columns."""
LINE_END = re.compile(r"\r\n|\r|\n")
_WIDE_GAP = re.compile(r"(?<![ \u00a0\t±])(?<!\+/-)(?:[ \u00a0\t]{2,}+|\t)(?!±|\+/-)")
_ONE_BLANK = re.compile(r"[ \u00a0\t]+")
_RULE = re.compile(r"[-=_+\s─━┼]*")
_NUMERAL = re.compile(NUMBER)
_UNIT_LETTERS = "%µ" + string.ascii_letters
_VALUE = r"-?\d[\d.eE+-]*+[A-Za-zµ%]{0,4}+"
_NAME = r"(?P<name>[^:,;|\t\n\"]{1,200}?)(?::[ \t]++|[ \t]?=[ \t]*+)"
"""A name and its sign; what is before a colon may have a `=`."""
_NAMED_ROW = re.compile(rf"{_NAME}\[?[ \t]*+(?P<values>{_VALUE}(?:(?:[,;]?+[ \t]++|,){_VALUE})++)[ \t]*+\]?[ \t]*+")
_NAMED_RECORD = re.compile(
    rf"(?P<name>[^:=,;|\t\n\"]{{1,200}})(?P<mark>[,;\t])(?P<values>{_VALUE}(?:(?P=mark){_VALUE})++)"
)
_NAMED_VALUE = re.compile(rf"{_NAME}(?P<value>-?\d[\d.eE+-]*+)[ \t]?(?P<unit>[A-Za-zµ%][\w/%]{{0,20}})[ \t]*+")
_BETWEEN_VALUES = re.compile(r"[,;]?[ \t]+|[,;]")
ALIKE = 3
"""Values of one measurement differ by less than this factor."""
_LONE_COMMA = re.compile(r",(?![ \t])")
_VERSION = re.compile(r"\d\.\d")
_FIRST_LINE = re.compile(rb"^(?!#)[^\r\n]*[^\s][^\r\n]*", re.MULTILINE)
"""The first line that is neither blank nor a comment."""
_LETTER = re.compile(rb"[A-Za-z]")
_DELIMITER = re.compile(rb"[,;\t|]")
"""A header has a letter and a delimiter; a line of numbers has no letter."""


def agreement(sample: Sequence[str], delimiter: str) -> tuple[bool, int]:
    """Return how well a delimiter fits: whether it divides every line into equally many fields, and how many."""
    try:
        widths = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
    except csv.Error:
        return False, 0
    wide = min(widths, default=0)
    return len(set(widths)) == 1 and wide > 1, widths[0] if widths else 0


def is_aligned(head: str) -> bool:
    """Return whether a text that begins like this has columns aligned by blanks. What moves a cursor isn't a table."""
    if "\x1b" in head:
        return False
    lines = [line for line in LINE_END.split(head) if line.strip() and not line.startswith("#")]
    if any(agreement(lines[:SAMPLE], delimiter)[0] for delimiter in DELIMITERS):
        return False
    return _gap(head) is not None


def from_blanks(text: str, file: str) -> str:
    """Return an aligned text with tabs between its columns, line for line. Rules, and lines above and below the table
    that aren't divided, become blank. Raise UnalignedRow.
    """
    gap = _gap(text) or _WIDE_GAP
    lines = [_fields(line, gap) for line in LINE_END.split(text)]
    places = [index for index, fields in enumerate(lines) if len(fields) > 1]
    first, last = places[0], places[-1]
    width = _width([lines[index] for index in places[1:]])
    for number, fields in enumerate(lines[first + 1 : last + 1], first + 2):
        if fields and len(fields) != width:
            raise UnalignedRow(file=file, line=number, fields=len(fields), columns=width)
    header = [""] * (width - len(lines[first])) + lines[first]
    return "\n" * first + _written([header, *lines[first + 1 : last + 1]], "\t")


def aligned_blocks(text: str) -> list[tuple[int, str]]:
    """Return the tables of an aligned text that has several, each with its header: (lines above it, its text). Empty
    for a text with one or none. Blank lines divide tables; rows below a blank line without a header of their own belong
    to the table above.
    """
    if "\x1b" in text or not _has_no_delimiter(text):
        return []
    lines = LINE_END.split(text)
    tables: list[tuple[int, int]] = []
    for start, end in _paragraphs(lines):
        paragraph = lines[start:end]
        if _gap("\n".join(paragraph)) is not None and _has_header(paragraph):
            tables.append((start, end))
        elif tables and any(len(_fields(line, _WIDE_GAP)) > 1 for line in paragraph):
            tables[-1] = (tables[-1][0], end)
    return [(start, "\n".join(lines[start:end])) for start, end in tables] if len(tables) > 1 else []


def _has_no_delimiter(text: str) -> bool:
    """Return whether no delimiter divides the first lines of a text."""
    lines = [line for line in LINE_END.split(text)[:SAMPLE] if line.strip() and not line.startswith("#")]
    return not any(agreement(lines, delimiter)[0] for delimiter in DELIMITERS)


def _paragraphs(lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return where each group of lines between blank ones begins and ends."""
    filled = [False, *(bool(line.strip()) for line in lines), False]
    edges = [index for index, (above, below) in enumerate(pairwise(filled)) if above != below]
    return list(zip(edges[::2], edges[1::2], strict=True))


def _has_header(paragraph: Sequence[str]) -> bool:
    """Return whether the first line of a table that is divided has no number, apart from its first field."""
    gap = _gap("\n".join(paragraph)) or _WIDE_GAP
    header = next((fields for line in paragraph if len(fields := _fields(line, gap)) > 1), [])
    return len(header) > 1 and not any(_NUMERAL.fullmatch(tidy(field)) for field in header[1:])


def without_repeated_headers(data: bytes) -> bytes:
    """Return a table without the lines below its header that are the header again, as `cat *.csv` leaves them. They
    become blank lines.
    """
    match = _FIRST_LINE.search(data)
    header = match[0] if match else b""
    has_names = _LETTER.search(header) and _DELIMITER.search(header)
    if not has_names or data.find(b"\n" + header, match.end() if match else 0) < 0:
        return data
    assert match
    again = re.compile(rb"^" + re.escape(header) + rb"(?=\r?$)", re.MULTILINE)
    return data[: match.end()] + again.sub(b"", data[match.end() :])


def from_json(document: Any) -> str | None:
    """Return a list of flat objects as CSV, with a line for each; or lists of numbers by name, with a line for each
    number: the names are benchmarks, unless all look like kernels. In lists by two names, one is of kernels and one of
    benchmarks. None for any other document.
    """
    if isinstance(document, dict) and len(document) > 1 and all(map(_is_list_of_numbers, document.values())):
        rows = [[name, _cell(value)] for name, values in document.items() for value in values]
        return _written([[_what_is_named(document), "value"], *rows], ",")
    if isinstance(document, dict) and document and all(map(_is_dict_of_lists, document.values())):
        return _from_two_levels(document)
    if not isinstance(document, list) or not document or not all(isinstance(row, dict) and row for row in document):
        return None
    if any(isinstance(value, (dict, list)) for row in document for value in row.values()):
        return None
    header = list(dict.fromkeys(key for row in document for key in row))
    return _written([header, *([_cell(row.get(key)) for key in header] for row in document)], ",")


def _from_two_levels(document: dict[str, dict[str, list[float]]]) -> str | None:
    """Return lists of numbers by two names as CSV; None if both levels look like kernels, or neither."""
    inner_names = dict.fromkeys(name for inner in document.values() for name in inner)
    levels = [_what_is_named(document), _what_is_named(inner_names)]
    if len(set(levels)) == 1:
        return None
    rows = [
        [outer, inner, _cell(value)]
        for outer, lists in document.items()
        for inner, values in lists.items()
        for value in values
    ]
    return _written([[*levels, "value"], *rows], ",")


def _what_is_named(names: Iterable[str]) -> str:
    """Return what these names are of, as the heading of their column."""
    return "variant" if all(map(looks_like_a_variant, names)) else "benchmark"


def from_named_rows(text: str) -> str | None:
    """Return lines like `6.12: 4.61 4.63` or `6.12 = 4.61, 4.63`, a name and its values, as CSV with a line for each
    value; None for any other text. The names are benchmarks, unless all look like kernels.

    Lines with one value, as `fork: 81.2 us`, are such if all are times or rates: else anything may be named there.
    Lines like `linux-6.12,4.61,4.63` are such if all names have versions: else the first one may be a header. A comma
    between digits may be a decimal one, unless the numbers have points, and nothing else is between them.
    """
    lines = [line for line in LINE_END.split(text) if line.strip() and not line.startswith("#")]
    if len(lines) < 2:
        return None
    if (matches := _all_matches(_NAMED_VALUE.fullmatch, lines)) and all(
        _is_of_time(match["unit"]) for match in matches
    ):
        what = _what_is_named(match["name"] for match in matches)
        return _written(
            [[what, "value", "unit"], *([part.strip() for part in match.groups()] for match in matches)], ","
        )
    matches = _all_matches(_NAMED_ROW.fullmatch, lines)
    records = [] if matches else _all_matches(_NAMED_RECORD.fullmatch, lines)
    names = [match["name"].strip() for match in matches or records]
    values = [match["values"] for match in matches or records]
    if not names or (records and not _are_kernels(names, values)):
        return None
    if any(map(_LONE_COMMA.search, values)) and not all(map(_is_parted_by_commas, values)):
        return None
    rows = [[name, one] for name, own in zip(names, values, strict=True) for one in _BETWEEN_VALUES.split(own)]
    return _written([[_what_is_named(names), "value"], *rows], ",")


def _is_of_time(text: str) -> bool:
    """Return whether a text is a unit of time, or one of a rate: sizes are of files and memory, and no measurements."""
    unit = units.find(text)
    return unit is not None and "time" in unit.dimensions


def _all_matches(match_of: Callable[[str], re.Match[str] | None], lines: Sequence[str]) -> list[re.Match[str]]:
    """Return the match of each line; none if a line doesn't match."""
    matches = []
    for line in lines:
        match = match_of(line)
        if match is None:
            return []
        matches.append(match)
    return matches


def _are_kernels(names: Sequence[str], values: Sequence[str]) -> bool:
    """Return whether each name is that of a kernel's version, and its values are alike, so that none is a counter."""
    if len(set(names)) < len(names) or not all(_VERSION.search(name) for name in names):
        return False
    try:
        numbers = [[abs(float(one.rstrip(_UNIT_LETTERS))) for one in _BETWEEN_VALUES.split(own)] for own in values]
    except ValueError:
        return False
    return all(max(own) < ALIKE * min(own) for own in numbers)


def _is_parted_by_commas(values: str) -> bool:
    """Return whether commas are between these numbers, and not within them: all have a decimal point."""
    return all("." in one for one in values.split(",")) and not any(blank in values for blank in " \t")


def _is_dict_of_lists(value: Any) -> bool:
    return isinstance(value, dict) and bool(value) and all(map(_is_list_of_numbers, value.values()))


def _is_list_of_numbers(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(number, float) for number in value)


def _cell(value: str | float | bool | None) -> str:
    """Return a value of JSON, in which all numbers are floats, as a cell on one line."""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
    return "" if value is None else " ".join(str(value).split())


def _gap(text: str) -> re.Pattern[str] | None:
    """Return what is between the columns of an aligned text: two blanks, or one where that divides all lines alike."""
    lines = LINE_END.split(text)[:SAMPLE]
    return next((gap for gap in (_WIDE_GAP, _ONE_BLANK) if _divides(gap, lines)), None)


def _divides(gap: re.Pattern[str], lines: Sequence[str]) -> bool:
    """Return whether most lines have as many fields as the first that is divided, and a column below it has numbers.

    One blank may be within a name or before a unit. It must divide all lines, and the header must have no number: what
    programs log has. The first column, an index, may have no name if the header is indented.
    """
    divided = [(line, fields) for line in lines if len(fields := _fields(line, gap)) > 1]
    if len(divided) < 2:
        return False
    (top, header), *below = divided
    if gap is _WIDE_GAP and all(_NUMERAL.fullmatch(tidy(field)) for field in header):
        return False
    width = _width([fields for _, fields in below])
    rows = [fields for _, fields in below if len(fields) == width]
    numeric = [
        sum(bool(_NUMERAL.match(tidy(cell))) for cell in column) * 2 > len(rows) for column in zip(*rows, strict=True)
    ]
    if any(field[0] in DELIMITERS or field[-1] in DELIMITERS for field in header) or not any(numeric[1:]):
        return False
    if gap is _ONE_BLANK:
        is_whole = len(rows) == len(below) and not any(len(_fields(line, gap)) == 1 for line in lines)
        if not is_whole or any(_NUMERAL.fullmatch(field) for field in header):
            return False
    if width == len(header) + 1:
        is_index = numeric[0] or gap is _WIDE_GAP
        return is_index and _indent(top) > min(_indent(line) for line, _ in below)
    return width == len(header) and len(rows) * 2 > len(below)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _fields(line: str, gap: re.Pattern[str]) -> list[str]:
    """Return the fields of a line; none for a blank line, a comment and a rule."""
    if line.startswith("#") or _RULE.fullmatch(line):
        return []
    return gap.split(line.strip())


def _width(body: Iterable[Sequence[str]]) -> int:
    """Return the number of fields that most rows have."""
    return Counter(map(len, body)).most_common(1)[0][0]


def _written(table: Iterable[Sequence[str]], delimiter: str) -> str:
    text = io.StringIO()
    csv.writer(text, delimiter=delimiter, lineterminator="\n").writerows(table)
    return text.getvalue()
