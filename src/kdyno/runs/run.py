"""Carries out one experiment: prepare, build, boot, judge. Finished steps are not repeated."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from kdyno.base.version import __version__
from kdyno.judge.stats.sequential import look_ends
from kdyno.runs.boots import Boots, Outcome
from kdyno.runs.checks import check_kernels, checks_left
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.forecast import forecast
from kdyno.runs.images import Images, require_cpus
from kdyno.runs.outlook import ahead_of, run_ahead
from kdyno.runs.parameters import parameter_notices
from kdyno.runs.prepare import Prepared, prepare
from kdyno.runs.run_plan import RunPlan, plan_run
from kdyno.runs.session import Session
from kdyno.runs.train import make_inputs
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import RunRecord, VariantRecord
from kdyno.store.store import Store


@dataclass(frozen=True)
class Done:
    """The id of a run, and the outcome of its boots."""

    run_id: str
    outcome: Outcome


def run_experiment(experiment: Experiment, session: Session, *, again: bool) -> Done:
    """Carry out an experiment, or the rest of it; with `again` carry it out once more.

    With blocks = "auto" a pilot comes first: a separate run, whose boots are not judged again. Ctrl-C and kill -9 lose
    at most the boots that are running: the same call continues from there.
    """
    with session.state.hold_shared():
        return _run_all(experiment, session, again=again)


def _run_all(experiment: Experiment, session: Session, *, again: bool) -> Done:
    if experiment.auto:
        from kdyno.runs.pilot import COMES_FIRST, pilot_of, settle

        session.talk.say(COMES_FIRST)
        pilot_run = _run(pilot_of(experiment), session, again=again)
        pilot = session.store.run(pilot_run.run_id)
        settled = settle(experiment, pilot, session.store.boots(pilot.id), session.store.benchmarks(pilot.id))
        for line in settled.why:
            session.talk.say(line)
        experiment = settled.experiment
    return _run(experiment, session, again=again)


def _run(experiment: Experiment, session: Session, *, again: bool) -> Done:
    prepared = prepare(experiment, session.state, session.talk, open_machine=session.carrier.open_machine)
    plan = _choose(prepared, session.store, again=again)
    waiting = f"run {plan.id} is being carried out by another kdyno: waiting for it"
    with session.state.lock(f"run-{plan.id}", on_wait=lambda: session.talk.say(waiting)):
        progress = plan.progress(session.store)
        if progress.is_complete and session.store.has_run(plan.id) and not checks_left(prepared, session.store):
            session.talk.say(f"run {plan.id} is complete: nothing to do (--again carries the experiment out once more)")
            return Done(plan.id, Outcome(given_up=progress.given_up))
        prepared.require_cpu()
        ahead = forecast(prepared, plan, session.state, session.store)
        for line in run_ahead(ahead, experiment, len(experiment.workload.benchmark_names())):
            session.talk.say(line)
        with session.talk.watching(ahead_of(ahead, experiment.name)):
            make_inputs(prepared.trainings, session)
            images = session.carrier.build_images(prepared.plans, session.state, session.talk)
            require_cpus(prepared.settings, images)
            unknown = parameter_notices(prepared, images)
            for notice in unknown:
                session.talk.warn(f"note: {notice}")
            session.store.begin(_record(plan, prepared, images, unknown), plan.cells)
            lost_checks = check_kernels(prepared, images, session)
            boots = Boots(plan, prepared, images, session)
            boots.outcome.lost |= lost_checks
            return Done(plan.id, _until_decided(boots, experiment, session))


def _choose(prepared: Prepared, store: Store, *, again: bool) -> RunPlan:
    """Return the plan of the experiment's run, or with `again` of its first repeat that isn't complete."""
    repeat = 1 if again else 0
    while True:
        plan = plan_run(prepared, repeat)
        if not again or not (store.has_run(plan.id) and plan.progress(store).is_complete):
            return plan
        repeat += 1


def _record(plan: RunPlan, prepared: Prepared, images: Images, unknown: tuple[str, ...]) -> RunRecord:
    experiment, about = prepared.experiment, prepared.about
    return RunRecord(
        id=plan.id,
        name=experiment.name,
        created=datetime.now(UTC),
        experiment=prepared.recorded,
        baseline=experiment.baseline,
        blocks=experiment.blocks,
        layouts=experiment.layouts,
        seed=experiment.seed,
        lane=about.lane,
        machine=about.facts,
        host=about.host,
        notices=(*about.notices, *experiment.workload.notices(about.lane), *filter(None, [experiment.pilot]), *unknown),
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


def _until_decided(boots: Boots, experiment: Experiment, session: Session) -> Outcome:
    """Carry out the boots; a group-sequential run ends at the first look that leaves nothing undecided."""
    *early_looks, last = look_ends(experiment.blocks, experiment.judge.looks)
    for look, blocks in enumerate(early_looks, start=1):
        outcome = boots.carry_out(blocks)
        if outcome.lost:
            return outcome
        undecided = _undecided(session.store, boots.plan.id, boots.artefacts)
        if not undecided:
            session.store.stop(boots.plan.id, blocks)
            session.talk.say(
                f"look {look}: nothing is undecided after {blocks} of {last} blocks: the run ends here, as planned"
            )
            return outcome
        session.talk.say(f"look {look}, after {blocks} of {last} blocks: {undecided} undecided")
    return boots.carry_out(last)


def _undecided(store: Store, run_id: str, artefacts: Artefacts) -> int:
    """Return the number of comparisons of a run that are undecided at this look."""
    from kdyno.judge.verdicts.assemble import assemble  # only a group-sequential run is judged before its end

    report = assemble(store, run_id, artefacts, analysed=False)
    return sum(comparison.verdict == "undecided" for comparison in report.comparisons)
