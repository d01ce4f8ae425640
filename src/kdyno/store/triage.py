"""What people say of a change in the history of a store: its state, its owner, a note. Entries are only added."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AwareDatetime, Field
from sqlalchemy import Connection, select

from kdyno.base.frozen import Frozen
from kdyno.store import rows, schema
from kdyno.store.url import StoreUrl

TriageState = Literal["open", "acknowledged", "expected", "fixed", "false-alarm"]
"""open: nobody has looked, or somebody has to look again; acknowledged: it is real, and somebody works on it; expected:
it is real, and stays; fixed: a later kernel has it no more; false-alarm: nothing changed."""
Named = Annotated[str, Field(max_length=200)]
Note = Annotated[str, Field(max_length=4000)]


class Triage(Frozen):
    """An entry on a change between two kernels of an axis."""

    axis: Named
    before: str
    """The identity of the kernel before the change."""
    after: str
    state: TriageState
    owner: Named = ""
    note: Note = ""
    author: Named
    """Who made the entry."""
    written: AwareDatetime


def insert_triage(connection: Connection, entry: Triage) -> None:
    connection.execute(schema.triage.insert(), entry.model_dump())


def read_triage(connection: Connection, store: StoreUrl) -> list[Triage]:
    """Return all entries, the oldest first. Raise RecordCorrupt."""
    entries = []
    for row in connection.execute(select(schema.triage).order_by(schema.triage.c.id)):
        with rows.read(store, f"the triage entry {row.id}"):
            entries.append(Triage(**{name: row._mapping[name] for name in Triage.model_fields}))
    return entries
