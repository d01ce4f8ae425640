"""Judging files: reading them, joining them, judging, and listing their caveats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from kdyno.base.measurement import AnyBenchmark
from kdyno.base.text import format_list
from kdyno.judge.foreign import baseline as baselines
from kdyno.judge.foreign import examples, programs, summaries
from kdyno.judge.foreign.caveats import caveats
from kdyno.judge.foreign.check import contradictions
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.foreign.parts import mark_parts
from kdyno.judge.foreign.run_files import runs_note
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.verdicts.notices import note_parts
from kdyno.measure.readers import layout
from kdyno.measure.readers.errors import ManyVariants, MixedFormats, NoColumn, OneVariant, OnlyStatistics, TooLarge
from kdyno.measure.readers.formats.registry import BY_NAME, Reader, is_claims, recognise
from kdyno.measure.readers.readings import LongTable, ProgramOutput, Reading, SummaryTables
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.source import FileSource, read, read_all

if TYPE_CHECKING:
    from kdyno.judge.verdicts.model import BootValue, FileReport

MOST_VARIANTS = 200
MOST_BENCHMARKS = 2000
MOST_PAIRS = 50_000
"""Pairs of variants, over all benchmarks: each takes about a millisecond."""
LONGEST_NAME = 4000
"""Characters; a command line may be the name of a variant."""
MOST_VALUES = 20_000
"""Values that a report carries, for its plots; more are thinned evenly."""


def judge_files(
    names: Sequence[str], request: JudgeRequest, claim_names: Sequence[str] = (), own: Reader | None = None
) -> FileReport:
    """Read files (FILE or NAME=FILE), judge them, and return all data that a renderer needs.

    `claim_names` are files with published results about the data, statistics or means, to check; files of statistics
    are recognised among `names` as well. `own` is a reader of all files that isn't one of those with a name. Raise the
    errors of kdyno.measure.readers.errors and of the judge, all of them user errors.
    """
    sources = read_all(names)
    statistics = [read(name) for name in claim_names]
    if request.format is None and own is None:
        statistics += [source for source in sources if is_claims(source, request)]
        sources = [source for source in sources if source not in statistics]
    if not sources:
        raise OnlyStatistics(file=statistics[0].shown)
    reader, how = (own, own.title) if own else _reader(sources, request)
    gathered = gather(sources, reader, request)
    _require_two(gathered, sources, reader)
    _require_small(gathered, sources)
    wrong = contradictions(statistics, gathered, request)
    return _report(gathered, request, (*sources, *statistics), reader, how, wrong)


def _reader(sources: Sequence[FileSource], request: JudgeRequest) -> tuple[Reader, str]:
    """Return the reader of all files, and how it was chosen."""
    if request.format:
        reader = BY_NAME[request.format]
        return reader, f"{reader.title} (--format {reader.name})"
    readers = [recognise(source, request) for source in sources]
    for source, reader in zip(sources, readers, strict=True):
        if reader != readers[0]:
            first = readers[0].title
            raise MixedFormats(file=sources[0].shown, format=first, other=source.shown, other_format=reader.title)
    return readers[0], f"{readers[0].title} (recognised; else --format)"


def gather(sources: Sequence[FileSource], reader: Reader, request: JudgeRequest) -> Gathered:
    """Read files of one format and join them. Raise the errors of reading and of joining."""
    files = [(source, _reading(source, reader, request, sources)) for source in sources]
    if outputs := [(source, output) for source, output in files if isinstance(output, ProgramOutput)]:
        return programs.gather(outputs, request, reader.title, reader.excerpt)
    if tables := [(source, table) for source, table in files if isinstance(table, SummaryTables)]:
        return summaries.gather(tables, request, reader.title, reader.excerpt)
    from kdyno.judge.foreign import rows  # brings pandas, as does the reader of CSV

    return rows.gather([table for _, table in files if isinstance(table, LongTable)], request)


def _reading(source: FileSource, reader: Reader, request: JudgeRequest, sources: Sequence[FileSource]) -> Reading:
    try:
        return reader.read(source, request)
    except (NoColumn, ManyVariants) as error:
        example = examples.with_columns(source, sources)
        if len(sources) == 1 and "--variant" not in example and isinstance(error, NoColumn):
            layout.require_clear(source, request)
        raise error.with_example(example) from None


def _require_two(gathered: Gathered, sources: Sequence[FileSource], reader: Reader) -> None:
    """Raise OneVariant, with the ways to have two in its hint."""
    if len(gathered.variants) < 2:
        error = OneVariant(name=gathered.variants[0], advice=reader.lone_variant + "name one file for each variant")
        in_one = (
            examples.with_columns(sources[0], sources[:1], gathered.columns.get("variant", ""))
            if reader.name == "csv"
            else ""
        )
        raise error.with_example(in_one if "--variant" in in_one else examples.with_names(sources))


def _require_small(gathered: Gathered, sources: Sequence[FileSource]) -> None:
    """Raise TooLarge for more than anybody compares."""
    file = format_list([source.shown for source in sources])
    if len(gathered.variants) > MOST_VARIANTS:
        raise TooLarge(file=file, most=MOST_VARIANTS, what="variants")
    if len(gathered.observations) > MOST_BENCHMARKS:
        raise TooLarge(file=file, most=MOST_BENCHMARKS, what="benchmarks")
    if sum(math.comb(len(observed.groups), 2) for observed in gathered.observations) > MOST_PAIRS:
        raise TooLarge(file=file, most=MOST_PAIRS, what="pairs of variants, over all benchmarks")
    units = (observed.unit for observed in gathered.observations)
    benchmarks = (observed.benchmark for observed in gathered.observations)
    if max(map(len, (*gathered.variants, *benchmarks, *units)), default=0) > LONGEST_NAME:
        raise TooLarge(file=file, most=LONGEST_NAME, what="characters in a name")


def _report(
    gathered: Gathered,
    request: JudgeRequest,
    sources: Sequence[FileSource],
    reader: Reader,
    how: str,
    contradictions: Sequence[str],
) -> FileReport:
    from kdyno.judge.stats.compare import judge
    from kdyno.judge.stats.diagnostics.analysis import analyse
    from kdyno.judge.stats.estimate import CONFIDENCE
    from kdyno.judge.verdicts.model import FileReport

    variants, observations = gathered.variants, mark_parts(gathered.observations)
    baseline, chosen = baselines.choose(variants, request.baseline)
    judgement = judge(
        observations,
        variants,
        baseline,
        margin=request.margin,
        alpha=request.alpha,
        correction=request.correction,
        scope=gathered.scope,
    )
    analyses = tuple(
        analyse(observed, baseline, request.alpha, request.margin, judgement.family) for observed in observations
    )
    values, thinned = _values(observations)
    return FileReport(
        title=format_list(list(dict.fromkeys(source.shown for source in sources))),
        measured=f"{reader.title}; measured by others, judged by kdyno",
        baseline=baseline,
        variants=variants,
        margin=request.margin,
        alpha=request.alpha,
        confidence=CONFIDENCE,
        correction=request.correction,
        notices=(
            *contradictions,
            *caveats(gathered, baseline, analyses, judgement.comparisons, request.alpha),
            *runs_note(sources),
            *gathered.notes,
            *note_parts([observed.benchmark for observed in observations if observed.is_part], len(observations)),
            *thinned,
        ),
        benchmarks=tuple(
            AnyBenchmark(
                name=observed.benchmark,
                test=observed.benchmark,
                unit=observed.unit,
                direction=observed.direction,
                description=observed.description,
            )
            for observed in observations
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
    """Return which direction is better, shown so that a wrong guess is seen."""
    lower = [observed.benchmark for observed in observations if observed.direction == "lower"]
    higher = [observed.benchmark for observed in observations if observed.direction == "higher"]
    if lower and higher:
        return f"lower is better of {format_list(lower)}, higher of {format_list(higher)}"
    if len(lower) == len(observations) or len(higher) == len(observations):
        return f"{'lower' if lower else 'higher'} is better"
    known = f", {'lower' if lower else 'higher'} of {format_list(lower or higher)}" if lower or higher else ""
    unknown = [observed.benchmark for observed in observations if observed.direction is None]
    return f"the better direction of {format_list(unknown)} isn't known{known}"


def _values(observations: Sequence[Observations]) -> tuple[tuple[BootValue, ...], tuple[str, ...]]:
    """Return the single values, for plots: thinned evenly if there are too many. The second part says so."""
    from kdyno.judge.verdicts.model import BootValue

    groups = [
        (observed.benchmark, variant, group)
        for observed in observations
        for variant, group in observed.groups.items()
        if isinstance(group, ReplicateSample)
    ]
    total = sum(len(group.values) for _, _, group in groups)
    most = max(50, MOST_VALUES // len(groups)) if groups and total > MOST_VALUES else total
    values = []
    for benchmark, variant, group in groups:
        n = len(group.values)
        shown = range(n) if n <= most else np.linspace(0, n - 1, most).astype(np.int64).tolist()
        values += [
            BootValue(
                variant=variant,
                benchmark=benchmark,
                block=None if group.blocks is None else int(group.blocks[index]),
                order=None if group.order is None else int(group.order[index]),
                layout=None if group.clusters is None else int(group.clusters[index]),
                value=float(group.values[index]),
            )
            for index in shown
        ]
    if len(values) == total:
        return tuple(values), ()
    return tuple(values), (f"plots show {len(values):,} of {total:,} values; verdicts rest on all of them",)
