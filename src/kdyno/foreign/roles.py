"""What the columns of a long table are: named by the user, or guessed from their names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.foreign import units
from kdyno.foreign.asked import Asked
from kdyno.foreign.errors import NoColumn, NoSuchColumn
from kdyno.foreign.sheet import Shape, is_number

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
    bare = re.sub(r"[(\[].*?[)\]]\s*$", "", column).strip()
    name = re.sub(r"[^a-z0-9]+", "_", bare.lower()).strip("_")
    unit = units.of_column(bare)
    return name.rpartition("_")[0] if unit and "_" in name else name


def column(named: str, shape: Shape, file: str) -> str:
    """Find a column as the user wrote it, or else in whatever case. Raises NoSuchColumn."""
    for each in shape.header:
        if each == named:
            return each
    for each in shape.header:
        if each.lower() == named.lower():
            return each
    near = difflib.get_close_matches(named, shape.header, n=1)
    nearest = f"did you mean {near[0]!r}? " if near else ""
    raise NoSuchColumn(file=file, column=named, nearest=nearest, known=", ".join(shape.header))


def find(shape: Shape, asked: Asked, file: str) -> Roles:
    """Decide what the columns are; a column has one role. Only the value must be there.

    Raises NoSuchColumn and NoColumn.
    """
    given = {role: column(name, shape, file) for role, name in asked.columns.items() if role in ROLES}
    values = tuple(column(name, shape, file) for name in asked.values)
    left = [each for each in shape.header if each not in given.values() and each not in values]
    numeric = {each for at, each in enumerate(shape.header) if _is_numeric(shape, at)}
    if not values:
        values = _values(left, numeric, file, shape)
        left = [each for each in left if each not in values]
    for role, names in ROLES.items():
        if role in given:
            continue
        for name in names.split():
            fit = [each for each in left if folded(each) == name and not (name == "time" and each in numeric)]
            if fit:
                given[role] = fit[0]
                left.remove(fit[0])
                break
    if "block" in given and "run" not in given:
        runs = [each for each in left if each.lower() == "run"]
        if runs:  # kdyno's own CSV: blocks are numbered within a run
            given["run"] = runs[0]
            left.remove(runs[0])
    return Roles(given, values, tuple(left))


def _values(left: list[str], numeric: set[str], file: str, shape: Shape) -> tuple[str, ...]:
    for name in VALUES:
        fit = [each for each in left if folded(each) == name and each in numeric]
        if fit:
            return (fit[0],)
    known = {name for names in ROLES.values() for name in names.split()}
    only = [each for each in left if each in numeric and folded(each) not in known]
    if len(only) == 1:
        return (only[0],)
    # text under the right name is an error of its lines, and told there
    for each in left:
        if folded(each) in VALUES and (folded(each) != "time" or not shape.first):
            return (each,)
    raise NoColumn(file=file, role="value", known=", ".join(shape.header))


def _is_numeric(shape: Shape, at: int) -> bool:
    """Whether most of the first rows have a number in this column."""
    cells = [row[at].replace(shape.decimal, ".") for row in shape.first if at < len(row)]
    return bool(cells) and sum(is_number(cell) for cell in cells) * 2 > len(cells)
