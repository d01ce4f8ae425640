"""The meaning of the columns of a long table: named by the user, or guessed from their names."""

from __future__ import annotations

import difflib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kdyno.base.text import format_list
from kdyno.measure.readers import units
from kdyno.measure.readers.cells import cell_of
from kdyno.measure.readers.errors import NoColumn, NoHeader, NoSuchColumn, PercentilesInRows, SeveralValues, TwoMeanings
from kdyno.measure.readers.headings import NOT_MEASURED, meaning, numbered_runs
from kdyno.measure.readers.numerals import is_missing
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import Shape, header_command, is_number
from kdyno.measure.readers.status import StatusColumn, find_status_columns

_LAST_VARIANTS = "march optimization opt options option cflags flags command cmd"

ROLES: Mapping[str, str] = {
    "variant": "variant kernel kernel_version kernel_release linux linux_version linux_kernel uname config "
    "configuration recipe treatment candidate compiler version group build commit revision branch scheduler "
    "governor os distribution distro name "
    f"{_LAST_VARIANTS}",
    "benchmark": "benchmark bench test metric workload stressor event command cmd machine name",
    "unit": "unit units",
    "direction": "direction better",
    "block": "block pair round rep replicate replication",
    "boot": "boot boot_id bootid reboot",
    "layout": "layout link_order build build_id",
    "iteration": "iteration iter repetition repeat trial run sample",
    "order": "order position sequence seq timestamp time_stamp ts epoch unix_time started",
    "day": "day date datetime when time",
}
"""Role -> names of columns that are taken for it, the likeliest first."""

LAST_VARIANTS = frozenset(_LAST_VARIANTS.split())
"""Names of variants only if a lone file has no better column: of several files, each is then a variant."""
_PLACES = (
    "host hostname machine node server system cpu cpus arch architecture clients client threads jobs scale size stride "
    "depth cores workers connections concurrency blocksize block_size bs"
)
PLACES = frozenset(_PLACES.split())
"""Columns that give the circumstances of a measurement."""
FACTORS = frozenset((*PLACES, *ROLES["variant"].split(), *ROLES["benchmark"].split(), "release"))
"""Columns without a role that become part of the benchmark's name, if they vary."""
NUMBERING = frozenset(
    " ".join(
        (
            *(ROLES[role] for role in ("block", "boot", "iteration", "order", "day")),
            "index idx no nr number id pid seed comment comments note notes remark remarks url",
        )
    ).split()
)
"""Columns that count, or whose values nobody compares."""

VALUES = (
    *("value", "time", "elapsed", "duration", "latency", "wall", "real", "runtime", "real_time", "wall_time"),
    *("elapsed_time", "result", "measurement", "throughput", "bandwidth", "rate", "score"),
    *("seconds", "ns", "us", "ms", "s", "cycles", "instructions", "instr"),
)

_RIVALS = frozenset(VALUES[VALUES.index("time") : VALUES.index("result")]) | frozenset(
    ("throughput", "bandwidth", "rate", "score")
)
"""Those of them that say what is measured: of two in one table, either may be meant."""

UNIT_NAMES = frozenset(("seconds", "ns", "us", "ms", "s", "cycles", "instructions", "instr"))
"""Those of them that say only what is counted."""

_PERCENTILES = frozenset(
    (
        *("percentile", "percentage_served", "percent_served", "quantile", "bucket", "bin", "latency_percentile"),
        *("cdf", "pdf", "pmf", "ccdf", "cumulative", "cumulative_count", "probability", "density"),
    )
)
"""Columns that number or weigh the parts of a distribution: ab -e, spectra of wrk2, histograms."""
_WEIGHTS = frozenset(("count", "counts", "frequency", "freq", "occurrences"))
"""Columns that do so beside values in ascending order."""
_COUNTED = frozenset(" ".join(ROLES[role] for role in ("block", "boot", "layout", "iteration")).split())
"""Columns that number boots and what is within them: with a unit they are measurements."""
COMPARED = frozenset((*ROLES["variant"].split(), *ROLES["benchmark"].split()))
"""Names of columns whose words are names, whatever they are."""
FEW_LEVELS = 50
"""A column of unknown meaning that has more values than this is not a factor."""
SHOWN = 20
"""Columns that an error names."""


@dataclass(frozen=True)
class Roles:
    columns: Mapping[str, str]
    """Role -> column; never `value`."""
    values: tuple[str, ...]
    unused: tuple[str, ...]
    further: tuple[str, ...] = ()
    """Columns that the user made part of the benchmark's name."""
    pooled: tuple[str, ...] = ()
    """Columns whose values the user takes together."""
    named: frozenset[str] = frozenset()
    """Roles whose column the user named."""
    runs: bool = False
    """Whether the columns of values are runs of one measurement."""
    statuses: tuple[StatusColumn, ...] = ()
    """Columns that say which measurements failed."""

    def shown(self) -> dict[str, str]:
        """Return the meaning that was found for each column, for the report."""
        columns = {"value": ", ".join(self.values), **self.columns}
        if self.further:
            columns["benchmark"] = ", ".join((columns["benchmark"], *self.further))
        if self.statuses:
            columns["status"] = ", ".join(status.column for status in self.statuses)
        return columns | ({"pooled": ", ".join(self.pooled)} if self.pooled else {})


def fold_name(column: str) -> str:
    """Return a column's name in a form for comparison: `Time (ms)` and `time_ms` are `time`; but `boot (s)` is a time,
    and no number of a boot.
    """
    bare = column.strip()
    if bare.endswith((")", "]")):
        bare = re.split(r"[(\[]", bare, maxsplit=1)[0].strip()
    name = re.sub(r"[^a-z0-9]+", "_", bare.lower()).strip("_")
    without_unit = name.rpartition("_")[0] if units.unit_of_column(bare) and "_" in name else name
    return column.lower() if without_unit in _COUNTED and units.unit_of_column(column) else without_unit


def find_column(wanted: str, header: Sequence[str], file: str) -> str:
    """Return the column with the name that the user wrote, or else with that name in another case. Raise
    NoSuchColumn.
    """
    if wanted in header:
        return wanted
    for column in header:
        if column.lower() == wanted.lower():
            return column
    near = difflib.get_close_matches(wanted, header, n=1)
    nearest = f"did you mean {near[0]!r}? " if near else ""
    raise NoSuchColumn(file=file, column=wanted, nearest=nearest, columns=format_list(header, SHOWN))


def find_columns(role: str, wanted: str, header: Sequence[str], file: str) -> list[str]:
    """Return a role's column, or the several ones of a benchmark with commas between them. Raise NoSuchColumn."""
    if role != "benchmark" or wanted.lower() in (column.lower() for column in header):
        return [find_column(wanted, header, file)]
    return list(dict.fromkeys(find_column(name.strip(), header, file) for name in wanted.split(",")))


def with_level(benchmark: str, column: str, level: str) -> str:
    """Return the name of a benchmark under one value of a factor: `pipe, host a`."""
    return f"{benchmark}, {column.strip()} {level or '(none)'}"


def difference(column: str, levels: Mapping[str, Sequence[str]]) -> str:
    """Return the sentence on a column that differs with the variant; `levels` are its values by variant."""
    own_levels = format_list(
        [f"{variant} only with {format_list([level or '(none)' for level in own])}" for variant, own in levels.items()]
    )
    return f"{column} differs from variant to variant ({own_levels}): its effect can't be told from theirs"


def may_be_a_factor(column: str, levels: Sequence[str]) -> bool:
    """Return whether a column of unknown meaning is neither numbering, nor measured numbers, nor remarks."""
    name = fold_name(column)
    if name in NUMBERING or name in VALUES or units.unit_of_column(column) or units.quantity("", column) == "count":
        return False
    return 1 < len(levels) <= FEW_LEVELS and not any(
        is_number(level) and not level.strip("+-").isdecimal() for level in levels
    )


def find_roles(shape: Shape, request: JudgeRequest, file: str) -> Roles:
    """Decide on the roles of the columns. A column has one role; only the value is required.

    Raise NoSuchColumn, NoColumn and TwoMeanings.
    """
    header = shape.header
    names_of = {column: fold_name(column) for column in header}
    wanted = {role: find_columns(role, name, header, file) for role, name in request.columns.items() if role in ROLES}
    given = {role: columns[0] for role, columns in wanted.items()}
    further = wanted.get("benchmark", [""])[1:]
    pooled = tuple(find_column(name, header, file) for name in request.pooled)
    values = tuple(find_column(name, header, file) for name in request.values)
    requested = [(role, column) for role, columns in wanted.items() for column in columns]
    _require_one_meaning(
        [*requested, *(("pool", name) for name in pooled), *(("value", name) for name in values)], file
    )
    taken = {*given.values(), *further, *pooled, *values}
    cells = {
        column: [row[index] for row in shape.first if index < len(row)]
        for index, column in enumerate(header)
        if column not in taken
    }
    statuses = find_status_columns({column: names_of[column] for column in cells}, cells, COMPARED)
    taken.update(status.column for status in statuses)
    remaining = [column for column in header if column not in taken]
    numeric = {column for index, column in enumerate(header) if _is_numeric(shape, index)}
    numbered = () if values else numbered_runs([column for column in remaining if column in numeric])
    for column in remaining:
        if names_of[column] in _PERCENTILES:
            raise PercentilesInRows(file=file, column=column, option=shlex.quote(column))
    if not values:
        values = numbered or _values(remaining, names_of, numeric, file, shape)
        if any(cell_of(column, shape.decimal.mark) for column in values):
            raise NoHeader(file=file, command=header_command(file, len(header), ","))
        remaining = [column for column in remaining if column not in values]
    for role, names in ROLES.items():
        if role in given:
            continue
        for name in names.split():
            matches = [
                column
                for column in remaining
                if names_of[column] == name and not (name == "time" and column in numeric)
            ]
            if matches:
                given[role] = matches[0]
                remaining.remove(matches[0])
                break
    weights = next((column for column in remaining if names_of[column] in _WEIGHTS and column in numeric), "")
    if weights and len(values) == 1 and _ascends(shape, header.index(values[0])):
        raise PercentilesInRows(file=file, column=weights, option=shlex.quote(weights))
    if "block" in given and "run" not in given:
        runs = [column for column in remaining if column.lower() == "run"]
        if runs:  # kdyno's own CSV: blocks are numbered within a run
            given["run"] = runs[0]
            remaining.remove(runs[0])
    return Roles(given, values, tuple(remaining), tuple(further), pooled, frozenset(wanted), bool(numbered), statuses)


def _require_one_meaning(requested: Sequence[tuple[str, str]], file: str) -> None:
    """Raise TwoMeanings for a column that the user names twice."""
    first: dict[str, str] = {}
    for option, column in requested:
        if column in first:
            raise TwoMeanings(file=file, column=column, option=first[column], other=option)
        first[column] = option


def _values(
    remaining: list[str], names_of: Mapping[str, str], numeric: set[str], file: str, shape: Shape
) -> tuple[str, ...]:
    others_measured = [
        column
        for column in remaining
        if column in numeric and meaning(column) not in NOT_MEASURED and units.unit_of_column(column)
    ]
    for name in VALUES:
        if name in UNIT_NAMES and len(others_measured) > 1:
            continue  # `cycles/op` beside `MiB/s`: neither is the value
        matches = [column for column in remaining if names_of[column] == name and column in numeric]
        if matches:
            rivals = [column for column in remaining if names_of[column] in _RIVALS and column in numeric]
            if name in _RIVALS and len(rivals) > 1:
                raise SeveralValues(
                    file=file, columns=format_list(rivals, SHOWN), values=shlex.quote(",".join(rivals[:SHOWN]))
                )
            return (matches[0],)
    names_of_roles = {name for names in ROLES.values() for name in names.split()}
    for others in (names_of_roles | FACTORS, names_of_roles):
        candidates = [
            column
            for column in remaining
            if column in numeric and names_of[column] not in others and meaning(column) not in NOT_MEASURED
        ]
        with_unit = [column for column in candidates if units.unit_of_column(column) and not _is_a_size(column)]
        if len(candidates) == 1 or len(with_unit) == 1:
            return tuple(with_unit or candidates)
    # bad text under the right name is an error in its lines, and reported there
    for column in remaining:
        is_name = names_of[column] in VALUES and (names_of[column] != "time" or not shape.first)
        if is_name and column not in numeric:
            return (column,)
    raise NoColumn(file=file, role="value", columns=format_list(shape.header, SHOWN))


def _ascends(shape: Shape, index: int) -> bool:
    """Return whether each of the first rows, of which there are at least three, has a larger number than the last."""
    cells = [cell_of(row[index], shape.decimal.mark) for row in shape.first if index < len(row)]
    numbers = [float(cell.mean) for cell in cells if cell]
    return len(numbers) > 2 and all(before < after for before, after in pairwise(numbers))


def _is_a_size(column: str) -> bool:
    """Return whether a column's whole name is a unit of data: that of the blocks that something is measured with."""
    unit = units.find(column.strip())
    return unit is not None and unit.dimensions == {"information": 1}


def _is_numeric(shape: Shape, index: int) -> bool:
    """Return whether most of the first rows have a number in this column."""
    cells = [row[index] for row in shape.first if index < len(row) and not is_missing(row[index])]
    return bool(cells) and sum(cell_of(cell, shape.decimal.mark) is not None for cell in cells) * 2 > len(cells)
