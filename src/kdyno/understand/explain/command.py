"""What `kdyno explain` does: find or make the PMU records, check that they belong to the run, compare."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.measurement import Benchmark
from kdyno.base.text import clean
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import Image
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest.pmu import Events
from kdyno.runs.session import Session
from kdyno.store.named_run import require_variant
from kdyno.understand.explain import line_tables
from kdyno.understand.explain.align import aligned
from kdyno.understand.explain.compare import ComparedSubject, explain
from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.model import Explanation
from kdyno.understand.explain.records import family_of, find_benchmark, unit_of
from kdyno.understand.explain.sides import SidesRequest, find_sides
from kdyno.understand.explain.tree import Frame


class NoBenchmark(UserError):
    message = "explain needs a benchmark of {variant}, or --budget"
    hint = "`kdyno report {run}` lists what was measured; --budget says of all benchmarks where their cycles go"


class BaselineItself(UserError):
    message = "{name} is the baseline: there is nothing to explain it against"
    hint = "name another variant ({others}), or another baseline with --baseline"


class NothingJudged(UserError):
    message = "{benchmark} of {variant} was not compared with the baseline: {why}"
    hint = "only a benchmark that both kernels ran can be explained"


class OnlyValues(UserError):
    message = "{benchmark} can't be explained: its values are what a command said, and kdyno knows no loop behind them"
    hint = "explain a benchmark of the agent's own tests"


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


def explain_benchmark(report: RunReport, request: ExplainRequest, *, session: Session) -> ExplainResult:
    """Explain one benchmark of one variant of a run. Raises the errors above and those of records and boots."""
    run = report.run
    variants = {variant.name: variant for variant in run.variants}
    require_variant(run.id, request.variant, list(variants))
    if request.variant == run.baseline:
        others = ", ".join(name for name in variants if name != run.baseline)
        raise BaselineItself(name=run.baseline, others=others or "it has none")
    benchmark = find_benchmark(run.id, report.benchmarks, request.benchmark)
    [comparison] = (
        candidate
        for candidate in report.comparisons
        if (candidate.variant, candidate.benchmark) == (request.variant, benchmark.name)
    )
    if not has_region(report, benchmark):
        raise OnlyValues(benchmark=benchmark.name)
    if comparison.estimate is None:
        raise NothingJudged(benchmark=benchmark.name, variant=request.variant, why=clean(comparison.reason))
    family = load_family(request.family) if request.family else None
    sides = (variants[run.baseline], variants[request.variant])
    wanted = SidesRequest(sides, (benchmark.test,), request.events, request.family)
    recorded_sides = find_sides(report, wanted, session=session)
    baseline, variant = (recorded.measured(benchmark) for recorded in recorded_sides.records)
    subject = ComparedSubject(benchmark.name, run.baseline, request.variant, unit_of(benchmark), recorded_sides.boots)
    explanation = explain(subject, baseline, variant, family or family_of(run, variant.record))
    explanation = _with_line_tables(
        explanation, {run.baseline: baseline, request.variant: variant}, recorded_sides.images
    )
    return ExplainResult(explanation, comparison, aligned(baseline, variant))


def has_region(report: RunReport, benchmark: Benchmark) -> bool:
    """Whether a region of the PMU is behind a benchmark; there is none behind what a command said."""
    samples = (sample for boot in report.boots for sample in boot.samples if sample.benchmark == benchmark.name)
    return all(sample.value is None for sample in samples)


def _with_line_tables(
    explanation: Explanation, measured: Mapping[str, MeasuredRegion], images: Mapping[str, Image | None]
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
