"""Tables in the markup of markdown, Org, Jira, AsciiDoc, HTML and LaTeX, and those that are drawn with lines."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kdyno.measure.readers.errors import RaggedRow, SpannedCells, TooLarge
from kdyno.measure.readers.headings import name_statistics
from kdyno.measure.readers.sheet import MOST_ROWS, SheetGrid, SheetRow, require_different, require_small
from kdyno.measure.readers.source import LOOKED_AT, FileSource

_DASHES = re.compile(r":?[-=]+:?")
_BAR = re.compile(r"(?<!\\)\|")
_MARKS = re.compile(r"\*\*|__|`|^=(?=[^=]+=$)|(?<=[^=])=$")
_JIRA = re.compile(r"^[ \t]*\|\|.*\|\|[ \t\r]*$", re.MULTILINE)
"""The header of a table in Jira and Confluence, which has no row of dashes below it."""
_FRAMED = re.compile(r"^[ \t]*[┌╔┏├╠┣]?[─═━]{2}", re.MULTILINE)
"""The beginning of a line of a table that is drawn, as duckdb, psql and rich do."""
_FRAME = str.maketrans(
    {
        **dict.fromkeys("│┃║", "|"),
        **dict.fromkeys("─━═", "-"),
        **dict.fromkeys("┌┬┐├┼┤└┴┘╔╦╗╠╬╣╚╩╝┏┳┓┣╋┫┗┻┛╞╪╡╒╤╕╘╧╛╭╮╰╯┡╇┩", "+"),
    }
)
_HTML_TABLE = re.compile(r"<table\b", re.IGNORECASE)
_TAG = re.compile(r"<(?P<end>/?)(?P<tag>table|tr|t[hd])\b[^<>]*>", re.IGNORECASE)
_ANY_TAG = re.compile(r"<[^<>]*>")
_ASCIIDOC = re.compile(r"^\|={3,}\s*$", re.MULTILINE)
_LATEX_TABLE = re.compile(r"\\begin\{(?P<kind>tabular[*x]?|longtable|array)\}")
_LATEX_COMMENT = re.compile(r"(?<!\\)%.*")
_LATEX_ROW_END = re.compile(r"\\\\(?:\[[^\[\]\n]{0,40}\])?")
"""With the space below the row, as in `\\[2pt]`."""
_LATEX_RULE = re.compile(
    r"\\(?:hline|toprule|midrule|bottomrule|addlinespace|end(?:first|last)?(?:head|foot)|"
    r"(?:cline|cmidrule)(?:\([^()]*\))?\{[^{}]*\})(?![a-z])"
)
_AMPERSAND = re.compile(r"(?<!\\)&")
_LATEX_SPAN = re.compile(r"\\multi(?:column|row)\b")
_LATEX_COMMAND = re.compile(r"\\[A-Za-z]+\*?\{([^{}]*)\}")
"""A command that prints what is in its braces: `\textbf{5.84}`."""
_LATEX_SIGNS = {
    r"\pm": "±",
    r"\times": "×",
    r"\mu": "µ",
    r"\textmu": "µ",
    r"\sigma": "σ",
    r"\%": "%",
    r"\_": "_",
    r"\&": "&",
    r"\#": "#",
    r"\,": " ",
    "~": " ",
    "$": "",
}
_LATEX_SIGN = re.compile(r"\\(?:pm|times|mu|textmu|sigma)(?![A-Za-z])|\\[%_&#,]|[~$]")
MOST_NESTED = 8
"""Commands of LaTeX within each other, in a cell."""


def has_markup_table(text: str) -> bool:
    """Return whether there is a table of AsciiDoc, Jira, HTML or LaTeX, or a row of dashes below a line with a `|`."""
    if any(sign.search(text) for sign in (_ASCIIDOC, _JIRA, _HTML_TABLE, _LATEX_TABLE)):
        return True
    lines = _without_frames(text).splitlines()
    return any("|" in line and _is_rule(below) for line, below in pairwise(lines))


def markup_tables(source: FileSource) -> Iterator[SheetGrid]:
    """Yield the tables of a file that has some. Raise TooLarge, HugeField, RaggedRow, SpannedCells and ColumnTwice."""
    for sign, read in (
        (_HTML_TABLE, _html_tables),
        (_ASCIIDOC, _asciidoc_tables),
        (_LATEX_TABLE, _latex_tables),
    ):
        if sign.search(source.head):
            return read(source)
    return _pipe_tables(source)


def _without_frames(text: str) -> str:
    """Return a text with bars, dashes and pluses in place of the lines that a table is drawn with."""
    return text.translate(_FRAME) if _FRAMED.search(text[:LOOKED_AT]) else text


def _is_rule(line: str) -> bool:
    """Return whether a line is the row of dashes below the header of a pipe table, of markdown, Org or a database."""
    if not ("|" in line or "+" in line) or not set(line) <= set("|:+-= \t"):
        return False
    return all(_DASHES.fullmatch(cell.strip()) for cell in line.strip().strip("|+").replace("+", "|").split("|"))


def _pipe_tables(source: FileSource) -> Iterator[SheetGrid]:
    lines = _without_frames(source.text).splitlines()
    index = count = 0
    while index + 1 < len(lines):
        of_jira = bool(_JIRA.match(lines[index]))
        if "|" not in lines[index] or not (of_jira or _is_rule(lines[index + 1])):
            index += 1
            continue
        if of_jira:
            lines[index] = lines[index].replace("||", "|")
        header, body, start = name_statistics(_cells(lines[index])), [], index + 1
        require_small(source, index + 1, header)
        require_different(source, index + 1, header)
        index += 1 if of_jira else 2
        while index < len(lines) and ("|" in lines[index] or _is_rule(lines[index])):
            if _is_rule(lines[index]):
                index += 1
                continue
            cells = _cells(lines[index])
            if len(cells) != len(header):
                raise RaggedRow(
                    file=source.shown, line=index + 1, fields=len(cells), columns=len(header), delimiter="a bar"
                )
            require_small(source, index + 1, cells)
            body.append(SheetRow(index + 1, cells))
            index += 1
            count += 1
            if count > MOST_ROWS:
                raise TooLarge(file=source.shown, most=MOST_ROWS, what="rows for tables of means")
        yield SheetGrid(header, tuple(body), start)


def _html_tables(source: FileSource) -> Iterator[SheetGrid]:
    """Yield the tables of a page; the first row of each is its header. Raise SpannedCells."""
    table: list[SheetRow] = []
    row: list[str] = []
    place, line, row_line, opened = 0, 1, 1, -1
    count = 0
    for tag in [*_TAG.finditer(source.text), None]:
        end = tag.start() if tag else len(source.text)
        if opened >= 0:
            row.append(" ".join(html.unescape(_ANY_TAG.sub(" ", source.text[opened:end])).split()))
            opened = -1
        name = tag["tag"].lower() if tag else "table"
        line += source.text.count("\n", place, end)
        place = end
        if name in ("table", "tr"):
            if row:
                require_small(source, row_line, row)
                table.append(SheetRow(row_line, tuple(row)))
                count += 1
            row, row_line = [], line
            if count > MOST_ROWS:
                raise TooLarge(file=source.shown, most=MOST_ROWS, what="rows for tables of means")
        elif tag and not tag["end"]:
            opened = tag.end()
        if name == "table" and table:
            yield _grid_below_first_row(table, source)
            table = []


def _grid_below_first_row(table: Sequence[SheetRow], source: FileSource) -> SheetGrid:
    header = name_statistics(table[0].cells)
    require_different(source, table[0].line, header)
    for row in table[1:]:
        if len(row.cells) != len(header):
            raise SpannedCells(file=source.shown, line=row.line, cells=len(row.cells), columns=len(header))
    return SheetGrid(header, tuple(table[1:]), table[0].line)


def _asciidoc_tables(source: FileSource) -> Iterator[SheetGrid]:
    """Yield the tables between lines of `|===`; the first cells, up to a blank line, are the header."""
    lines = source.text.splitlines()
    marks = [index for index, line in enumerate(lines) if _ASCIIDOC.match(line)]
    for start, end in zip(marks[::2], marks[1::2], strict=False):
        cells: list[tuple[int, str]] = []
        columns = 0
        for number, line in enumerate(lines[start + 1 : end], start + 2):
            cells += [(number, cell) for cell in _cells("|" + line.removeprefix("|"))] if line.startswith("|") else []
            if cells and not columns and not line.strip():
                columns = len(cells)
            if len(cells) > MOST_ROWS * 10:
                raise TooLarge(file=source.shown, most=MOST_ROWS * 10, what="cells in tables of means")
        columns = columns or len(cells)
        header = name_statistics([cell for _, cell in cells[:columns]])
        require_small(source, start + 2, header)
        require_different(source, start + 2, header)
        rows = [cells[place : place + columns] for place in range(columns, len(cells), columns)] if columns else []
        if rows and len(rows[-1]) != columns:
            raise RaggedRow(
                file=source.shown, line=rows[-1][0][0], fields=len(rows[-1]), columns=columns, delimiter="a bar"
            )
        for row in rows:
            require_small(source, row[0][0], [cell for _, cell in row])
        yield SheetGrid(header, tuple(SheetRow(row[0][0], tuple(cell for _, cell in row)) for row in rows), start + 2)


def _latex_tables(source: FileSource) -> Iterator[SheetGrid]:
    """Yield the tables of a LaTeX file; the first row of each is its header. One without an end isn't read."""
    text = "\n".join(_LATEX_COMMENT.sub("", line) for line in source.text.splitlines())
    place, line = 0, 1
    while begin := _LATEX_TABLE.search(text, place):
        start = _end_of_arguments(text, begin.end())
        end = text.find(f"\\end{{{begin['kind']}}}", start)
        if end < 0:
            break
        line += text.count("\n", place, start)
        table: list[SheetRow] = []
        for row in _LATEX_ROW_END.split(text[start:end]):
            printed = _LATEX_RULE.sub("", row)
            first = line + row.count("\n", 0, row.find(printed.strip()))
            line += row.count("\n")
            if not printed.strip():
                continue
            table.append(SheetRow(first, tuple(map(_latex_cell, _AMPERSAND.split(printed)))))
            require_small(source, first, table[-1].cells)
            if _LATEX_SPAN.search(printed):
                raise SpannedCells(
                    file=source.shown, line=first, cells=len(table[-1].cells), columns=len(table[0].cells)
                )
            if len(table) > MOST_ROWS:
                raise TooLarge(file=source.shown, most=MOST_ROWS, what="rows for tables of means")
        place = end
        if table:
            yield _grid_below_first_row(table, source)


def _end_of_arguments(text: str, place: int) -> int:
    """Return where the arguments in braces and brackets that begin at a place end."""
    while place < len(text) and text[place] in "{[":
        opening, closing = ("{", "}") if text[place] == "{" else ("[", "]")
        depth = 0
        while place < len(text):
            depth += (text[place] == opening) - (text[place] == closing)
            place += 1
            if not depth:
                break
    return place


def _latex_cell(text: str) -> str:
    """Return what LaTeX prints of a cell."""
    text = _LATEX_SIGN.sub(lambda sign: _LATEX_SIGNS[sign[0]], text)
    for _ in range(MOST_NESTED):
        text, count = _LATEX_COMMAND.subn(r"\1 ", text)
        if not count:
            break
    return " ".join(text.replace("{", "").replace("}", "").split())


def _cells(line: str) -> tuple[str, ...]:
    inner = line.strip()
    if inner.startswith("|"):  # rows of psql have bars only between cells
        inner = inner[1:-1] if inner.endswith("|") and len(inner) > 1 else inner[1:]
    cells = _BAR.split(inner)
    return tuple(_MARKS.sub("", cell.strip()).replace("\\|", "|").strip() for cell in cells)
