"""Does the model rank kernels as the machine does? The same variants in both lanes, and their effects compared.

The wall lane must run under KVM that was proven to work: an emulator's times say nothing of a processor's.
"""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.frozen import Frozen
from kdyno.boot.kvm import why_not_kvm
from kdyno.boot.qemu import QEMU
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.stats.estimate import Estimate
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.model import RunReport
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts
from kdyno.understand.validate.effects import Agreement, Effect, agreement, sign_lines, summary, worst

WORST = 10
"""Effects that are shown of those with the wrong sign."""


class KvmNotProven(InfrastructureError):
    message = "the model can't be compared with this machine's times of kernels: {why}"
    hint = "`kdyno validate --library SOURCE` needs no KVM: it compares on functions of a kernel, run in user space"


class KvmNeedsTwoVariants(UserError):
    message = "experiment {name} has one variant: there are no effects to compare"
    hint = "name a second kernel under [variants]"


class RunLost(InfrastructureError):
    message = "boots of run {run} were lost: {boots}"
    hint = "the same command tries them again; what came through is kept"


class NoSharedKvmBenchmark(InfrastructureError):
    message = "runs {model} and {wall} have no benchmark that both lanes measured of a variant and the baseline"
    hint = "`kdyno report RUN` says what became of their boots"


@dataclass(frozen=True)
class BothLanes:
    """One experiment, judged twice."""

    model: RunReport
    wall: RunReport


class KernelEffect(Frozen):
    """One variant against the baseline in one benchmark: ratios of raw values, variant over baseline."""

    variant: str
    benchmark: str
    wall: float
    wall_low: float | None
    """Ends of the wall lane's interval; None where no spread is known."""
    wall_high: float | None
    model: float

    @property
    def clear(self) -> bool:
        """Whether the wall lane's interval excludes 1."""
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
    """What the values of the two runs are, in one line each: model, wall."""
    baseline: str
    effects: tuple[KernelEffect, ...]
    variants: tuple[OfVariant, ...]
    agreement: Agreement
    left_out: tuple[str, ...]
    """`variant, benchmark` that one of the lanes could not compare."""


def measure_kvm(experiment: Experiment, family: str, session: Session) -> BothLanes:
    """Carry the experiment out in both lanes: modelled cycles of a CPU family (a name or `file:PATH`), and KVM.

    What is on record is not done again. Raises KvmNotProven, KvmNeedsTwoVariants, RunLost, and what `run_experiment`
    raises.
    """
    if len(experiment.variants) < 2:
        raise KvmNeedsTwoVariants(name=experiment.name)
    if why := why_not_kvm(QEMU):
        raise KvmNotProven(why=why)
    pmu = PmuConfig(events="all", family=family, clock="cycles")
    lanes = {"model": experiment.machine.with_pmu(pmu), "wall": experiment.machine.in_timed_lane()}
    reports = {}
    for lane, machine in lanes.items():
        session.talk.say(f"{experiment.name} in the {lane} lane")
        done = run_experiment(experiment.model_copy(update={"machine": machine}), session, again=False)
        if done.outcome.lost:
            raise RunLost(run=done.run_id, boots="; ".join(f"{boot}: {why}" for boot, why in done.outcome.lost.items()))
        reports[lane] = assemble(session.store, done.run_id, Artefacts(session.state.artefacts), analysed=False)
    return BothLanes(**reports)


def compare_kvm(lanes: BothLanes) -> KvmReport:
    """Each effect that both lanes estimated. Pure. Raises NoSharedKvmBenchmark."""
    model, wall = _estimates(lanes.model), _estimates(lanes.wall)
    both = [key for key in wall if key in model]
    effects = tuple(_effect(key, wall[key], model[key]) for key in both)
    if not effects:
        raise NoSharedKvmBenchmark(model=lanes.model.run.id, wall=lanes.wall.run.id)
    named = dict.fromkeys(effect.variant for effect in effects)
    every = {_key(comparison): None for report in (lanes.wall, lanes.model) for comparison in report.comparisons}
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
            for name in named
        ),
        agreement=agreement([effect.effect() for effect in effects]),
        left_out=tuple(", ".join(key) for key in every if key not in both),
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
    """The report as text."""
    width = max(len(effect.benchmark) for effect in report.effects)
    rows = []
    for of_variant in report.variants:
        rows.append(f"{of_variant.variant} against {report.baseline}")
        rows.append(f"  {'benchmark':<{width}}  {'wall':>8}  {'interval':>18}  {'model':>8}")
        rows += [_row(effect, width) for effect in report.effects if effect.variant == of_variant.variant]
        rows += [f"  {summary(of_variant.agreement)}", ""]
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
