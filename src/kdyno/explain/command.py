"""What `kdyno explain` does: find or make the PMU records, check that they belong to the run, compare."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from kdyno.cycles.family import load_family
from kdyno.digests import file_digest
from kdyno.errors import InfrastructureError, UserError
from kdyno.experiment.models import Experiment
from kdyno.explain import line_tables
from kdyno.explain.align import aligned
from kdyno.explain.compare import Subject, explain
from kdyno.explain.measured import Measured
from kdyno.explain.model import Explanation
from kdyno.explain.records import Recorded, common_boots, family_of, find_benchmark, has_records, of_boot, unit_of
from kdyno.explain.tree import Frame
from kdyno.frozen import Frozen
from kdyno.instrument.pmu import Events, PmuConfig
from kdyno.instrument.pmu_record import PmuRecord, read_pmu_record
from kdyno.judge.compare import Comparison
from kdyno.kernel.image import Image
from kdyno.kernel.images import ImageMissing, load_image
from kdyno.line.pmuboot import pmu_boot
from kdyno.measurement import Benchmark
from kdyno.state import State
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord, RunRecord, VariantRecord
from kdyno.store.store import Store
from kdyno.talk import Talk
from kdyno.text import clean
from kdyno.verdicts.model import RunReport


class UnknownVariant(UserError):
    message = "run {run} has no variant {name}"
    hint = "did you mean {near}? variants: {known}"


class BaselineItself(UserError):
    message = "{name} is the baseline: there is nothing to explain it against"
    hint = "name another variant ({others}), or another baseline with --baseline"


class NothingJudged(UserError):
    message = "{benchmark} of {variant} was not compared with the baseline: {why}"
    hint = "only a benchmark that both kernels ran can be explained"


class OnlyValues(UserError):
    message = "{benchmark} can't be explained: its values are what a command said, and kdyno knows no loop behind them"
    hint = "explain a benchmark of the agent's own tests"


class NoKernel(UserError):
    message = "run {run} has no image of {variant}: its boots are replays, without PMU records"
    hint = "explain a run of the machine qemu"


class ImageReplaced(InfrastructureError):
    message = "the PMU record of {variant} was made with another vmlinux than {vmlinux}"
    hint = "the image was replaced since: bring it back, or run the experiment again (kdyno run --again)"


class ExperimentUnreadable(InfrastructureError):
    message = "the experiment that run {run} has on record can't be carried out: {why}"
    hint = "another version of kdyno, or somebody else, wrote it; carry the experiment out again from its file"


@dataclass(frozen=True)
class ExplainRequest:
    """What the user asked for; None where anything will do."""

    variant: str
    benchmark: str
    events: Events | None = None
    family: str | None = None


@dataclass(frozen=True)
class ExplainResult:
    """An explanation, the verdict that it explains, and the stacks behind it."""

    explanation: Explanation
    comparison: Comparison
    stacks: Frame


class Explained(Frozen):
    """What `kdyno explain --json` prints."""

    verdict: Comparison
    explanation: Explanation


@dataclass(frozen=True)
class _Pair:
    """Both records, the baseline's first, and the boots that they are from."""

    records: tuple[Recorded, Recorded]
    boots: str


def explain_benchmark(
    report: RunReport, request: ExplainRequest, *, state: State, store: Store, talk: Talk
) -> ExplainResult:
    """Explain one benchmark of one variant of a run. Raises the errors above and those of records and boots."""
    run = report.run
    variants = {variant.name: variant for variant in run.variants}
    _refuse(run.id, request.variant, run.baseline, list(variants))
    benchmark = find_benchmark(run.id, report.benchmarks, request.benchmark)
    [comparison] = (
        candidate
        for candidate in report.comparisons
        if (candidate.variant, candidate.benchmark) == (request.variant, benchmark.name)
    )
    samples = (sample for boot in report.boots for sample in boot.samples if sample.benchmark == benchmark.name)
    if any(sample.value is not None for sample in samples):
        raise OnlyValues(benchmark=benchmark.name)
    if comparison.estimate is None:
        raise NothingJudged(benchmark=benchmark.name, variant=request.variant, why=clean(comparison.reason))
    family = load_family(request.family) if request.family else None
    sides = (variants[run.baseline], variants[request.variant])
    pair = _recorded(report, sides, request, state) or _booted(report, sides, benchmark, request, state, store, talk)
    layout = _layout(report, sides)
    images = {side.name: _image_if_there(side, layout, state) for side in sides}
    for recorded in pair.records:
        refuse_replaced(recorded.variant, recorded.record, images[recorded.variant], state)
    baseline, variant = (recorded.measured(benchmark) for recorded in pair.records)
    subject = Subject(benchmark.name, run.baseline, request.variant, unit_of(benchmark), pair.boots)
    explanation = explain(subject, baseline, variant, family or family_of(run, variant.record))
    explanation = _with_line_tables(explanation, {run.baseline: baseline, request.variant: variant}, images)
    return ExplainResult(explanation, comparison, aligned(baseline, variant))


def _refuse(run: str, name: str, baseline: str, known: Sequence[str]) -> None:
    if name not in known:
        near = (difflib.get_close_matches(name, known, n=1, cutoff=0.0) or known)[0]
        raise UnknownVariant(run=run, name=name, near=near, known=", ".join(known))
    if name == baseline:
        raise BaselineItself(
            name=name, others=", ".join(variant for variant in known if variant != baseline) or "it has none"
        )


def _recorded(
    report: RunReport, sides: tuple[VariantRecord, VariantRecord], request: ExplainRequest, state: State
) -> _Pair | None:
    """The records that the run's own boots carry, if they have what is requested."""
    boots = common_boots(report.boots, sides[0].name, sides[1].name)
    if boots is None or not has_records(boots):
        return None
    artefacts = Artefacts(state.artefacts)
    baseline, variant = (of_boot(boot, artefacts) for boot in boots)
    if not (_fits(baseline.record, request) and _fits(variant.record, request)):
        return None
    return _Pair((baseline, variant), _block(boots[0]))


def _block(boot: BootRecord) -> str:
    return f"the boots of block {boot.block}, seed {boot.seed}"


def _fits(record: PmuRecord, request: ExplainRequest) -> bool:
    return (request.events != "all" or record.events == "all") and request.family in (None, record.family)


def _booted(
    report: RunReport,
    sides: tuple[VariantRecord, VariantRecord],
    benchmark: Benchmark,
    request: ExplainRequest,
    state: State,
    store: Store,
    talk: Talk,
) -> _Pair:
    """Boot both images once for the benchmark's test, as the run did; boots that were made before are taken again."""
    layout = _layout(report, sides)
    images = [_image(report.run.id, side, layout, state) for side in sides]
    experiment = _experiment(report.run)
    boots = common_boots(report.boots, sides[0].name, sides[1].name)
    seed = boots[0].seed if boots else report.run.seed
    records = []
    with talk.working("booting with the emulated PMU") as advance:
        for number, (side, image) in enumerate(zip(sides, images, strict=True)):
            advance(number, len(sides), side.name)
            booted = pmu_boot(
                image,
                (benchmark.test,),
                seed=seed,
                events=request.events or "all",
                family=request.family or PmuConfig().family,
                state=state,
                store=store,
                talk=talk,
                params=experiment.workload.params_of(benchmark.test),
                cmdline=side.recipe.cmdline,
                settings=experiment.machine,
            )
            records.append(
                Recorded(side.name, read_pmu_record(booted.record), booted.benchmarks, booted.work, absent={})
            )
        advance(len(sides), len(sides), "done")
    return _Pair((records[0], records[1]), f"one boot of each, made to explain it, seed {seed}")


def _experiment(run: RunRecord) -> Experiment:
    try:
        return Experiment.model_validate_json(run.experiment)
    except ValidationError as error:
        raise ExperimentUnreadable(run=run.id, why=error.errors(include_url=False)[0]["msg"]) from error


def _layout(report: RunReport, sides: tuple[VariantRecord, VariantRecord]) -> int:
    """The layout that both booted in the block that is explained."""
    boots = common_boots(report.boots, sides[0].name, sides[1].name)
    return boots[0].layout_index if boots else 0


def _image(run: str, variant: VariantRecord, layout: int, state: State) -> Image:
    """Raises NoKernel, ImageMissing and ImageCorrupt."""
    if not variant.images:
        raise NoKernel(run=run, variant=variant.name)
    return load_image(variant.images[layout].key, state)


def _image_if_there(variant: VariantRecord, layout: int, state: State) -> Image | None:
    try:
        return load_image(variant.images[layout].key, state) if variant.images else None
    except ImageMissing:
        return None


def refuse_replaced(variant: str, record: PmuRecord, image: Image | None, state: State) -> None:
    """Raise ImageReplaced unless the record's addresses are those of the image; an image that is gone says nothing."""
    if image and record.image and file_digest(image.vmlinux, state) != record.image:
        raise ImageReplaced(variant=variant, vmlinux=image.vmlinux)


def _with_line_tables(
    explanation: Explanation, measured: Mapping[str, Measured], images: Mapping[str, Image | None]
) -> Explanation:
    """Confirm what seems to be inlined, where a kernel was built with line tables."""
    inlining = list(explanation.inlining)
    for name, appeared in ((explanation.variant, True), (explanation.baseline, False)):
        image = images[name]
        claims = [claim for claim in inlining if claim.appeared == appeared]
        if image and claims:
            confirmed = line_tables.confirmed(claims, measured[name], image.vmlinux)
            inlining = [claim for claim in inlining if claim.appeared != appeared] + confirmed
    inlining.sort(key=lambda claim: (-claim.calls, claim.caller, claim.callee))
    return explanation.model_copy(update={"inlining": tuple(inlining)})
