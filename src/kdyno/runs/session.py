"""The session of a command: the state directory, the store and the output."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store


@dataclass(frozen=True)
class Session:
    """The state directory, the store and the output of a command."""

    state: State
    store: Store
    talk: Talk

    @property
    def artefacts(self) -> Artefacts:
        return Artefacts(self.state.artefacts)
