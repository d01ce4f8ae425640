"""blocks = "auto": a short pilot run, and the cheapest plan that sees the requested effect. Pure.

After Kalibera & Jones, "Rigorous benchmarking in reasonable time" (ISMM 2013).
"""

from __future__ import annotations

import math
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kdyno.base.arrays import Values
from kdyno.base.errors import UserError
from kdyno.base.measurement import Benchmark, value
from kdyno.base.text import format_count, limit, percent
from kdyno.judge.stats.planning.bound import CONFIDENCE
from kdyno.judge.stats.planning.design import Bounds, Costs, Plan, plan
from kdyno.judge.stats.planning.levels import Components, Pair, components
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import derived_seed, pilot_blocks, pilot_layouts
from kdyno.store.records import BootRecord, RunRecord

FEWEST_BLOCKS = 4
COMES_FIRST = "a pilot comes first; how many blocks and iterations come after it is decided by what it saw"
SHOWN = 5
"""The most benchmarks that are named when a plan is not enough for all."""

Readings = Mapping[tuple[str, int, str], Values]
"""(variant, block, benchmark) -> logarithms of the iterations' values."""


class PilotSaysNothing(UserError):
    message = "the pilot run {run} measured no benchmark in two blocks of the baseline and another variant"
    hint = "see `kdyno show {run}` for the cause; or set the number of blocks"


@dataclass(frozen=True)
class SettledExperiment:
    """An experiment with its numbers decided, and the reasons in sentences."""

    experiment: Experiment
    why: tuple[str, ...]


def pilot_of(experiment: Experiment) -> Experiment:
    """Return the pilot run of an experiment. It is not judged together with the run that it plans."""
    return experiment.model_copy(
        update={
            "name": f"{experiment.name}-pilot",
            "auto": False,
            "blocks": pilot_blocks(experiment.layouts),
            "layouts": pilot_layouts(experiment.layouts),
            "seed": derived_seed(experiment.seed, "pilot"),
            "judge": experiment.judge.model_copy(update={"looks": 1}),
            "confirm": None,
        }
    )


def settle(
    experiment: Experiment, run: RunRecord, boots: Sequence[BootRecord], benchmarks: Sequence[Benchmark]
) -> SettledExperiment:
    """Decide iterations, blocks and layouts from the pilot. Raises PilotSaysNothing."""
    components_by_pair = _components(run, boots, benchmarks)
    if not components_by_pair:
        raise PilotSaysNothing(run=run.id)
    config = experiment.judge
    effect = config.effect or config.margin
    alpha = config.alpha / len(components_by_pair)  # the level of the smallest p-value under Holm
    most = experiment.layouts if experiment.layouts else config.most_blocks
    bounds = Bounds(
        iterations=experiment.workload.iterations_range,
        boots=(1, max(1, config.most_blocks // max(1, experiment.layouts))),
        replicates=(min(FEWEST_BLOCKS, most), most),
    )
    costs = _costs(run, boots)

    def cheapest_plan(variances: Components, limits: Bounds) -> Plan:
        return plan(variances, costs, effect, alpha=alpha, aim=config.power, bounds=limits)

    worst = max(
        (cheapest_plan(variances, bounds) for variances in components_by_pair.values()), key=lambda one: one.seconds
    )
    # all benchmarks are measured in the same boots: the most demanding one decides how
    shared_bounds = replace(
        bounds,
        iterations=(worst.iterations, worst.iterations),
        boots=(max(1, worst.boots_per_layout), max(1, worst.boots_per_layout)),
    )
    plans = {name: cheapest_plan(variances, shared_bounds) for name, variances in components_by_pair.items()}
    largest = max(plans.values(), key=lambda one: one.blocks)
    decided = experiment.model_copy(
        update={
            "auto": False,
            "blocks": largest.blocks,
            "layouts": largest.layouts,
            "workload": experiment.workload.with_iterations(worst.iterations),
        }
    )
    reasons = _explain_plan(
        run, largest, effect, config.power, {name: one for name, one in plans.items() if not one.enough}
    )
    return SettledExperiment(decided.model_copy(update={"pilot": " ".join(reasons)}), reasons)


def _components(
    run: RunRecord, boots: Sequence[BootRecord], benchmarks: Sequence[Benchmark]
) -> dict[tuple[str, str], Components]:
    """Return (variant, benchmark) -> components of variance of the log-ratio to the baseline."""
    readings = _readings(boots, {benchmark.name: benchmark for benchmark in benchmarks})
    layouts = {boot.block: boot.layout_index for boot in boots}
    components_by_pair = {}
    for variant in (record.name for record in run.variants if record.name != run.baseline):
        for benchmark in benchmarks:
            nested: dict[int, list[Pair]] = defaultdict(list)
            for block, layout in sorted(layouts.items()):
                ours = readings.get((variant, block, benchmark.name))
                theirs = readings.get((run.baseline, block, benchmark.name))
                if ours is not None and theirs is not None:
                    nested[layout].append((ours, theirs))
            pair_components = components(list(nested.values()))
            if pair_components is not None:
                components_by_pair[variant, benchmark.name] = pair_components
    return components_by_pair


def _readings(boots: Iterable[BootRecord], described: Mapping[str, Benchmark]) -> Readings:
    readings: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for boot in boots:
        for sample in boot.samples if boot.status == "ok" else ():
            if sample.usable:
                reading = math.log(value(sample, described[sample.benchmark]))
                readings[boot.variant, boot.block, sample.benchmark].append(reading)
    return {key: np.array(values) for key, values in readings.items()}


def _costs(run: RunRecord, boots: Sequence[BootRecord]) -> Costs:
    """Return the costs of all variants together in seconds: a boot until the agent is ready, one iteration, a link."""
    ok = [boot for boot in boots if boot.status == "ok"]
    iterations = max((sample.iteration + 1 for boot in ok for sample in boot.samples), default=1)
    ready = statistics.median([boot.ready_seconds or 0.0 for boot in ok])
    measuring = statistics.median([boot.seconds - (boot.ready_seconds or 0.0) for boot in ok])
    links = [image.build_seconds for variant in run.variants for image in variant.images[1:]]
    width = len(run.variants)
    return Costs(
        iteration=max(1e-3, width * measuring / iterations),
        boot=max(1e-3, width * ready),
        layout=width * statistics.median(links) if links else 0.0,
    )


def _explain_plan(
    run: RunRecord, decided: Plan, effect: float, aim: float, short: Mapping[tuple[str, str], Plan]
) -> tuple[str, ...]:
    layouts = f" over {decided.layouts} layouts" if decided.layouts else ""
    iterations = format_count(decided.iterations, "iteration")
    plan_line = (
        f"after the pilot run {run.id}: {decided.blocks} blocks{layouts}, {iterations} each, "
        f"to see {limit(effect)} % with {limit(aim)} % power."
    )
    reasons = (plan_line, *_noise(decided))
    if not short:
        return reasons
    worst = sorted(short.items(), key=lambda item: -item[1].half_width)[:SHOWN]
    short_list = ", ".join(
        f"{benchmark} of {variant} (± {percent(one.half_width)} % at most)" for (variant, benchmark), one in worst
    )
    more = f" and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
    return (*reasons, f"Not enough, within the limit set, for: {short_list}{more}.")


def _noise(decided: Plan) -> tuple[str, ...]:
    """Return a sentence with the noise that the plan assumes; empty if the pilot saw no noise."""
    if not decided.noise_bound:
        return ()
    unit = "layout" if decided.layouts else "block"
    return (
        f"That holds for noise of up to {percent(decided.noise_bound)} % from {unit} to {unit}: the pilot saw "
        f"{percent(decided.noise)} %, and it is at most that with {limit(CONFIDENCE)} % confidence.",
    )
