"""One experiment, start to end: prepare, build, boot. What was done before is not done again."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.experiment.models import Experiment
from kdyno.experiment.plan import look_ends
from kdyno.instrument.agent import benchmark_count
from kdyno.line.boots import Boots, Outcome
from kdyno.line.forecast import forecast
from kdyno.line.outlook import run_ahead
from kdyno.line.prepare import Prepared, begin_run, build_images, choose_run, prepare
from kdyno.state import State
from kdyno.store.artefacts import Artefacts
from kdyno.store.giving_up import given_up
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

    def is_complete(run_id: str) -> bool:
        blocks = store.stopped_at(run_id) or experiment.blocks
        cells = {(variant, block) for variant in experiment.variants for block in range(blocks)}
        left = {variant for variant, _ in cells - store.progress(run_id).finished}
        return not left or left <= given_up(store.boots(run_id)).keys()

    run_id = choose_run(prepared, is_complete, again)
    waiting = f"run {run_id} is being carried out by another kdyno: waiting for it"
    with state.lock(f"run-{run_id}", on_wait=lambda: talk.say(waiting)):
        if is_complete(run_id):
            talk.say(f"run {run_id} is complete: nothing to do (--again carries the experiment out once more)")
            return Done(run_id, Outcome(given_up=given_up(store.boots(run_id))))
        ahead = forecast(prepared, run_id, state, store)
        for line in run_ahead(ahead, experiment, benchmark_count(prepared.job.tests)):
            talk.say(line)
        images = build_images(prepared.plans, state, talk)
        begin_run(run_id, prepared, images, store)
        boots = Boots(run_id, prepared, images, state=state, store=store, talk=talk)
        return Done(run_id, _until_decided(boots, prepared, store, talk))


def undecided(store: Store, run_id: str, artefacts: Artefacts) -> int:
    """How many comparisons of a run its last look left undecided."""
    from kdyno.verdicts.assemble import assemble  # only a group-sequential run is judged on the way

    report = assemble(store, run_id, artefacts, analysed=False)
    return sum(each.verdict == "undecided" for each in report.comparisons)


def _until_decided(boots: Boots, prepared: Prepared, store: Store, talk: Talk) -> Outcome:
    """Carry out the boots; a group-sequential run ends at the first look that leaves nothing undecided."""
    *before, last = look_ends(prepared.experiment.blocks, prepared.experiment.judge.looks)
    for look, blocks in enumerate(before, start=1):
        outcome = boots.carry_out(blocks)
        if outcome.lost:
            return outcome
        left = undecided(store, boots.run_id, Artefacts(boots.state.artefacts))
        if not left:
            store.stop(boots.run_id, blocks)
            talk.say(
                f"look {look}: nothing is undecided after {blocks} of {last} blocks: the run ends here, as planned"
            )
            return outcome
        talk.say(f"look {look}, after {blocks} of {last} blocks: {left} undecided")
    return boots.carry_out(last)
