"""The content of one file, before files are put together: a reader returns one of three kinds of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kdyno.base.measurement import Direction
from kdyno.measure.readers.roles import Roles
from kdyno.measure.readers.sheet import LARGEST, LEAST, LIMITS, SheetGrid, last_place

Frame = Any
"""A pandas.DataFrame with the columns `value`, `variant`, `benchmark`, `unit` and those of the other roles found; all
but `value` are categories. The name of a column that has no role and may be a factor is LEFT and its own.
"""
LEFT = "left: "


@dataclass(frozen=True)
class FileSeries:
    """The values of one benchmark in one file, in the order of measuring."""

    benchmark: str
    unit: str
    values: tuple[float, ...]
    command: str | None = None
    """The command, if a file has several that may be the variants."""
    error: float | None = None
    """Relative standard error of the only value, which is a mean."""
    sd: float | None = None
    """Relative standard deviation of the values that the only value is the mean of."""
    population: bool = False
    """Whether `sd` has n in its denominator, and not n - 1."""
    n: int | None = None
    """The number of measurements that the only value sums up, if the file says it."""
    direction: Direction | None = None
    """The better direction; None if the unit shows it."""
    variant: str | None = None
    """The variant, if a file holds several and names them."""
    step: float = 0.0
    """The step that values were rounded to, in their unit; 0 if they were written as precisely as they were known."""


ONE_PROCESS = (
    "the values of a file are of one process, with one memory layout: several files of each variant, named alike, say "
    "more (before=1.FILE before=2.FILE)"
)
"""The note of a program that repeats its measurement without a new start."""


@dataclass(frozen=True)
class ProgramOutput:
    """The output of a benchmark program."""

    series: tuple[FileSeries, ...]
    notes: tuple[str, ...] = ()
    """The report's notes on the file; a note that several files share is printed once."""


@dataclass(frozen=True)
class LongTable:
    """A table with one value a row."""

    frame: Frame
    roles: Roles
    name: str
    """The variant that the file stands for if no column names it."""
    is_named: bool = False
    """Whether the user gave this name, as NAME=FILE."""
    notes: tuple[str, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    """Variant -> number of cells that say that nothing was measured."""
    failed: Mapping[str, int] = field(default_factory=dict)
    """Variant -> number of rows that say that their measurement failed."""


@dataclass(frozen=True)
class PublishedValue:
    """The published figures of one variant and benchmark; numbers as they were written, since their last digits
    matter.
    """

    benchmark: str
    variant: str
    label: str
    """Another name of the variant in this benchmark: `Zen 3` in the column `CPU family`; or empty."""
    mean: str
    sd: str
    """The standard deviation; empty for a single figure, whose spread is unknown."""
    n: int
    unit: str
    direction: str
    left: Mapping[str, str] = field(default_factory=dict)
    """Column without a role -> its cell in this row."""
    benchmark_column: str = ""
    """The columns that make the benchmark's name, as `--benchmark` takes them; empty if there are none."""
    command: str = ""
    """The command, if it is the variant of a lone file and the benchmark of several."""


@dataclass(frozen=True)
class SummaryTables:
    """Tables of means and standard deviations, and the published statistics that come with them."""

    published: tuple[PublishedValue, ...]
    columns: Mapping[str, str]
    """Role -> the column that was taken for it."""
    claims: tuple[SheetGrid, ...]
    """Tables of published statistics."""
    notes: tuple[str, ...] = ()
    """The report's notes on the parts that weren't read."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Variant -> number of cells that say that nothing was measured."""


Reading = ProgramOutput | LongTable | SummaryTables


def printed_series(benchmark: str, unit: str, texts: Sequence[str], direction: Direction | None = None) -> FileSeries:
    """Return the series of one or more numbers that a program printed, rounded to the last place that one of them
    has.
    """
    return FileSeries(benchmark, unit, tuple(map(float, texts)), direction=direction, step=max(map(last_place, texts)))


def positive(all_series: list[FileSeries]) -> tuple[tuple[FileSeries, ...], tuple[str, ...]]:
    """Return the series whose values are all positive, since only those can be compared, and notes on the others."""
    good = tuple(series for series in all_series if series.values and all(map(_is_positive, series.values)))
    first_bad: dict[str, float] = {}
    for series in all_series:
        for value in series.values:
            if not _is_positive(value):
                first_bad.setdefault(series.benchmark, value)
    return good, tuple(
        f"{benchmark} is {value:g}, "
        + (f"outside the range that can be judged ({LIMITS})" if value > 0 else "and ratios need positive numbers")
        + ": left out"
        for benchmark, value in first_bad.items()
    )


def _is_positive(value: float) -> bool:
    return LEAST < value < LARGEST
