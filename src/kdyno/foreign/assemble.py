"""Judging files: read, put together, judged, warned of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kdyno.foreign import baseline as baselines
from kdyno.foreign import claims, programs, sheet, summary, tables
from kdyno.foreign.asked import Asked, Format
from kdyno.foreign.caveats import caveats
from kdyno.foreign.check import contradicted
from kdyno.foreign.detect import NAMES, detect, is_claims
from kdyno.foreign.errors import MixedFormats, OneVariant, OnlyStatistics
from kdyno.foreign.gathered import Gathered, listed
from kdyno.foreign.source import Source, read
from kdyno.judge.observations import Observations, Sample
from kdyno.measurement import Benchmark

if TYPE_CHECKING:
    from kdyno.verdicts.model import FileReport, Value

MOST_VALUES = 20_000
"""Values that a report carries, for its plots; more are thinned evenly."""

ADVICE: dict[Format, str] = {
    "csv": "name the column of the variants with --variant, or one file for each variant: NAME=FILE",
    "table": "name the column of the variants with --variant",
    "hyperfine": "one file with several commands, or one file for each kernel: NAME=FILE",
}


def judge_files(named: Sequence[str], asked: Asked, claimed: Sequence[str] = ()) -> FileReport:
    """Read files (FILE or NAME=FILE), judge them, and return all that a renderer needs.

    `claimed` are files with published statistics to be checked; they are recognised among `named` as well. Raises the
    errors of kdyno.foreign.errors and of the judge, all of them user errors.
    """
    sources = [read(each) for each in named]
    statistics = [read(each) for each in claimed]
    if asked.format is None:
        statistics += [each for each in sources if is_claims(each)]
        sources = [each for each in sources if each not in statistics]
    if not sources:
        raise OnlyStatistics(file=statistics[0].shown)
    form, how = _format(sources, asked)
    gathered, asides = _gathered(sources, form, asked)
    for source in statistics:
        asides += [(grid, source.shown) for grid in sheet.grids(source)]
    said = [claim for grid, file in asides for claim in claims.read(grid, file, _published(gathered, statistics))]
    return _report(gathered, asked, (*sources, *statistics), form, how, contradicted(said, gathered.published))


def _format(sources: Sequence[Source], asked: Asked) -> tuple[Format, str]:
    """The format of all files, and how it was found out."""
    if asked.format:
        return asked.format, f"{NAMES[asked.format]} (--format {asked.format})"
    found = [detect(source, asked) for source in sources]
    for source, form in zip(sources, found, strict=True):
        if form != found[0]:
            raise MixedFormats(
                one=sources[0].shown, one_format=NAMES[found[0]], other=source.shown, other_format=NAMES[form]
            )
    return found[0], f"{NAMES[found[0]]} (recognised; else --format)"


def _gathered(sources: Sequence[Source], form: Format, asked: Asked) -> tuple[Gathered, list[tuple[sheet.Grid, str]]]:
    if form == "csv":
        return tables.gather_rows(sources, asked), []
    if form == "table":
        return tables.gather_summaries(sources, asked)
    return programs.gather(sources, form, asked), []


def _published(gathered: Gathered, statistics: Sequence[Source]) -> Sequence[summary.Published]:
    if not gathered.published and statistics:
        raise OnlyStatistics(file=statistics[0].shown)
    return gathered.published


def _report(
    gathered: Gathered,
    asked: Asked,
    sources: Sequence[Source],
    form: Format,
    how: str,
    contradictions: Sequence[str],
) -> FileReport:
    from kdyno.judge.analysis import analyse
    from kdyno.judge.compare import judge
    from kdyno.judge.estimate import CONFIDENCE
    from kdyno.verdicts.model import FileReport

    variants, observations = gathered.variants, gathered.observations
    baseline, chosen = baselines.choose(variants, asked.baseline)
    if len(variants) < 2:
        raise OneVariant(name=variants[0], advice=ADVICE.get(form, "one file for each variant: NAME=FILE"))
    judgement = judge(
        observations,
        variants,
        baseline,
        margin=asked.margin,
        alpha=asked.alpha,
        correction=asked.correction,
    )
    analyses = tuple(analyse(each, baseline, asked.alpha, asked.margin) for each in observations)
    values, thinned = _values(observations)
    return FileReport(
        title=listed(list(dict.fromkeys(source.shown for source in sources))),
        measured=f"{NAMES[form]}; measured by others, judged by kdyno",
        baseline=baseline,
        variants=variants,
        margin=asked.margin,
        alpha=asked.alpha,
        confidence=CONFIDENCE,
        correction=asked.correction,
        notices=(
            *contradictions,
            *caveats(gathered, baseline, analyses, judgement.comparisons, asked.alpha),
            *gathered.notes,
            *thinned,
        ),
        benchmarks=tuple(
            Benchmark(
                name=each.benchmark,
                test=each.benchmark,
                unit=each.unit,
                direction=each.direction,
                description=each.description,
            )
            for each in observations
        ),
        comparisons=judgement.comparisons,
        geometric_means=judgement.geometric_means,
        values=values,
        analyses=analyses,
        files=tuple(source.shown for source in sources),
        sha256=tuple(source.sha256 for source in sources),
        read_as=f"{how}; baseline {baseline}: {chosen}; {_better(observations)}",
        columns=dict(gathered.columns),
    )


def _better(observations: Sequence[Observations]) -> str:
    """Which direction is better, shown so that a wrong guess is seen."""
    ways = {way: [each.benchmark for each in observations if each.direction == way] for way in ("lower", "higher")}
    if not all(ways.values()):
        return f"{'lower' if ways['lower'] else 'higher'} is better"
    return f"lower is better of {listed(ways['lower'])}, higher of {listed(ways['higher'])}"


def _values(observations: Sequence[Observations]) -> tuple[tuple[Value, ...], tuple[str, ...]]:
    """The single values, for plots: thinned evenly where there are too many. The second part says so."""
    from kdyno.verdicts.model import Value

    groups = [
        (each.benchmark, variant, group)
        for each in observations
        for variant, group in each.groups.items()
        if isinstance(group, Sample)
    ]
    every = sum(len(group.values) for _, _, group in groups)
    most = max(50, MOST_VALUES // len(groups)) if groups and every > MOST_VALUES else every
    found = []
    for benchmark, variant, group in groups:
        n = len(group.values)
        places = range(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64).tolist()
        found += [
            Value(
                variant=variant,
                benchmark=benchmark,
                block=None if group.blocks is None else int(group.blocks[at]),
                order=None if group.order is None else int(group.order[at]),
                layout=None if group.clusters is None else int(group.clusters[at]),
                value=float(group.values[at]),
            )
            for at in places
        ]
    if len(found) == every:
        return tuple(found), ()
    return tuple(found), (f"plots show {len(found):,} of {every:,} values; verdicts rest on all of them",)
