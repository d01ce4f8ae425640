"""Removing runs and boots from a store, with the artefacts that go with them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from sqlalchemy import Connection, select

from kdyno.store import schema
from kdyno.store.whole import ARTEFACTS

KEYS_AT_ONCE = 500
"""Keys in one query: databases have limits."""


@dataclass(frozen=True)
class Removed:
    """The removed records."""

    boots: int
    artefacts: frozenset[str]
    """The SHA-256 of the artefacts that no boot in this store has any more."""


def batches(keys: Iterable[str]) -> Iterator[tuple[str, ...]]:
    """Yield the keys, sorted, as many at once as one query takes."""
    names = sorted(keys)
    return (tuple(names[start : start + KEYS_AT_ONCE]) for start in range(0, len(names), KEYS_AT_ONCE))


def artefacts(connection: Connection, but: Collection[str] = ()) -> set[str]:
    """Return the SHA-256 of the artefacts of all boots but those with these keys."""
    columns = [schema.boot.c[name] for name in ARTEFACTS]
    boots = connection.execute(select(schema.boot.c.key, *columns))
    return {digest for key, *digests in boots if key not in but for digest in digests if digest is not None}


def remove_run(connection: Connection, run_id: str, checks: Collection[str], kept_checks: Collection[str]) -> Removed:
    """Remove a run, and its boots that no other run has. `checks`: keys of check boots, its own and those of others."""
    cell = schema.cell.c
    own = set(connection.execute(select(cell.key).where(cell.run == run_id)).scalars()) | set(checks)
    for table in (schema.selftest, schema.cell, schema.variant):
        connection.execute(table.delete().where(table.c.run == run_id))
    connection.execute(schema.run.delete().where(schema.run.c.id == run_id))
    return remove_boots(connection, own - set(kept_checks))


def remove_boots(connection: Connection, keys: Collection[str]) -> Removed:
    """Remove all attempts of the boots with these keys that no run has."""
    cell, boot = schema.cell.c, schema.boot.c
    before = artefacts(connection)
    count = 0
    for some in batches(keys):
        placed = set(connection.execute(select(cell.key).where(cell.key.in_(some))).scalars())
        numbers = select(boot.id).where(boot.key.in_(set(some) - placed))
        for table in (schema.outcome, schema.sample, schema.described):
            connection.execute(table.delete().where(table.c.boot.in_(numbers)))
        count += connection.execute(schema.boot.delete().where(boot.key.in_(set(some) - placed))).rowcount
    return Removed(count, frozenset(before - artefacts(connection)))
