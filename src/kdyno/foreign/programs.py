"""Putting files of benchmark programs together: which are variants, which are replicates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdyno.foreign import hyperfine, lmbench, perf_stat, pyperf, stress_ng, units
from kdyno.foreign.asked import Asked, Format
from kdyno.foreign.errors import MixedUnits, NoSize, NothingThere
from kdyno.foreign.gathered import Directions, Gathered, listed
from kdyno.foreign.series import Reading, Series
from kdyno.foreign.source import Source
from kdyno.judge.observations import Observations, Sample, Summary

READERS = {
    "hyperfine": hyperfine.read,
    "pyperf": pyperf.read,
    "lmbench": lmbench.read,
    "stress-ng": stress_ng.read,
    "perf": perf_stat.read,
}
ByVariant = dict[str, list[tuple[str, Series]]]
"""Variant -> (file, series) in the order of the files."""


def gather(sources: Sequence[Source], form: Format, asked: Asked) -> Gathered:
    """Read files of one program. Raises NothingThere, NoSize, MixedUnits and what the readers raise."""
    readings = [READERS[form](source) for source in sources]
    if not any(reading.series for reading in readings):
        raise NothingThere(file=sources[0].shown, format=form)
    commands = len({source.name for source in sources}) == 1 and form == "hyperfine"
    found: dict[str, ByVariant] = {}
    for source, reading in zip(sources, readings, strict=True):
        for series in reading.series:
            benchmark, variant = _names(source, series, commands)
            found.setdefault(benchmark, {}).setdefault(variant, []).append((source.shown, series))
    directions, single, observations = Directions(asked), True, []
    for benchmark, as_read in found.items():
        by_variant, unit = _one_unit(benchmark, as_read, asked.unit)
        files = min(len({file for file, _ in all_of}) for all_of in by_variant.values())
        single &= files == 1
        observations.append(
            Observations(
                benchmark=benchmark,
                unit=unit,
                direction=directions.of(benchmark, unit, next(iter(by_variant.values()))[0][1].direction or ""),
                description=benchmark,
                groups=_summaries(by_variant, asked)
                if files == 1 and _errors(by_variant)
                else _samples(by_variant, files),
            )
        )
    notes = _notes(sources, readings)
    if not single:
        notes.append("each file counts once for its variant, with the median of its values")
    return Gathered(
        observations=tuple(observations),
        notes=(*notes, *directions.notes),
        columns={},
        boots="each file's values look like one boot's" if single else "nothing says whether each file is another boot",
    )


def _names(source: Source, series: Series, commands: bool) -> tuple[str, str]:
    """(benchmark, variant): hyperfine's commands are the variants of a lone file, and the benchmarks of several."""
    if commands:
        return series.benchmark, series.command
    return series.command or series.benchmark, source.name


def _one_unit(benchmark: str, by_variant: ByVariant, wanted: str) -> tuple[ByVariant, str]:
    """Bring all values to one unit: the one `wanted` if that can be, else that of the first value, and seconds to one
    in which they aren't tiny. Raises MixedUnits."""
    every = [series for all_of in by_variant.values() for _, series in all_of]
    unit = every[0].unit
    if wanted and units.factor(unit, wanted) is not None:
        unit = units.shown(wanted)
    elif unit == "s":
        middle = float(np.median([x for series in every if series.unit == "s" for x in series.values]))
        unit = next((name for name, least in (("s", 1), ("ms", 1e-3), ("us", 1e-6)) if middle >= least), "ns")
    factors = {series.unit: units.factor(series.unit, unit) for series in every}
    for other, factor in factors.items():
        if factor is None:
            raise MixedUnits(benchmark=benchmark, one=unit, other=other)
    return {
        variant: [
            (
                file,
                Series(
                    benchmark=series.benchmark,
                    unit=unit,
                    values=tuple(x * (factors[series.unit] or 1.0) for x in series.values),
                    command=series.command,
                    error=series.error,
                    direction=series.direction,
                ),
            )
            for file, series in all_of
        ]
        for variant, all_of in by_variant.items()
    }, unit


def _notes(sources: Sequence[Source], readings: Sequence[Reading]) -> list[str]:
    """What the readers say, each with the files that it is said of; without them if it is all of them."""
    of: dict[str, list[str]] = {}
    for source, reading in zip(sources, readings, strict=True):
        for note in reading.notes:
            of.setdefault(note, []).append(source.shown)
    return [note if len(files) == len(sources) else f"{listed(files)}: {note}" for note, files in of.items()]


def _groups(by_variant: ByVariant, files: int, asked: Asked) -> dict[str, Sample] | dict[str, Summary]:
    return _summaries(by_variant, asked) if files == 1 and _errors(by_variant) else _samples(by_variant, files)


def _errors(by_variant: ByVariant) -> bool:
    """Whether all that is known are means with standard errors."""
    return all(series.error is not None for all_of in by_variant.values() for _, series in all_of)


def _summaries(by_variant: ByVariant, asked: Asked) -> dict[str, Summary]:
    found = {}
    for variant, [(file, series)] in by_variant.items():
        if not (asked.n and asked.n.isdecimal() and int(asked.n) > 0):
            raise NoSize(file=file, what=f"{series.benchmark} (perf stat -r doesn't write it)")
        n, mean = int(asked.n), series.values[0]
        found[variant] = Summary(mean=mean, sd=(series.error or 0.0) * mean * n**0.5, n=n)
    return found


def _samples(by_variant: ByVariant, files: int) -> dict[str, Sample]:
    """One value for each file where every variant has several; else all values of the file."""
    return {
        variant: Sample(
            values=np.array(
                [float(np.median(series.values)) for _, series in all_of]
                if files > 1
                else [x for _, series in all_of for x in series.values]
            )
        )
        for variant, all_of in by_variant.items()
    }
