"""Compares the effects of kernels in the model with those on this processor, on paths through kernels that are
processes (machine `uml`).

The processor times the very machine code that the emulated PMU counts. Half of the paths, those at even places of the
table, are for fitting a model; the others judge it. The rule was fixed before anything was timed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.base.text import percent
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.verdicts.model import RunReport
from kdyno.measure.cycles.evaluate import Role
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.paths.table import paths
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts
from kdyno.understand.explain.budgets import make_budgets
from kdyno.understand.explain.records import Recorded, common_boots, has_records, read_recording
from kdyno.understand.validate.effects import Agreement, Effect, agreement, sign_lines, summary
from kdyno.understand.validate.lanes import BothLanes, NoSharedEffect, measure_lanes
from kdyno.understand.validate.path_reasons import PathReason, path_reason, reason_lines

MODEL_BLOCKS = 2
"""Blocks of the model lane: counts repeat to the bit, and only the data of the paths differ."""
REASONS = 3
"""The number of paths of each variant whose reasons are given."""
WORST = 10
"""The number of paths that are shown of each variant: those that the model is furthest off."""


class NotAProcess(UserError):
    message = "experiment {name} has a machine of type `{type}`, whose kernels run no paths"
    hint = 'set type = "uml" in [machine]; `kdyno validate --kvm` is for kernels of guests'


class PathEffect(Frozen):
    """One variant against the baseline on one path. Ratios are speeds: above 1 the variant is faster."""

    variant: str
    path: str
    kind: str
    """`path`, or `library` for a loop of a function of lib/ alone."""
    role: Role
    silicon: float
    low: float | None
    """The ends of the interval on the processor; None without a known spread."""
    high: float | None
    model: float
    instructions: float | None
    """The same by instructions alone; None without PMU records."""

    @property
    def clear(self) -> bool:
        """Return whether the processor's interval excludes 1."""
        return self.low is not None and self.high is not None and not self.low <= 1 <= self.high

    def effect(self, modelled: float | None = None) -> Effect:
        return Effect(f"{self.path}, {self.variant}", self.silicon, self.clear, modelled or self.model)

    @property
    def disagreement(self) -> float:
        return abs(math.log(self.model / self.silicon))


class PathsOfVariant(Frozen):
    """One variant, over some paths."""

    variant: str
    scope: str
    """The paths: `paths`, `library loops` or `held-out paths`."""
    count: int
    silicon: float
    """Geometric means of speeds against the baseline."""
    model: float
    instructions: float | None
    inflation: float | None
    """ln(model) / ln(silicon): 1 is right, 2 promises twice as much; None if the processor sees less than 0.5 %."""
    agreement: Agreement
    of_instructions: Agreement | None


class PathLevel(Frozen):
    """Cycles of an operation of one path: of the core, and modelled. No factor is fitted."""

    variant: str
    path: str
    silicon: float
    model: float


class PathsReport(Frozen):
    """`kdyno validate --paths --json` prints it."""

    experiment: str
    cpu: str
    """The processor that was asked."""
    family: str
    """The family that the model is of."""
    model_run: str
    wall_run: str
    baseline: str
    effects: tuple[PathEffect, ...]
    variants: tuple[PathsOfVariant, ...]
    reasons: tuple[PathReason, ...]
    """Of each variant, the paths about which model and processor disagree most; none without PMU records."""
    levels: tuple[PathLevel, ...]
    level_error: float
    """The median of |modelled / native - 1| of levels."""
    left_out: tuple[str, ...]
    """`variant, path` for each pair that one of the lanes could not compare."""


def measure_paths(experiment: Experiment, family: str, session: Session) -> BothLanes:
    """Carry out the experiment on this processor and in the model.

    Raises NotAProcess and what `measure_lanes` raises.
    """
    if experiment.machine.runner != "kernel":
        raise NotAProcess(name=experiment.name, type=experiment.machine.type)
    return measure_lanes(experiment, family, MODEL_BLOCKS, session)


def compare_paths(lanes: BothLanes, family: str, artefacts: Artefacts) -> PathsReport:
    """Compare each effect that both lanes estimated. Raises NoSharedEffect and the errors of PMU records."""
    model, wall = _comparisons(lanes.model), _comparisons(lanes.wall)
    shared = [key for key in wall if key in model]
    if not shared:
        raise NoSharedEffect(model=lanes.model.run.id, wall=lanes.wall.run.id)
    recorded = _recordings(lanes.model, artefacts)
    instructions = _instructions(recorded, lanes.model)
    effects = tuple(_effect(key, wall[key], model[key], instructions) for key in shared)
    levels = tuple(_levels(shared, wall, model))
    errors = [abs(level.model / level.silicon - 1) for level in levels]
    return PathsReport(
        experiment=lanes.wall.title,
        cpu=str(lanes.wall.run.host.get("cpu", "an unknown processor")),
        family=family,
        model_run=lanes.model.run.id,
        wall_run=lanes.wall.run.id,
        baseline=lanes.wall.baseline,
        effects=effects,
        variants=tuple(_of_variants(effects)),
        reasons=tuple(_reasons(effects, wall, recorded, lanes.model)),
        levels=levels,
        level_error=float(np.median(errors)),
        left_out=tuple(", ".join(key) for key in {**wall, **model} if key not in shared),
    )


Key = tuple[str, str]
"""A variant and a path."""


def _comparisons(report: RunReport) -> dict[Key, Comparison]:
    return {(each.variant, each.benchmark): each for each in report.comparisons if each.estimate}


def _speed(ratio: float, comparison: Comparison) -> float:
    """Return a ratio of values as one of speeds."""
    return 1 / ratio if comparison.direction == "lower" else ratio


def _effect(key: Key, wall: Comparison, model: Comparison, instructions: Mapping[Key, float]) -> PathEffect:
    variant, name = key
    assert wall.estimate and model.estimate
    ends = [_speed(end, wall) for end in (wall.estimate.low, wall.estimate.high) if end is not None]
    return PathEffect(
        variant=variant,
        path=name,
        kind=paths()[name].kind,
        role=paths()[name].half,
        silicon=_speed(wall.estimate.ratio, wall),
        low=min(ends) if len(ends) == 2 else None,
        high=max(ends) if len(ends) == 2 else None,
        model=_speed(model.estimate.ratio, model),
        instructions=instructions.get(key),
    )


def _levels(
    keys: Iterable[Key], wall: Mapping[Key, Comparison], model: Mapping[Key, Comparison]
) -> Iterable[PathLevel]:
    """Yield the levels of variants, and of the baseline once for each path."""
    seen = set[str]()
    for variant, path in keys:
        native, modelled = wall[variant, path], model[variant, path]
        pairs = [(variant, native.variant_value, modelled.variant_value)]
        if path not in seen:
            seen.add(path)
            pairs.append(("", native.baseline_value, modelled.baseline_value))
        for name, cycles, counted in pairs:
            if cycles and counted:
                is_cost = native.direction == "lower"
                yield PathLevel(
                    variant=name,
                    path=path,
                    silicon=cycles if is_cost else 1 / cycles,
                    model=counted if is_cost else 1 / counted,
                )


def _recordings(report: RunReport, artefacts: Artefacts) -> Mapping[str, Recorded]:
    """Return the PMU records of the boots of one block, by variant; empty if no block has all of them."""
    boots = common_boots(report.boots, report.baseline, *report.others)
    if boots is None or not has_records(boots):
        return {}
    return {boot.variant: read_recording(boot, artefacts) for boot in boots}


def _instructions(recorded: Mapping[str, Recorded], report: RunReport) -> dict[Key, float]:
    """Return the ratio of instructions, baseline over variant."""
    if not recorded:
        return {}
    counts = {}
    for variant, recording in recorded.items():
        names = recording.benchmarks
        counts[variant] = {
            names[index]: _instructions_of(region, recording.record.names)
            for index, region in recording.record.regions.items()
            if index < len(names)
        }
    baseline = counts[report.baseline]
    return {
        (variant, name): baseline[name] / count
        for variant in report.others
        for name, count in counts[variant].items()
        if count and name in baseline
    }


def _instructions_of(region: Region, names: Sequence[str]) -> float:
    index = names.index("instructions")
    return float(sum(int(counts.sum(axis=0)[index]) for counts in region.iterations.values()))


def _reasons(
    effects: Sequence[PathEffect], wall: Mapping[Key, Comparison], recorded: Mapping[str, Recorded], report: RunReport
) -> Iterable[PathReason]:
    """Yield the reasons of the paths of each variant that the model is furthest off."""
    for variant in dict.fromkeys(effect.variant for effect in effects if recorded):
        paths_of_variant = [effect for effect in effects if effect.variant == variant and effect.kind == "path"]
        names = [effect.path for effect in _furthest(paths_of_variant)[:REASONS]]
        benchmarks = [benchmark for benchmark in report.benchmarks if benchmark.name in names]
        sides = (recorded[report.baseline], recorded[variant])
        budgets = make_budgets(report, benchmarks, sides, "").budgets
        budget_by_side = {(budget.benchmark, budget.variant): budget for budget in budgets}
        for name in names:
            pair = [budget_by_side.get((name, side.variant)) for side in sides]
            if pair[0] and pair[1] and (reason := path_reason(wall[variant, name], pair[0], pair[1])):
                yield reason


def _furthest(effects: Iterable[PathEffect]) -> list[PathEffect]:
    """Return effects, those first that the model is furthest off."""
    return sorted(effects, key=lambda effect: -effect.disagreement)


def _of_variants(effects: Sequence[PathEffect]) -> Iterable[PathsOfVariant]:
    for variant in dict.fromkeys(effect.variant for effect in effects):
        of_variant = [effect for effect in effects if effect.variant == variant]
        scopes = {
            "paths": [effect for effect in of_variant if effect.kind == "path"],
            "held-out paths": [effect for effect in of_variant if effect.kind == "path" and effect.role == "held-out"],
            "library loops": [effect for effect in of_variant if effect.kind == "library"],
        }
        for scope, chosen in scopes.items():
            if chosen:
                yield _summarised(variant, scope, chosen)


def _summarised(variant: str, scope: str, effects: Sequence[PathEffect]) -> PathsOfVariant:
    silicon, model = _mean(each.silicon for each in effects), _mean(each.model for each in effects)
    counted = [each.instructions for each in effects if each.instructions is not None]
    is_counted = len(counted) == len(effects)
    return PathsOfVariant(
        variant=variant,
        scope=scope,
        count=len(effects),
        silicon=silicon,
        model=model,
        instructions=_mean(counted) if is_counted else None,
        inflation=math.log(model) / math.log(silicon) if abs(math.log(silicon)) >= 0.005 else None,
        agreement=agreement([each.effect() for each in effects]),
        of_instructions=agreement([each.effect(each.instructions) for each in effects]) if is_counted else None,
    )


def _mean(ratios: Iterable[float]) -> float:
    """Return the geometric mean."""
    return math.exp(float(np.mean([math.log(ratio) for ratio in ratios])))


def lines(report: PathsReport) -> list[str]:
    """Return the report as lines of text."""
    width = max(len(effect.path) for effect in report.effects)
    rows = [f"speed against {report.baseline}, on {report.cpu} and in the model of {report.family}", ""]
    for row in report.variants:
        inflation = "" if row.inflation is None else f", {row.inflation:.2f} times the logarithm"
        counted = "" if row.instructions is None else f"; instructions alone {_percent(row.instructions)}"
        rows += [
            f"{row.variant}, {row.count} {row.scope}: the model said {_percent(row.model)} where this processor said "
            f"{_percent(row.silicon)}{inflation}{counted}",
            f"  {summary(row.agreement)}",
        ]
        if row.of_instructions:
            rows.append(f"  instructions alone: {summary(row.of_instructions)}")
        rows += [f"  {line}" for line in sign_lines(row.agreement)[:2]]
        if row.scope == "paths":
            chosen = [effect for effect in report.effects if effect.variant == row.variant and effect.kind == "path"]
            rows.append(f"  furthest off: {'':<{max(0, width - 12)}}  {'silicon':>8}  {'modelled':>8}  {'instr.':>8}")
            rows += [f"    {_row(effect, width)}" for effect in _furthest(chosen)[:WORST]]
            reasons = [reason for reason in report.reasons if reason.variant == row.variant]
            if reasons:
                rows.append("  where they disagree most, and what makes the model's difference:")
                rows += [f"    {text}" for text in reason_lines(reasons)]
        rows.append("")
    rows += [
        f"cycles of an operation, {len(report.levels):,} paths of all kernels: the model is off by "
        f"{percent(report.level_error)} % (median), without any factor fitted",
        *(f"left out, as one of the lanes has no estimate: {name}" for name in report.left_out),
        f"model: run {report.model_run}; wall: run {report.wall_run}",
    ]
    return rows


def _row(effect: PathEffect, width: int) -> str:
    counted = "-" if effect.instructions is None else _percent(effect.instructions)
    wrong = "  wrong sign" if effect.effect().sign_error else ""
    return f"{effect.path:<{width}}  {_percent(effect.silicon):>8}  {_percent(effect.model):>8}  {counted:>8}{wrong}"


def _percent(ratio: float) -> str:
    return f"{100 * (ratio - 1):+.1f} %"
