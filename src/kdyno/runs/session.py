"""What a command works with, from its first boot to its last."""

from __future__ import annotations

from dataclasses import dataclass

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store


@dataclass(frozen=True)
class Session:
    """Where a command keeps things, what is on record already, and how it speaks."""

    state: State
    store: Store
    talk: Talk

    @property
    def artefacts(self) -> Artefacts:
        return Artefacts(self.state.artefacts)
