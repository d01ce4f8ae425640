"""What the columns of a long table are: named by the user, or guessed from their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdyno.foreign import units
from kdyno.foreign.errors import NoColumn, NoSuchColumn
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.sheet import Shape, is_number
from kdyno.text import listed

ROLES: Mapping[str, str] = {
    "variant": "variant kernel config configuration recipe treatment candidate compiler version group build name",
    "benchmark": "benchmark bench test metric workload stressor event machine name",
    "unit": "unit units",
    "direction": "direction better",
    "block": "block pair round rep replicate replication",
    "boot": "boot boot_id bootid reboot",
    "layout": "layout link_order build build_id",
    "iteration": "iteration iter repetition repeat trial run sample",
    "order": "order position sequence seq timestamp started",
    "day": "day date datetime when time",
}
"""Role -> names of columns that are taken for it, the likeliest first."""

VALUES = (
    *("value", "time", "elapsed", "duration", "latency", "wall", "real", "runtime", "real_time", "wall_time"),
    *("elapsed_time", "result", "measurement", "throughput", "bandwidth", "rate", "score"),
    *("seconds", "ns", "us", "ms", "s", "cycles", "instructions", "instr"),
)

SHOWN = 20
"""Columns that an error names."""


@dataclass(frozen=True)
class Roles:
    columns: Mapping[str, str]
    """Role -> column; never `value`."""
    values: tuple[str, ...]
    unused: tuple[str, ...]

    def shown(self) -> dict[str, str]:
        """For the report: what each column was taken for."""
        return {"value": ", ".join(self.values), **self.columns}


def folded(column: str) -> str:
    """A column's name, to compare it: `Time (ms)` and `time_ms` are `time`."""
    bare = column.strip()
    if bare.endswith((")", "]")):
        bare = re.split(r"[(\[]", bare, maxsplit=1)[0].strip()
    name = re.sub(r"[^a-z0-9]+", "_", bare.lower()).strip("_")
    unit = units.of_column(bare)
    return name.rpartition("_")[0] if unit and "_" in name else name


def find_column(wanted: str, header: Sequence[str], file: str) -> str:
    """Find a column as the user wrote it, or else in whatever case. Raises NoSuchColumn."""
    if wanted in header:
        return wanted
    for column in header:
        if column.lower() == wanted.lower():
            return column
    near = difflib.get_close_matches(wanted, header, n=1)
    nearest = f"did you mean {near[0]!r}? " if near else ""
    raise NoSuchColumn(file=file, column=wanted, nearest=nearest, columns=listed(header, SHOWN))


def find_roles(shape: Shape, request: JudgeRequest, file: str) -> Roles:
    """Decide what the columns are. A column has one role; only the value must be there.

    Raises NoSuchColumn and NoColumn.
    """
    header = shape.header
    names_of = {column: folded(column) for column in header}
    given = {role: find_column(name, header, file) for role, name in request.columns.items() if role in ROLES}
    values = tuple(find_column(name, header, file) for name in request.values)
    left = [column for column in header if column not in given.values() and column not in values]
    numeric = {column for index, column in enumerate(header) if _is_numeric(shape, index)}
    if not values:
        values = _values(left, names_of, numeric, file, shape)
        left = [column for column in left if column not in values]
    for role, names in ROLES.items():
        if role in given:
            continue
        for name in names.split():
            matches = [
                column for column in left if names_of[column] == name and not (name == "time" and column in numeric)
            ]
            if matches:
                given[role] = matches[0]
                left.remove(matches[0])
                break
    if "block" in given and "run" not in given:
        runs = [column for column in left if column.lower() == "run"]
        if runs:  # kdyno's own CSV: blocks are numbered within a run
            given["run"] = runs[0]
            left.remove(runs[0])
    return Roles(given, values, tuple(left))


def _values(
    left: list[str], names_of: Mapping[str, str], numeric: set[str], file: str, shape: Shape
) -> tuple[str, ...]:
    for name in VALUES:
        matches = [column for column in left if names_of[column] == name and column in numeric]
        if matches:
            return (matches[0],)
    names_of_roles = {name for names in ROLES.values() for name in names.split()}
    candidates = [column for column in left if column in numeric and names_of[column] not in names_of_roles]
    if len(candidates) == 1:
        return (candidates[0],)
    # text under the right name is an error in its lines, and reported there
    for column in left:
        if names_of[column] in VALUES and (names_of[column] != "time" or not shape.first):
            return (column,)
    raise NoColumn(file=file, role="value", columns=listed(shape.header, SHOWN))


def _is_numeric(shape: Shape, index: int) -> bool:
    """Whether most of the first rows have a number in this column."""
    cells = [row[index].replace(shape.decimal, ".") for row in shape.first if index < len(row)]
    return bool(cells) and sum(is_number(cell) for cell in cells) * 2 > len(cells)
