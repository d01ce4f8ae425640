"""Carries out `kdyno explain`: finds or makes the PMU records, checks that they belong to the run, compares them."""

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
from kdyno.understand.explain.align import align_regions
from kdyno.understand.explain.compare import ComparedSubject, explain
from kdyno.understand.explain.measured import MeasuredRegion
from kdyno.understand.explain.model import Explanation
from kdyno.understand.explain.records import family_of, find_benchmark, unit_of
from kdyno.understand.explain.sides import SidesRequest, find_sides
from kdyno.understand.explain.tree import Frame


class NoBenchmark(UserError):
    message = "explain needs a benchmark of {variant}, or --budget"
    hint = "choose one of `kdyno report {run}`; or pass --budget for the cycles of all benchmarks"


class BaselineItself(UserError):
    message = "{name} is the baseline, and cannot be compared with itself"
    hint = "name another variant ({others}), or another baseline with --baseline"


class NothingJudged(UserError):
    message = "{benchmark} of {variant} was not compared with the baseline: {why}"
    hint = "name a benchmark that both kernels ran"


class OnlyValues(UserError):
    message = "{benchmark} cannot be explained: a command printed its values, and their loop is not known"
    hint = "name a benchmark of the agent's own tests"


@dataclass(frozen=True)
class ExplainRequest:
    """The request of the user; None accepts any value."""

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
    """The output of `kdyno explain --json`."""

    verdict: Comparison
    explanation: Explanation


def explain_benchmark(report: RunReport, request: ExplainRequest, *, session: Session) -> ExplainResult:
    """Explain one benchmark of one variant of a run. Raises the errors above and those of records and boots."""
    run = report.run
    variants = {variant.name: variant for variant in run.variants}
    require_variant(run.id, request.variant, list(variants))
    if request.variant == run.baseline:
        other_names = ", ".join(name for name in variants if name != run.baseline)
        raise BaselineItself(name=run.baseline, others=other_names or "it has none")
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
    sides_request = SidesRequest(sides, (benchmark.test,), request.events, request.family)
    recorded_sides = find_sides(report, sides_request, session=session)
    baseline, variant = (recorded.measured_region(benchmark) for recorded in recorded_sides.records)
    subject = ComparedSubject(benchmark.name, run.baseline, request.variant, unit_of(benchmark), recorded_sides.boots)
    family = family or family_of(run, variant.record)
    explanation = explain(subject, baseline, variant, family)
    explanation = explanation.model_copy(update={"notes": (family.gains_note(), *explanation.notes)})
    explanation = _with_line_tables(
        explanation, {run.baseline: baseline, request.variant: variant}, recorded_sides.images
    )
    return ExplainResult(explanation, comparison, align_regions(baseline, variant))


def has_region(report: RunReport, benchmark: Benchmark) -> bool:
    """Return whether a benchmark has a region of the PMU. Values that a command printed don't have one."""
    samples = (sample for boot in report.boots for sample in boot.samples if sample.benchmark == benchmark.name)
    return all(sample.value is None for sample in samples)


def _with_line_tables(
    explanation: Explanation, region_by_kernel: Mapping[str, MeasuredRegion], images: Mapping[str, Image | None]
) -> Explanation:
    """Return the explanation with its inlining confirmed, if a kernel was built with line tables."""
    inlining = list(explanation.inlining)
    for name, appeared in ((explanation.variant, True), (explanation.baseline, False)):
        image = images[name]
        claims = [claim for claim in inlining if claim.appeared == appeared]
        if image and claims:
            confirmed_claims = line_tables.confirm_inlining(claims, region_by_kernel[name], image.vmlinux)
            inlining = [claim for claim in inlining if claim.appeared != appeared] + confirmed_claims
    inlining.sort(key=lambda claim: (-claim.calls, claim.caller, claim.callee))
    return explanation.model_copy(update={"inlining": tuple(inlining)})
