"""Compares the effects of kernels in the model with those on the machine: the same variants in both lanes.

The wall lane must run under KVM that was proven to work: times of an emulator don't show those of a processor.
"""

from __future__ import annotations

from kdyno.base.errors import InfrastructureError
from kdyno.base.frozen import Frozen
from kdyno.boot.kvm import why_not_kvm
from kdyno.boot.qemu import QEMU
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.stats.estimate import Estimate
from kdyno.judge.verdicts.model import RunReport
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.understand.validate.effects import Agreement, Effect, agreement, sign_lines, summary, worst
from kdyno.understand.validate.lanes import BothLanes, NoSharedEffect, measure_lanes, require_two_variants

WORST = 10
"""The number of effects with the wrong sign that are shown."""


class KvmNotProven(InfrastructureError):
    message = "the model cannot be compared with times of kernels on this machine: {why}"
    hint = "use `kdyno validate --library SOURCE`, which runs functions of a kernel in user space and works without KVM"


class KernelEffect(Frozen):
    """One variant against the baseline in one benchmark: ratios of raw values, variant over baseline."""

    variant: str
    benchmark: str
    wall: float
    wall_low: float | None
    """The ends of the interval in the wall lane; None without a known spread."""
    wall_high: float | None
    model: float

    @property
    def clear(self) -> bool:
        """Return whether the wall lane's interval excludes 1."""
        return self.wall_low is not None and self.wall_high is not None and not self.wall_low <= 1 <= self.wall_high

    def effect(self) -> Effect:
        return Effect(f"{self.benchmark}, {self.variant}", self.wall, self.clear, self.model)


class OfVariant(Frozen):
    """One variant, over its benchmarks."""

    variant: str
    agreement: Agreement


class KvmReport(Frozen):
    """`kdyno validate --kvm --json` prints it."""

    experiment: str
    model_run: str
    wall_run: str
    measured: tuple[str, str]
    """The description of the values of both runs, in one line each: model, wall."""
    baseline: str
    effects: tuple[KernelEffect, ...]
    variants: tuple[OfVariant, ...]
    agreement: Agreement
    left_out: tuple[str, ...]
    """`variant, benchmark` for each pair that one of the lanes could not compare."""


def measure_kvm(experiment: Experiment, family: str, session: Session) -> BothLanes:
    """Carry out the experiment in both lanes: modelled cycles of a CPU family (a name or `file:PATH`), and KVM.

    Boots on record are not repeated. Raises KvmNotProven, NeedsTwoVariants, RunLost, and what `run_experiment`
    raises.
    """
    require_two_variants(experiment)
    if why := why_not_kvm(QEMU):
        raise KvmNotProven(why=why)
    return measure_lanes(experiment, family, None, session)


def compare_kvm(lanes: BothLanes) -> KvmReport:
    """Compare each effect that both lanes estimated. Pure. Raises NoSharedEffect."""
    model, wall = _estimates(lanes.model), _estimates(lanes.wall)
    shared_keys = [key for key in wall if key in model]
    effects = tuple(_effect(key, wall[key], model[key]) for key in shared_keys)
    if not effects:
        raise NoSharedEffect(model=lanes.model.run.id, wall=lanes.wall.run.id)
    variant_names = dict.fromkeys(effect.variant for effect in effects)
    all_keys = {_key(comparison): None for report in (lanes.wall, lanes.model) for comparison in report.comparisons}
    return KvmReport(
        experiment=lanes.wall.title,
        model_run=lanes.model.run.id,
        wall_run=lanes.wall.run.id,
        measured=(lanes.model.measured, lanes.wall.measured),
        baseline=lanes.wall.baseline,
        effects=effects,
        variants=tuple(
            OfVariant(
                variant=name, agreement=agreement([effect.effect() for effect in effects if effect.variant == name])
            )
            for name in variant_names
        ),
        agreement=agreement([effect.effect() for effect in effects]),
        left_out=tuple(", ".join(key) for key in all_keys if key not in shared_keys),
    )


Key = tuple[str, str]
"""A variant and a benchmark."""


def _key(comparison: Comparison) -> Key:
    return comparison.variant, comparison.benchmark


def _estimates(report: RunReport) -> dict[Key, Estimate]:
    return {_key(comparison): comparison.estimate for comparison in report.comparisons if comparison.estimate}


def _effect(key: Key, wall: Estimate, model: Estimate) -> KernelEffect:
    variant, benchmark = key
    return KernelEffect(
        variant=variant,
        benchmark=benchmark,
        wall=wall.ratio,
        wall_low=wall.low,
        wall_high=wall.high,
        model=model.ratio,
    )


def lines(report: KvmReport) -> list[str]:
    """Return the report as lines of text."""
    width = max(len(effect.benchmark) for effect in report.effects)
    rows = []
    for variant in report.variants:
        rows.append(f"{variant.variant} against {report.baseline}")
        rows.append(f"  {'benchmark':<{width}}  {'wall':>8}  {'interval':>18}  {'model':>8}")
        rows += [_row(effect, width) for effect in report.effects if effect.variant == variant.variant]
        rows += [f"  {summary(variant.agreement)}", ""]
    rows += [f"all variants: {summary(report.agreement)}", *sign_lines(report.agreement)]
    if wrong := worst([effect.effect() for effect in report.effects], WORST):
        rows.append("where the model's sign is most wrong:")
        rows += [f"  {effect.name}: wall {effect.measured:.3f}, model {effect.modelled:.3f}" for effect in wrong]
    rows += [f"left out, as one of the lanes has no estimate: {name}" for name in report.left_out]
    return [
        *rows,
        f"model: run {report.model_run}, {report.measured[0]}",
        f"wall: run {report.wall_run}, {report.measured[1]}",
    ]


def _row(effect: KernelEffect, width: int) -> str:
    interval = "unknown"
    if effect.wall_low is not None and effect.wall_high is not None:
        interval = f"{_percent(effect.wall_low)} to {_percent(effect.wall_high)}"
    wrong = "  wrong sign" if effect.effect().sign_error else ""
    return (
        f"  {effect.benchmark:<{width}}  {_percent(effect.wall):>8}  {interval:>18}  {_percent(effect.model):>8}{wrong}"
    )


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.2f} %"
