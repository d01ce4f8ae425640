"""What one file says, before files are put together: a reader returns one of three kinds of reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kdyno.base.measurement import Direction
from kdyno.measure.readers.roles import Roles
from kdyno.measure.readers.sheet import LARGEST, LEAST, LIMITS, Grid, last_place

Frame = Any
"""A pandas.DataFrame with the columns `value`, `variant`, `benchmark`, `unit` and those of the other roles found;
all but `value` are categories. A column that has no role and may be a factor is there as LEFT and its name."""
LEFT = "left: "


@dataclass(frozen=True)
class Series:
    """The values of one benchmark in one file, in the order of measuring."""

    benchmark: str
    unit: str
    values: tuple[float, ...]
    command: str | None = None
    """What was run, where a file has several commands that may be the variants."""
    error: float | None = None
    """Standard error of the only value, which is a mean, as a fraction of it."""
    sd: float | None = None
    """Standard deviation of what the only value is the mean of, as a fraction of it."""
    population: bool = False
    """Whether `sd` has n in its denominator, and not n - 1."""
    n: int | None = None
    """How many measurements the only value sums up, where the file says it."""
    direction: Direction | None = None
    """None where the unit tells."""
    variant: str | None = None
    """What was measured, where a file holds several variants and names them."""
    step: float = 0.0
    """What values were rounded to, in their unit; 0 where they were written as precisely as they were known."""


ONE_PROCESS = (
    "the values of a file are of one process, with one memory layout: several files of each variant, named alike, say "
    "more (before=1.FILE before=2.FILE)"
)
"""The note of a program that repeats its measurement without starting anew."""


@dataclass(frozen=True)
class ProgramOutput:
    """What a benchmark program wrote."""

    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    """What the report says of the file; a note that several files share is printed once."""


@dataclass(frozen=True)
class LongTable:
    """A table with one value a row."""

    frame: Frame
    roles: Roles
    name: str
    """The variant that the file stands for where no column says it."""
    notes: tuple[str, ...] = ()
    missing: Mapping[str, int] = field(default_factory=dict)
    """Variant -> cells that say that nothing was measured."""


@dataclass(frozen=True)
class Published:
    """What was published of one variant and benchmark; numbers as they were written, since their last digits matter."""

    benchmark: str
    variant: str
    label: str
    """Another name of the variant in this benchmark: `Zen 3` in the column `CPU family`; or empty."""
    mean: str
    sd: str
    """Empty for a single figure, of whose spread nothing is known."""
    n: int
    unit: str
    direction: str
    left: Mapping[str, str] = field(default_factory=dict)
    """Column without a role -> what it has in this row."""
    benchmark_column: str = ""
    """The columns that the benchmark's name is from, as `--benchmark` takes them; empty if none is."""
    command: str = ""
    """What was run, where that is the variant of a lone file and the benchmark of several."""


@dataclass(frozen=True)
class SummaryTables:
    """Tables of means and standard deviations, and the published statistics beside them."""

    published: tuple[Published, ...]
    columns: Mapping[str, str]
    """Role -> the column that was taken for it."""
    claims: tuple[Grid, ...]
    """Tables of published statistics."""
    notes: tuple[str, ...] = ()
    """What the report says of what wasn't read."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """Variant -> cells that say that nothing was measured."""


Reading = ProgramOutput | LongTable | SummaryTables


def printed_series(benchmark: str, unit: str, texts: Sequence[str], direction: Direction | None = None) -> Series:
    """Return the series of one or more numbers that a program printed, which it rounded to the last place that one
    has.
    """
    return Series(benchmark, unit, tuple(map(float, texts)), direction=direction, step=max(map(last_place, texts)))


def positive(all_series: list[Series]) -> tuple[tuple[Series, ...], tuple[str, ...]]:
    """Return the series whose values all are positive, since only those can be compared, and notes on the others."""
    good = tuple(series for series in all_series if series.values and all(map(_is_positive, series.values)))
    first_bad: dict[str, float] = {}
    for series in all_series:
        for value in series.values:
            if not _is_positive(value):
                first_bad.setdefault(series.benchmark, value)
    return good, tuple(
        f"{benchmark} is {value:g}, "
        + (f"beyond what is judged ({LIMITS})" if value > 0 else "and ratios need positive numbers")
        + ": left out"
        for benchmark, value in first_bad.items()
    )


def _is_positive(value: float) -> bool:
    return LEAST < value < LARGEST
