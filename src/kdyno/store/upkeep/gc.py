"""Removing everything that nothing refers to. Each thing is moved away in one step, and removed after that.

Nobody else is at work in the state directory between the last look and the last of these steps; see State.hold_alone.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import uuid4

from kdyno.base.errors import InfrastructureError
from kdyno.base.state import State
from kdyno.kernel.source_trees import remove_tree
from kdyno.store.records import RunRecord
from kdyno.store.store import Store
from kdyno.store.upkeep.model import PartUse, StoreUse
from kdyno.store.upkeep.references import references
from kdyno.store.upkeep.survey import PARTS, Item, Sizes, items

BOOTS = "boots in the store"
DAY = 86_400.0


class StateInUse(InfrastructureError):
    message = "nothing was removed: another kdyno is at work in {state} ({locks})"
    hint = "wait for it to end, or end it, and run the same command again"


@dataclass(frozen=True)
class GcView:
    """Everything that there is at one moment, and the part of it that may be removed."""

    runs: int
    items: tuple[Item, ...]
    boots: int
    unneeded_boots: dict[str, datetime]
    """The time of the last start by key."""


def look(state: State, store: Store, others: Sequence[Store], older_than: float) -> GcView:
    """Look at a state directory and a store. Everything that runs of `others` need is kept, too.

    Boots that no run has, and that are younger than so many days, keep their artefacts.
    """
    stores = (store, *others)
    runs: list[RunRecord] = [run for one in stores for run in one.whole_runs()]
    refs = references(runs, state)
    keys = store.keys()
    kept = refs.boots | store.keys_of_runs()
    unneeded = {key: started for key, started in keys.items() if key not in kept}
    going = {key for key, started in unneeded.items() if started.timestamp() <= _cutoff_time(older_than)}
    needed_artefacts = store.artefacts(but=going).union(*(other.artefacts() for other in others))
    return GcView(len(runs), tuple(items(state, refs, needed_artefacts)), len(keys), unneeded)


def _cutoff_time(older_than: float) -> float:
    """Return the time after which a changed file is younger than so many days."""
    return time.time() - older_than * DAY


def use_of(inventory: GcView, state: State, stores: Iterable[Store], older_than: float, *, removed: bool) -> StoreUse:
    """Return the look in numbers; things younger than so many days stay."""
    before = _cutoff_time(older_than)
    sizes = Sizes()
    by_part: dict[str, list[tuple[Item, int]]] = {part: [] for part in PARTS}
    for item in sorted(inventory.items, key=lambda item: not item.is_needed):  # a file of both counts as needed
        by_part[item.part].append((item, sizes.size_of(item)))
    parts = [_use(part, sized, before) for part, sized in by_part.items() if sized]
    young = sum(started.timestamp() > before for started in inventory.unneeded_boots.values())
    boots = PartUse(
        part="store",
        holds=BOOTS,
        things=inventory.boots,
        bytes=None,
        unneeded=len(inventory.unneeded_boots),
        unneeded_bytes=None,
        young=young,
    )
    return StoreUse(
        state=str(state.root),
        stores=tuple(store.where for store in stores),
        runs=inventory.runs,
        parts=(*parts, boots),
        at_work=tuple(state.held_names()),
        removed=removed,
    )


def _use(part: str, sized: Sequence[tuple[Item, int]], before: float) -> PartUse:
    unneeded = [(item, size) for item, size in sized if not item.is_needed]
    return PartUse(
        part=part,
        holds=PARTS[part][0],
        things=len(sized),
        bytes=sum(size for _, size in sized),
        unneeded=len(unneeded),
        unneeded_bytes=sum(size for _, size in unneeded),
        young=sum(item.changed > before for item, _ in unneeded),
    )


def collect(agreed: GcView, state: State, store: Store, others: Sequence[Store], older_than: float) -> None:
    """Remove everything that could be removed at the look, and still can. Raise StateInUse if another kdyno is at work;
    then nothing was removed.
    """
    before = _cutoff_time(older_than)
    with state.hold_alone() as is_alone:
        if not is_alone:
            raise StateInUse(state=state.root, locks=", ".join(state.held_names()) or "it begins just now")
        now = look(state, store, others, older_than)
        keys = agreed.unneeded_boots.keys() & now.unneeded_boots.keys()
        store.remove_boots(key for key in keys if now.unneeded_boots[key].timestamp() <= before)
        shown = {(item.part, item.name) for item in agreed.items if not item.is_needed}
        going = [
            path
            for item in now.items
            if not item.is_needed and (item.part, item.name) in shown and item.changed <= before
            for path in item.paths
        ]
        moved = take_away(going, state)
    for path in moved:
        remove_tree(path)


def take_away(paths: Iterable[Path], state: State) -> list[Path]:
    """Move things out of their places, each in one step; return where they are until they are removed."""
    taken = []
    for path in paths:
        if path.parent == state.removed:
            taken.append(path)
            continue
        place = state.removed / uuid4().hex
        with suppress(FileNotFoundError):
            path.rename(place)
            taken.append(place)
    return taken
