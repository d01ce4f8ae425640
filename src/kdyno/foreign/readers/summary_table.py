"""Tables of means: mean, standard deviation and n by variant, one a row, or as cells like `79.800 (0.1076)`."""

from __future__ import annotations

import re

from kdyno.foreign import claims, units
from kdyno.foreign.errors import BadValue, NoSize
from kdyno.foreign.readings import Published, SummaryTables
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.roles import ROLES, find_column, find_columns, folded, with_level
from kdyno.foreign.sheet import LEAST, Grid, Row, grids, has_pipe_table, is_printed_number, shape_of, whole_number
from kdyno.foreign.source import Source

MEANS = ("mean", "average", "avg", "m")
SDS = ("sd", "stddev", "std", "std_dev", "stdev", "standard_deviation", "s")
SIZES = ("n", "count", "runs", "samples", "size", "replicates")
_CELL = re.compile(
    r"^(?:(?P<label>[^:]+):\s*+)?(?P<mean>-?(?:[\d,]*\.\d++|[\d,]*\d)(?:e[-+]?\d++)?+)\s*+"
    r"(?:\(\s*+(?:±|\+/-)?\s*+(?P<sd>[\d.,]++)\s*+\)|(?:±|\+/-)\s*+(?P<spread>[\d.,]++))$",
    re.IGNORECASE,
)
"""Each part takes all that it can, for good: time then grows as the text does, not as its square."""

TITLE = "a table of means and standard deviations"


def recognises(source: Source, request: JudgeRequest) -> bool:
    if has_pipe_table(source.head):
        return True
    shape = shape_of(source)
    return _is_long(shape.header, request) or _is_wide(shape.first)


def read(source: Source, request: JudgeRequest) -> SummaryTables:
    """Read all tables of a file, of either form; those of published statistics are kept for checking.

    Raises NoRows, TooLarge, NoSuchColumn, NoSize and BadValue.
    """
    published: list[Published] = []
    columns: dict[str, str] = {}
    statistics = []
    for grid in grids(source):
        if claims.looks_like(grid.header):
            statistics.append(grid)
        elif (is_long := _is_long(grid.header, request)) or _is_wide(tuple(row.cells for row in grid.rows)):
            if is_long:
                rows, roles = _read_long(grid, source.shown, request, source.name)
            else:
                rows, roles = _read_wide(grid, source.shown, request)
            published += rows
            columns |= roles
    return SummaryTables(tuple(published), columns, tuple(statistics))


def _is_long(header: tuple[str, ...], request: JudgeRequest) -> bool:
    """Whether there is a column of means and one of standard deviations."""
    return bool(_named(header, request, "mean", MEANS) and _named(header, request, "sd", SDS))


def _is_wide(rows: tuple[tuple[str, ...], ...]) -> bool:
    """Whether some row has two cells or more with a mean and a standard deviation."""
    return any(sum(bool(_CELL.match(cell)) for cell in row) > 1 for row in rows)


def _read_long(grid: Grid, file: str, request: JudgeRequest, whole: str) -> tuple[list[Published], dict[str, str]]:
    """One summary a row. Without a column for the variant, all are of the one that the `whole` file stands for."""
    mean, sd = _named(grid.header, request, "mean", MEANS), _named(grid.header, request, "sd", SDS)
    roles = {"mean": mean, "sd": sd, "n": _named(grid.header, request, "n", SIZES)}
    left = [column for column in grid.header if column not in roles.values()]
    further: list[str] = []
    pooled = [find_column(name, grid.header, file) for name in request.pooled]
    for role in ("variant", "label", "benchmark", "unit", "direction"):
        if role in request.columns:
            roles[role], *others = find_columns(role, request.columns[role], grid.header, file)
            further += others if role == "benchmark" else []
        else:
            names = ROLES.get(role, role).split()
            roles[role] = next((column for name in names for column in left if folded(column) == name), "")
        left = [column for column in left if column not in (roles[role], *further, *pooled)]
    columns = {role: name for role, name in roles.items() if name}
    indices = {role: grid.header.index(name) for role, name in columns.items()}
    published = []
    for row in grid.rows:
        text = {role: row.cells[index] for role, index in indices.items()}
        benchmark = text.get("benchmark") or mean
        for column in further:
            benchmark = with_level(benchmark, column, row.cells[grid.header.index(column)])
        published.append(
            Published(
                benchmark=benchmark,
                variant=text.get("variant", whole),
                label=text.get("label", ""),
                mean=_number(text["mean"], file, row, mean),
                sd=_number(text["sd"], file, row, sd, zero=True),
                n=_size(text.get("n"), request, file, row, text.get("variant", benchmark)),
                unit=text.get("unit") or request.unit or units.of_column(mean),
                direction=text.get("direction", ""),
                left={column: row.cells[grid.header.index(column)] for column in left},
                benchmark_column=",".join([roles["benchmark"], *further]) if roles["benchmark"] else "",
            )
        )
    return published, {**columns, **({"benchmark": ", ".join([columns["benchmark"], *further])} if further else {})}


def _read_wide(grid: Grid, file: str, request: JudgeRequest) -> tuple[list[Published], dict[str, str]]:
    """One benchmark a row, one variant a column."""
    size = _named(grid.header, request, "n", SIZES)
    matches = [
        (row, {index: match for index, cell in enumerate(row.cells) if (match := _CELL.match(cell))})
        for row in grid.rows
    ]
    variants = sorted({index for _, cells in matches for index in cells})
    others = [index for index, name in enumerate(grid.header) if index not in variants and name != size]
    unit = next((index for index in others if folded(grid.header[index]) in ROLES["unit"].split()), None)
    first = next((index for index in others if index != unit), None)
    further: list[int] = []
    if "benchmark" in request.columns:
        named = find_columns("benchmark", request.columns["benchmark"], grid.header, file)
        first, *further = (grid.header.index(name) for name in named)
    left = [index for index in others if index not in (unit, first, *further) and grid.header[index]]
    published = []
    for row, cells in matches:
        benchmark = row.cells[first] if first is not None else "value"
        for index in further:
            benchmark = with_level(benchmark, grid.header[index], row.cells[index])
        n = _size(row.cells[grid.header.index(size)] if size else None, request, file, row, benchmark)
        for index, match in cells.items():
            variant = grid.header[index]
            published.append(
                Published(
                    benchmark=benchmark,
                    variant=variant,
                    label=(match["label"] or "").strip(),
                    mean=_number(match["mean"], file, row, variant),
                    sd=_number(match["sd"] or match["spread"], file, row, variant, zero=True),
                    n=n,
                    unit=(row.cells[unit] if unit is not None else "") or request.unit,
                    direction="",
                    left={grid.header[index]: row.cells[index] for index in left},
                    benchmark_column=",".join(grid.header[index] for index in (first, *further) if index is not None),
                )
            )
    columns = {
        "benchmark": ", ".join(grid.header[index] for index in (first, *further) if index is not None),
        "mean (sd) by variant": ", ".join(grid.header[index] for index in variants),
        "n": size,
    }
    return published, {role: name for role, name in columns.items() if name}


def _named(header: tuple[str, ...], request: JudgeRequest, role: str, names: tuple[str, ...]) -> str:
    """The column of a role: the one that the user names, else the first whose name fits; empty for none."""
    wanted = (request.n or "") if role == "n" else request.columns.get(role, "")
    if wanted and not (role == "n" and whole_number(wanted)):
        return find_column(wanted, header, "the table")
    return next((column for name in names for column in header if folded(column) == name), "")


def _number(text: str, file: str, row: Row, name: str, *, zero: bool = False) -> str:
    """The number as written, without separators of thousands. Raises BadValue."""
    plain = text.replace(",", "")
    if not is_printed_number(plain) or not (float(plain) > LEAST or (zero and float(plain) == 0)):
        raise BadValue(file=file, line=row.line, column=name, value=text)
    return plain


def _size(text: str | None, request: JudgeRequest, file: str, row: Row, what: str) -> int:
    if text:
        size = whole_number(text)
        if size is None:
            raise BadValue(file=file, line=row.line, column="n", value=text)
    else:
        size = whole_number(request.n or "")
        if size is None:
            raise NoSize(file=file, what=what)
    return size
