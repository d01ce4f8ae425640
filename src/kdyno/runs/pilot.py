"""blocks = "auto": a short pilot run, and the cheapest plan that sees the effect asked for. Pure.

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
from kdyno.runs.experiment.plan import pilot_blocks, pilot_layouts, pilot_seed
from kdyno.store.records import BootRecord, RunRecord

FEWEST_BLOCKS = 4
COMES_FIRST = "a pilot comes first; how many blocks and iterations come after it is decided by what it saw"
SHOWN = 5
"""Benchmarks that are named where a plan is not enough for all."""

Readings = Mapping[tuple[str, int, str], Values]
"""(variant, block, benchmark) -> logarithms of the iterations' values."""


class PilotSaysNothing(UserError):
    message = "the pilot run {run} measured no benchmark in two blocks of the baseline and another variant"
    hint = "`kdyno show {run}` says what went wrong; or give the number of blocks yourself"


@dataclass(frozen=True)
class SettledExperiment:
    """An experiment whose numbers are decided, and why, in sentences."""

    experiment: Experiment
    why: tuple[str, ...]


def pilot_of(experiment: Experiment) -> Experiment:
    """The run that comes first. Nothing of it is judged together with the run that it plans."""
    return experiment.model_copy(
        update={
            "name": f"{experiment.name}-pilot",
            "auto": False,
            "blocks": pilot_blocks(experiment.layouts),
            "layouts": pilot_layouts(experiment.layouts),
            "seed": pilot_seed(experiment.seed),
            "judge": experiment.judge.model_copy(update={"looks": 1}),
        }
    )


def settle(
    experiment: Experiment, run: RunRecord, boots: Sequence[BootRecord], benchmarks: Sequence[Benchmark]
) -> SettledExperiment:
    """Decide iterations, blocks and layouts from the pilot. Raises PilotSaysNothing."""
    by_pair = _components(run, boots, benchmarks)
    if not by_pair:
        raise PilotSaysNothing(run=run.id)
    config = experiment.judge
    effect = config.effect or config.margin
    alpha = config.alpha / len(by_pair)  # what Holm asks of the smallest p
    most = experiment.layouts if experiment.layouts else config.most_blocks
    bounds = Bounds(
        iterations=experiment.workload.iterations_range,
        boots=(1, max(1, config.most_blocks // max(1, experiment.layouts))),
        replicates=(min(FEWEST_BLOCKS, most), most),
    )
    costs = _costs(run, boots)

    def planned(variances: Components, within: Bounds) -> Plan:
        return plan(variances, costs, effect, alpha=alpha, aim=config.power, bounds=within)

    worst = max((planned(variances, bounds) for variances in by_pair.values()), key=lambda one: one.seconds)
    # all benchmarks are measured in the same boots: the most demanding one decides how
    same = replace(
        bounds,
        iterations=(worst.iterations, worst.iterations),
        boots=(max(1, worst.boots_per_layout), max(1, worst.boots_per_layout)),
    )
    plans = {name: planned(variances, same) for name, variances in by_pair.items()}
    largest = max(plans.values(), key=lambda one: one.blocks)
    decided = experiment.model_copy(
        update={
            "auto": False,
            "blocks": largest.blocks,
            "layouts": largest.layouts,
            "workload": experiment.workload.with_iterations(worst.iterations),
        }
    )
    why = _why(run, largest, effect, config.power, {name: one for name, one in plans.items() if not one.enough})
    return SettledExperiment(decided.model_copy(update={"pilot": " ".join(why)}), why)


def _components(
    run: RunRecord, boots: Sequence[BootRecord], benchmarks: Sequence[Benchmark]
) -> dict[tuple[str, str], Components]:
    """(variant, benchmark) -> components of variance of its log-ratio to the baseline."""
    readings = _readings(boots, {benchmark.name: benchmark for benchmark in benchmarks})
    layouts = {boot.block: boot.layout_index for boot in boots}
    by_pair = {}
    for variant in (record.name for record in run.variants if record.name != run.baseline):
        for benchmark in benchmarks:
            nested: dict[int, list[Pair]] = defaultdict(list)
            for block, layout in sorted(layouts.items()):
                ours = readings.get((variant, block, benchmark.name))
                theirs = readings.get((run.baseline, block, benchmark.name))
                if ours is not None and theirs is not None:
                    nested[layout].append((ours, theirs))
            known = components(list(nested.values()))
            if known is not None:
                by_pair[variant, benchmark.name] = known
    return by_pair


def _readings(boots: Iterable[BootRecord], described: Mapping[str, Benchmark]) -> Readings:
    readings: dict[tuple[str, int, str], list[float]] = defaultdict(list)
    for boot in boots:
        for sample in boot.samples if boot.status == "ok" else ():
            if sample.usable:
                reading = math.log(value(sample, described[sample.benchmark]))
                readings[boot.variant, boot.block, sample.benchmark].append(reading)
    return {key: np.array(values) for key, values in readings.items()}


def _costs(run: RunRecord, boots: Sequence[BootRecord]) -> Costs:
    """Seconds of all variants together: of a boot until the agent is ready, of one round of all tests, of a link."""
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


def _why(
    run: RunRecord, decided: Plan, effect: float, aim: float, short: Mapping[tuple[str, str], Plan]
) -> tuple[str, ...]:
    layouts = f" over {decided.layouts} layouts" if decided.layouts else ""
    iterations = format_count(decided.iterations, "iteration")
    plan_line = (
        f"after the pilot run {run.id}: {decided.blocks} blocks{layouts}, {iterations} each, "
        f"to see {limit(effect)} % with {limit(aim)} % power."
    )
    why = (plan_line, *_noise(decided))
    if not short:
        return why
    worst = sorted(short.items(), key=lambda item: -item[1].half_width)[:SHOWN]
    named = ", ".join(
        f"{benchmark} of {variant} (± {percent(one.half_width)} % at most)" for (variant, benchmark), one in worst
    )
    more = f" and {len(short) - SHOWN} more" if len(short) > SHOWN else ""
    return (*why, f"Not enough, within the limit set, for: {named}{more}.")


def _noise(decided: Plan) -> tuple[str, ...]:
    """What the plan takes the noise to be; nothing where none was seen."""
    if not decided.noise_bound:
        return ()
    of = "layout" if decided.layouts else "block"
    return (
        f"That holds for noise of up to {percent(decided.noise_bound)} % from {of} to {of}: the pilot saw "
        f"{percent(decided.noise)} %, and it is at most that with {limit(CONFIDENCE)} % confidence.",
    )
