"""The session of a command: the state directory, the store and the output."""

from __future__ import annotations

from dataclasses import dataclass, field

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.runs.carrier import Carrier, ThisHost
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store


@dataclass(frozen=True)
class Session:
    """The state directory, the store and the output of a command."""

    state: State
    store: Store
    talk: Talk
    carrier: Carrier = field(default_factory=ThisHost)
    """What carries boots of runs out."""

    @property
    def artefacts(self) -> Artefacts:
        return Artefacts(self.state.artefacts)
