"""What people said of changes, beside the changes. Pure."""

from __future__ import annotations

import dataclasses
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import get_args

from pydantic import ValidationError

from kdyno.base.errors import UserError
from kdyno.base.mistakes import problems
from kdyno.base.text import clean
from kdyno.judge.history.model import History, HistoryAxis, HistoryChange, TriageEntry
from kdyno.store.triage import Triage, TriageState


class ChangeUnknown(UserError):
    message = "the history has {count} with an id that begins with {id}"
    hint = "`kdyno history` prints the id of each change"


class TriageUnfit(UserError):
    message = "this can't be recorded of a change: {why}"
    hint = "a state is one of {states}; keep owner and note short".format(states=", ".join(get_args(TriageState)))


def with_triage(history: History, entries: Sequence[Triage]) -> History:
    """Return the history with the newest entry that is about each change.

    An entry was made about a change between two kernels. When kernels between the two are measured, the change lies
    between fewer of them: the entry is about any change within its kernels.
    """
    by_axis: dict[str, list[Triage]] = defaultdict(list)
    for entry in reversed(entries):
        by_axis[entry.axis].append(entry)
    places = {axis.id: _places(axis) for axis in history.axes if axis.id in by_axis}
    changes = tuple(
        change.model_copy(update={"triage": _newest(change, places[change.axis], by_axis[change.axis])})
        if change.axis in places
        else change
        for change in history.report.changes
    )
    return dataclasses.replace(history, report=history.report.model_copy(update={"changes": changes}))


def _places(axis: HistoryAxis) -> dict[str, int]:
    return {kernel.identity: place for place, kernel in enumerate(axis.kernels)}


def _newest(change: HistoryChange, places: Mapping[str, int], newest_first: Sequence[Triage]) -> TriageEntry | None:
    """Return the first of these entries on the axis of a change that is about it."""
    before, after = places[change.before.identity], places[change.after.identity]
    for entry in newest_first:
        first, last = places.get(clean(entry.before)), places.get(clean(entry.after))
        if first is not None and last is not None and first <= before < after <= last:
            texts = {name: clean(getattr(entry, name)) for name in ("owner", "note", "author")}
            return TriageEntry(state=entry.state, written=entry.written, **texts)
    return None


def change_named(history: History, prefix: str) -> HistoryChange:
    """Return the change whose id begins with `prefix`. Raise ChangeUnknown."""
    named = [change for change in history.report.changes if prefix and change.id.startswith(prefix.lower())]
    if len(named) != 1:
        count = "no change" if not named else f"{len(named)} changes"
        raise ChangeUnknown(id=clean(prefix), count=count)
    return named[0]


def triage_of(change: HistoryChange, state: str, *, owner: str, note: str, author: str) -> Triage:
    """Return a new entry about a change. Raise TriageUnfit."""
    said = {"state": state, "owner": owner, "note": note, "author": author}
    where = {"axis": change.axis, "before": change.before.identity, "after": change.after.identity}
    try:
        return Triage.model_validate(said | where | {"written": datetime.now(UTC)})
    except ValidationError as error:
        raise TriageUnfit(why="; ".join(problems(error, Triage, said))) from None
