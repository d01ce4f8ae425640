"""Training: makes the inputs that builds take from boots, each once, before the builds."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.files import write_whole
from kdyno.runs.derive import PlannedTraining, training_words
from kdyno.runs.session import Session
from kdyno.runs.single_boots import SingleBoots


def make_inputs(trainings: Sequence[PlannedTraining], session: Session) -> None:
    """Build, boot and export the missing inputs, in order.

    Each complete file is kept, and so are images and boots: Ctrl-C loses only the current one. Raises what builds,
    boots and exporters raise.
    """
    for planned in trainings:
        _make(planned, session)


def _make(planned: PlannedTraining, session: Session) -> None:
    path = planned.input.path
    waiting = f"another kdyno trains on {planned.training.variant}: waiting for it"
    with session.state.lock(f"input-{path.name[:24]}", on_wait=lambda: session.talk.say(waiting)):
        if not path.exists():
            content = _content(planned, session)
            write_whole(path.with_suffix(".json"), planned.derivation.model_dump_json(indent=2) + "\n")
            write_whole(path, content)


def _content(planned: PlannedTraining, session: Session) -> bytes:
    from kdyno.runs.exporters import EXPORTERS

    training, exporter = planned.training, EXPORTERS[planned.derivation.exporter]
    plans = {training.variant: (planned.plan,)}
    [image] = session.carrier.build_images(plans, session.state, session.talk)[training.variant]
    with session.state.scratch("train") as scratch:
        words = training_words(training, planned.plan)
        files = SingleBoots(session).train(image, training, exporter.counts, scratch, cmdline=words)
        return exporter.write(files, image, training.settings)
