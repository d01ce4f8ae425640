"""One experiment, start to end: prepare, build, boot. What was done before is not done again."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.boots import Boots, Outcome
from kdyno.experiment.models import Experiment
from kdyno.line import begin_run, build_images, choose_run, prepare
from kdyno.state import State
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

    Ctrl-C and kill -9 lose at most the boots in flight: the same call goes on from there.
    """
    prepared = prepare(experiment, state, talk)
    cells = {(variant, block) for variant in experiment.variants for block in range(experiment.blocks)}

    def is_complete(run_id: str) -> bool:
        left = {variant for variant, _ in cells - store.progress(run_id).finished}
        return not left or left <= given_up(store.boots(run_id)).keys()

    run_id = choose_run(prepared, is_complete, again)
    waiting = f"run {run_id} is being carried out by another kdyno: waiting for it"
    with state.lock(f"run-{run_id}", on_wait=lambda: talk.say(waiting)):
        if is_complete(run_id):
            talk.say(f"run {run_id} is complete: nothing to do (--again carries the experiment out once more)")
            return Done(run_id, Outcome(given_up=given_up(store.boots(run_id))))
        images = build_images(prepared.plans, state, talk)
        begin_run(run_id, prepared, images, store)
        return Done(run_id, Boots(run_id, prepared, images, state=state, store=store, talk=talk).carry_out())
