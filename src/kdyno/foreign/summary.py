"""Summary tables: mean, standard deviation and n by variant, one a row, or as cells like `79.800 (0.1076)`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from kdyno.foreign import units
from kdyno.foreign.asked import Asked
from kdyno.foreign.errors import BadValue, NoColumn, NoSize
from kdyno.foreign.roles import ROLES, column, folded
from kdyno.foreign.sheet import Grid, Row, Shape, is_number

MEANS = ("mean", "average", "avg", "m")
SDS = ("sd", "stddev", "std", "std_dev", "stdev", "standard_deviation", "s")
SIZES = ("n", "count", "runs", "samples", "size", "replicates")
_CELL = re.compile(
    r"^(?:(?P<label>[^:]+):\s*)?(?P<mean>-?[\d,]*\.?\d+(?:e[-+]?\d+)?)\s*(?:\(\s*(?:±|\+/-)?\s*(?P<sd>[\d.,]+)\s*\)|(?:±|\+/-)\s*(?P<spread>[\d.,]+))$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Published:
    """What was published of one variant and benchmark; numbers as they were written, since their last digits matter."""

    benchmark: str
    variant: str
    label: str
    """Another name of the variant in this benchmark: `Zen 3` in the column `CPU family`; or empty."""
    mean: str
    sd: str
    n: int
    unit: str
    direction: str


def is_long(header: tuple[str, ...], asked: Asked) -> bool:
    """Whether there is a column of means and one of standard deviations."""
    return bool(_named(header, asked, "mean", MEANS) and _named(header, asked, "sd", SDS))


def is_wide(rows: tuple[tuple[str, ...], ...]) -> bool:
    """Whether some row has two cells or more with a mean and a standard deviation."""
    return any(sum(bool(_CELL.match(cell)) for cell in row) > 1 for row in rows)


def read(grid: Grid, file: str, asked: Asked) -> tuple[list[Published], dict[str, str]]:
    """Read a table of either form: (what it says, what its columns were taken for).

    Raises NoColumn, NoSuchColumn, NoSize and BadValue.
    """
    if is_long(grid.header, asked):
        return _long(grid, file, asked)
    return _wide(grid, file, asked)


def _long(grid: Grid, file: str, asked: Asked) -> tuple[list[Published], dict[str, str]]:
    mean, sd = _named(grid.header, asked, "mean", MEANS), _named(grid.header, asked, "sd", SDS)
    size = _named(grid.header, asked, "n", SIZES)
    found = {"mean": mean, "sd": sd, "n": size}
    left = [each for each in grid.header if each not in found.values()]
    for role in ("variant", "label", "benchmark", "unit", "direction"):
        if role in asked.columns:
            found[role] = column(asked.columns[role], Shape(",", grid.header, 0, ".", ()), file)
        else:
            fit = [each for name in ROLES.get(role, role).split() for each in left if folded(each) == name]
            found[role] = fit[0] if fit else ""
        left = [each for each in left if each != found[role]]
    if not found["variant"]:
        raise NoColumn(file=file, role="variant", known=", ".join(grid.header))
    at = {role: grid.header.index(name) for role, name in found.items() if name}
    out = []
    for row in grid.rows:
        text = {role: row.cells[where] for role, where in at.items()}
        out.append(
            Published(
                benchmark=text.get("benchmark") or mean or "",
                variant=text["variant"],
                label=text.get("label", ""),
                mean=_number(text["mean"], file, row, str(mean)),
                sd=_number(text["sd"], file, row, str(sd), zero=True),
                n=_size(text.get("n"), asked, file, row, text["variant"]),
                unit=text.get("unit") or asked.unit or units.of_column(str(mean)),
                direction=text.get("direction", ""),
            )
        )
    return out, {role: name for role, name in found.items() if name}


def _wide(grid: Grid, file: str, asked: Asked) -> tuple[list[Published], dict[str, str]]:
    size = _named(grid.header, asked, "n", SIZES)
    cells = {at for row in grid.rows for at, cell in enumerate(row.cells) if _CELL.match(cell)}
    if not cells:
        raise NoColumn(file=file, role="mean", known=", ".join(grid.header))
    names = [at for at in range(len(grid.header)) if at not in cells and grid.header[at] != size]
    unit = next((at for at in names if folded(grid.header[at]) in ROLES["unit"].split()), None)
    first = next((at for at in names if at != unit), None)
    out = []
    for row in grid.rows:
        what = row.cells[first] if first is not None else "value"
        n = _size(row.cells[grid.header.index(size)] if size else None, asked, file, row, what)
        for at, match in _matches(row, cells):
            out.append(
                Published(
                    benchmark=what,
                    variant=grid.header[at],
                    label=(match["label"] or "").strip(),
                    mean=_number(match["mean"], file, row, grid.header[at]),
                    sd=_number(match["sd"] or match["spread"], file, row, grid.header[at], zero=True),
                    n=n,
                    unit=(row.cells[unit] if unit is not None else "") or asked.unit,
                    direction="",
                )
            )
    variants = ", ".join(grid.header[at] for at in sorted(cells))
    told = {"benchmark": grid.header[first] if first is not None else "", "mean (sd) by variant": variants}
    return out, {role: name for role, name in (told | {"n": size}).items() if name}


def _matches(row: Row, cells: set[int]) -> Iterator[tuple[int, re.Match[str]]]:
    for at in sorted(cells):
        if match := _CELL.match(row.cells[at]):
            yield at, match


def _named(header: tuple[str, ...], asked: Asked, role: str, names: tuple[str, ...]) -> str:
    """The column of a role: the one that was asked for, else the first whose name fits; empty for none."""
    wanted = (asked.n or "") if role == "n" else asked.columns.get(role, "")
    if wanted and not (role == "n" and wanted.isdecimal()):
        return column(wanted, Shape(",", header, 0, ".", ()), "the table")
    return next((each for name in names for each in header if folded(each) == name), "")


def _number(text: str, file: str, row: Row, name: str, *, zero: bool = False) -> str:
    """The number as written, without separators of thousands. Raises BadValue."""
    plain = text.replace(",", "")
    if not is_number(plain) or not (float(plain) > 0 or (zero and float(plain) == 0)) or float(plain) == float("inf"):
        raise BadValue(file=file, line=row.line, column=name, value=text)
    return plain


def _size(text: str | None, asked: Asked, file: str, row: Row, what: str) -> int:
    given = text or (asked.n if asked.n and asked.n.isdecimal() else None)
    if given is None:
        raise NoSize(file=file, what=what)
    if not given.isdecimal() or int(given) < 1:
        raise BadValue(file=file, line=row.line, column="n", value=given)
    return int(given)
