"""Joining output of benchmark programs: which files are variants, and which are replicates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kdyno.base.text import format_list
from kdyno.judge.foreign.gathered import Directions, Gathered
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary
from kdyno.measure.readers import units
from kdyno.measure.readers.errors import MixedUnits, NoSize, NothingThere
from kdyno.measure.readers.readings import ONE_PROCESS, FileSeries, ProgramOutput
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import whole_number
from kdyno.measure.readers.source import FileSource

MOST_NOTES = 50
MOST_REASONS = 3
"""Notes that an error carries."""

ByVariant = dict[str, list[tuple[int, FileSeries]]]
"""Variant -> (number of the file, series) in the order of the files."""


def gather(
    files: Sequence[tuple[FileSource, ProgramOutput]], request: JudgeRequest, title: str, excerpt: str
) -> Gathered:
    """Join files of one program. Raise NothingThere, NoSize and MixedUnits."""
    empty = [(source, output) for source, output in files if not output.series]
    if empty and len({source.name for source, output in files if output.series}) < 2:
        source, output = empty[0]
        why = "".join(f"; {note}" for note in output.notes[:MOST_REASONS])
        raise NothingThere(file=source.shown, format=title, excerpt=excerpt, why=why)
    lone = len({source.name for source, _ in files}) == 1
    benchmarks: dict[str, ByVariant] = {}
    for number, (source, output) in enumerate(files):
        several = len({series.variant for series in output.series}) > 1
        for series in output.series:
            benchmark, variant = _names(source, series, lone, several)
            benchmarks.setdefault(benchmark, {}).setdefault(variant, []).append((number, series))
    directions, observations = Directions(request), []
    by_file: list[str] = []
    pooled: dict[str, list[str]] = {}
    for benchmark, as_read in benchmarks.items():
        by_variant, unit = _one_unit(benchmark, as_read, request.unit)
        counts = {variant: len({file for file, _ in measured}) for variant, measured in by_variant.items()}
        count = min(counts.values())
        if count > 1:
            by_file.append(benchmark)
        for variant, number in counts.items() if count == 1 else ():
            if number > 1:
                pooled.setdefault(variant, []).append(benchmark)
        all_series = [series for measured in by_variant.values() for _, series in measured]
        direction = directions.direction_of(benchmark, unit, all_series[0].direction or "")
        observations.append(
            Observations(
                benchmark=benchmark,
                unit=unit,
                direction=direction,
                description=benchmark,
                groups=_summaries(by_variant, request, files)
                if count == 1 and _only_means(by_variant)
                else _samples(by_variant, count),
                quantity=units.quantity(unit, benchmark, direction),
                step=max(series.step for series in all_series),
            )
        )
    notes = [note for note in _notes(files) if not (by_file and ONE_PROCESS in note)]

    def listed_if_partial(some: Sequence[str]) -> str:
        return "" if len(some) == len(benchmarks) else f" ({format_list(list(some))})"

    if by_file:
        notes.append(
            f"each file counts once for its variant, with the median of its values{listed_if_partial(by_file)}"
        )
    for some in dict.fromkeys(tuple(names) for names in pooled.values()):
        names = format_list([variant for variant, own in pooled.items() if tuple(own) == some])
        notes.append(
            f"all values of the files of {names} are taken together, because another variant has only one file"
            f"{listed_if_partial(some)}"
        )
    return Gathered(
        observations=tuple(observations),
        notes=(*notes, *directions.notes),
        columns={},
        boots="each file's values look like one boot's"
        if not by_file
        else "nothing says whether each file is another boot",
    )


def _names(source: FileSource, series: FileSeries, lone: bool, several: bool) -> tuple[str, str]:
    """Return (benchmark, variant): commands are the variants of a lone file, and the benchmarks of several files; a
    file's own names of variants are used alone for a lone file, and together with the file's name if one of several has
    several.
    """
    if lone and series.command is not None:
        return series.benchmark, series.command
    benchmark = series.command or series.benchmark
    if series.variant is None or not (lone or several):
        return benchmark, source.name
    return benchmark, series.variant if lone else f"{source.name} {series.variant}"


def _one_unit(benchmark: str, by_variant: ByVariant, wanted: str) -> tuple[ByVariant, str]:
    """Bring all values to one unit: the unit `wanted` if possible, else that of the first value, and seconds to one in
    which they aren't tiny. Raise MixedUnits.
    """
    all_series = [series for measured in by_variant.values() for _, series in measured]
    unit = all_series[0].unit
    if wanted and units.factor(unit, wanted) is not None:
        unit = units.format_unit(wanted)
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
        variant: [(file, _scale_series(series, factors[series.unit], unit)) for file, series in measured]
        for variant, measured in by_variant.items()
    }
    return converted, unit


def _scale_series(series: FileSeries, factor: float, unit: str) -> FileSeries:
    values = tuple(value * factor for value in series.values)
    return replace(series, unit=unit, values=values, step=series.step * factor)


def _notes(files: Sequence[tuple[FileSource, ProgramOutput]]) -> list[str]:
    """Return the readers' notes, each with the files that it is about, or without them if it is about all."""
    files_by_note: dict[str, list[str]] = {}
    for source, output in files:
        for note in output.notes:
            files_by_note.setdefault(note, []).append(source.shown)
    notes = [
        note if len(names) == len(files) else f"{format_list(names)}: {note}" for note, names in files_by_note.items()
    ]
    more = len(notes) - MOST_NOTES
    return [*notes[:MOST_NOTES], f"{more:,} more such notes"] if more > 0 else notes


def _only_means(by_variant: ByVariant) -> bool:
    """Return whether there is just one mean for each variant, with its standard error or deviation."""
    return all(
        len(measured) == 1 and (measured[0][1].error is not None or measured[0][1].sd is not None)
        for measured in by_variant.values()
    )


def _summaries(
    by_variant: ByVariant, request: JudgeRequest, files: Sequence[tuple[FileSource, ProgramOutput]]
) -> dict[str, Summary]:
    summaries = {}
    for variant, [(number, series)] in by_variant.items():
        n, mean = series.n or whole_number(request.n or ""), series.values[0]
        if n is None:
            what = f"the mean of {series.command or series.benchmark}"
            raise NoSize(file=files[number][0].shown, what=what)
        if series.sd is None:
            sd = (series.error or 0.0) * mean * n**0.5
        else:
            sd = series.sd * mean * ((n / (n - 1)) ** 0.5 if series.population and n > 1 else 1.0)
        summaries[variant] = Summary(mean=mean, sd=sd, n=n)
    return summaries


def _samples(by_variant: ByVariant, files: int) -> dict[str, ReplicateSample]:
    """Return one value for each file if every variant has several, and the file as its boot; else all values of the
    file, whose boots are unknown.
    """
    samples = {}
    for variant, measured in by_variant.items():
        by_file: dict[int, list[float]] = {}
        for number, series in measured:
            by_file.setdefault(number, []).extend(series.values)
        if files > 1:
            medians = np.array([float(np.median(values)) for values in by_file.values()])
            samples[variant] = ReplicateSample(values=medians, boots=np.array(list(by_file), np.int64))
        else:
            samples[variant] = ReplicateSample(values=np.concatenate([np.array(values) for values in by_file.values()]))
    return samples
