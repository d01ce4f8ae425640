"""One experiment, start to end: prepare, build, boot, judge. What was done before is not done again."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from kdyno import __version__
from kdyno.experiment.models import Experiment
from kdyno.judge.sequential import look_ends
from kdyno.line.boots import Boots, Outcome
from kdyno.line.checks import check_kernels, checks_left
from kdyno.line.forecast import forecast
from kdyno.line.images import Images, build_images, require_cpus
from kdyno.line.outlook import ahead_of, run_ahead
from kdyno.line.prepare import Prepared, prepare
from kdyno.line.run_plan import RunPlan, plan_run
from kdyno.line.train import make_inputs
from kdyno.state import State
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import RunRecord, VariantRecord
from kdyno.store.store import Store
from kdyno.talk import Talk


@dataclass(frozen=True)
class Done:
    """Which run it became, and what its boots came to."""

    run_id: str
    outcome: Outcome


def run_experiment(experiment: Experiment, state: State, store: Store, talk: Talk, *, again: bool) -> Done:
    """Carry out an experiment, or what is left of it; with `again` carry it out once more.

    Where blocks are to be found out, a pilot comes first: a run of its own, of which nothing is judged again.
    Ctrl-C and kill -9 lose at most the boots in flight: the same call goes on from there.
    """
    with state.in_use():
        return _run_all(experiment, state, store, talk, again=again)


def _run_all(experiment: Experiment, state: State, store: Store, talk: Talk, *, again: bool) -> Done:
    if experiment.auto:
        from kdyno.line.pilot import COMES_FIRST, pilot_of, settle

        talk.say(COMES_FIRST)
        done = _run(pilot_of(experiment), state, store, talk, again=again)
        pilot = store.run(done.run_id)
        settled = settle(experiment, pilot, store.boots(pilot.id), store.benchmarks(pilot.id))
        for line in settled.why:
            talk.say(line)
        experiment = settled.experiment
    return _run(experiment, state, store, talk, again=again)


def _run(experiment: Experiment, state: State, store: Store, talk: Talk, *, again: bool) -> Done:
    prepared = prepare(experiment, state, talk)
    plan = _choose(prepared, store, again=again)
    waiting = f"run {plan.id} is being carried out by another kdyno: waiting for it"
    with state.lock(f"run-{plan.id}", on_wait=lambda: talk.say(waiting)):
        progress = plan.progress(store)
        if progress.is_complete and store.has_run(plan.id) and not checks_left(prepared, store):
            talk.say(f"run {plan.id} is complete: nothing to do (--again carries the experiment out once more)")
            return Done(plan.id, Outcome(given_up=progress.given_up))
        prepared.require_cpu()
        ahead = forecast(prepared, plan, state, store)
        for line in run_ahead(ahead, experiment, len(experiment.workload.benchmark_names())):
            talk.say(line)
        with talk.watching(ahead_of(ahead, experiment.name)):
            make_inputs(prepared.trainings, state, store, talk)
            images = build_images(prepared.plans, state, talk)
            require_cpus(experiment.machine, images)
            store.begin(_record(plan, prepared, images), plan.cells)
            lost = check_kernels(prepared, images, state, store, talk)
            boots = Boots(plan, prepared, images, state=state, store=store, talk=talk)
            boots.outcome.lost |= lost
            return Done(plan.id, _until_decided(boots, experiment, store, talk))


def _choose(prepared: Prepared, store: Store, *, again: bool) -> RunPlan:
    """The experiment's own run, or with `again` its first repeat that isn't complete."""
    repeat = 1 if again else 0
    while True:
        plan = plan_run(prepared, repeat)
        if not again or not (store.has_run(plan.id) and plan.progress(store).is_complete):
            return plan
        repeat += 1


def _record(plan: RunPlan, prepared: Prepared, images: Images) -> RunRecord:
    experiment, about = prepared.experiment, prepared.about
    return RunRecord(
        id=plan.id,
        name=experiment.name,
        created=datetime.now(UTC),
        experiment=experiment.model_dump_json(),
        baseline=experiment.baseline,
        blocks=experiment.blocks,
        layouts=experiment.layouts,
        seed=experiment.seed,
        lane=about.lane,
        machine=about.facts,
        host=about.host,
        notices=(*about.notices, *experiment.workload.notices(about.lane), *filter(None, [experiment.pilot])),
        margin=experiment.judge.margin,
        alpha=experiment.judge.alpha,
        correction=experiment.judge.correction,
        looks=experiment.judge.looks,
        kdyno=__version__,
        variants=tuple(
            VariantRecord(name=name, recipe=recipe, images=tuple(image.record for image in images.get(name, ())))
            for name, recipe in experiment.variants.items()
        ),
    )


def _until_decided(boots: Boots, experiment: Experiment, store: Store, talk: Talk) -> Outcome:
    """Carry out the boots; a group-sequential run ends at the first look that leaves nothing undecided."""
    *before, last = look_ends(experiment.blocks, experiment.judge.looks)
    for look, blocks in enumerate(before, start=1):
        outcome = boots.carry_out(blocks)
        if outcome.lost:
            return outcome
        left = _undecided(store, boots.plan.id, boots.artefacts)
        if not left:
            store.stop(boots.plan.id, blocks)
            talk.say(
                f"look {look}: nothing is undecided after {blocks} of {last} blocks: the run ends here, as planned"
            )
            return outcome
        talk.say(f"look {look}, after {blocks} of {last} blocks: {left} undecided")
    return boots.carry_out(last)


def _undecided(store: Store, run_id: str, artefacts: Artefacts) -> int:
    """How many comparisons of a run its last look left undecided."""
    from kdyno.verdicts.assemble import assemble  # only a group-sequential run is judged on the way

    report = assemble(store, run_id, artefacts, analysed=False)
    return sum(comparison.verdict == "undecided" for comparison in report.comparisons)
