"""Putting output of benchmark programs together: which files are variants, and which are replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kdyno.foreign import units
from kdyno.foreign.errors import MixedUnits, NoSize, NothingThere
from kdyno.foreign.gathered import Directions, Gathered
from kdyno.foreign.readings import ProgramOutput, Series
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.sheet import whole_number
from kdyno.foreign.source import Source
from kdyno.judge.observations import Observations, Sample, Summary
from kdyno.text import listed

MOST_NOTES = 50

ByVariant = dict[str, list[tuple[str, Series]]]
"""Variant -> (file, series) in the order of the files."""


def gather(files: Sequence[tuple[Source, ProgramOutput]], request: JudgeRequest, format_name: str) -> Gathered:
    """Put files of one program together. Raises NothingThere, NoSize and MixedUnits."""
    if not any(output.series for _, output in files):
        raise NothingThere(file=files[0][0].shown, format=format_name)
    lone = len({source.name for source, _ in files}) == 1
    benchmarks: dict[str, ByVariant] = {}
    for source, output in files:
        for series in output.series:
            benchmark, variant = _names(source, series, lone)
            benchmarks.setdefault(benchmark, {}).setdefault(variant, []).append((source.shown, series))
    directions, single, observations = Directions(request), True, []
    for benchmark, as_read in benchmarks.items():
        by_variant, unit = _one_unit(benchmark, as_read, request.unit)
        count = min(len({file for file, _ in measured}) for measured in by_variant.values())
        single &= count == 1
        observations.append(
            Observations(
                benchmark=benchmark,
                unit=unit,
                direction=directions.of(benchmark, unit, next(iter(by_variant.values()))[0][1].direction or ""),
                description=benchmark,
                groups=_summaries(by_variant, request)
                if count == 1 and _only_means(by_variant)
                else _samples(by_variant, count),
            )
        )
    notes = _notes(files)
    if not single:
        notes.append("each file counts once for its variant, with the median of its values")
    return Gathered(
        observations=tuple(observations),
        notes=(*notes, *directions.notes),
        columns={},
        boots="each file's values look like one boot's" if single else "nothing says whether each file is another boot",
    )


def _names(source: Source, series: Series, lone: bool) -> tuple[str, str]:
    """(benchmark, variant): commands are the variants of a lone file, and the benchmarks of several files."""
    if lone and series.command is not None:
        return series.benchmark, series.command
    return series.command or series.benchmark, source.name


def _one_unit(benchmark: str, by_variant: ByVariant, wanted: str) -> tuple[ByVariant, str]:
    """Bring all values to one unit: the one `wanted` if that can be, else that of the first value, and seconds to one
    in which they aren't tiny. Raises MixedUnits."""
    all_series = [series for measured in by_variant.values() for _, series in measured]
    unit = all_series[0].unit
    if wanted and units.factor(unit, wanted) is not None:
        unit = units.shown(wanted)
    elif unit == "s":
        middle = float(np.median([value for series in all_series if series.unit == "s" for value in series.values]))
        unit = next((name for name, least in (("s", 1), ("ms", 1e-3), ("us", 1e-6)) if middle >= least), "ns")
    factors: dict[str, float] = {}
    for series in all_series:
        factor = units.factor(series.unit, unit)
        if factor is None:
            raise MixedUnits(benchmark=benchmark, unit=unit, other=series.unit)
        factors[series.unit] = factor
    converted = {
        variant: [(file, _scaled(series, factors[series.unit], unit)) for file, series in measured]
        for variant, measured in by_variant.items()
    }
    return converted, unit


def _scaled(series: Series, factor: float, unit: str) -> Series:
    return replace(series, unit=unit, values=tuple(value * factor for value in series.values))


def _notes(files: Sequence[tuple[Source, ProgramOutput]]) -> list[str]:
    """The readers' notes, each with the files that it is about, or without them if it is about all."""
    about: dict[str, list[str]] = {}
    for source, output in files:
        for note in output.notes:
            about.setdefault(note, []).append(source.shown)
    notes = [note if len(names) == len(files) else f"{listed(names)}: {note}" for note, names in about.items()]
    more = len(notes) - MOST_NOTES
    return [*notes[:MOST_NOTES], f"{more:,} more such notes"] if more > 0 else notes


def _only_means(by_variant: ByVariant) -> bool:
    """Whether nothing is there but means with standard errors."""
    return all(series.error is not None for measured in by_variant.values() for _, series in measured)


def _summaries(by_variant: ByVariant, request: JudgeRequest) -> dict[str, Summary]:
    summaries = {}
    for variant, [(file, series)] in by_variant.items():
        n, mean = whole_number(request.n or ""), series.values[0]
        if n is None:
            raise NoSize(file=file, what=f"{series.benchmark} (perf stat -r doesn't write it)")
        summaries[variant] = Summary(mean=mean, sd=(series.error or 0.0) * mean * n**0.5, n=n)
    return summaries


def _samples(by_variant: ByVariant, files: int) -> dict[str, Sample]:
    """One value for each file where every variant has several; else all values of the file."""
    return {
        variant: Sample(
            values=np.array(
                [float(np.median(series.values)) for _, series in measured]
                if files > 1
                else [value for _, series in measured for value in series.values]
            )
        )
        for variant, measured in by_variant.items()
    }
