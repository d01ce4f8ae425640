"""Which run is meant by the beginning of its id, which variant by its name, and if none is, which are the nearest."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, Row, select

from kdyno.store import schema
from kdyno.store.errors import NoSuchVariant, RunAmbiguous, RunUnknown
from kdyno.store.url import StoreUrl


def row_of(connection: Connection, store: StoreUrl, prefix: str) -> Row[Any]:
    """Return the row of the run whose id starts with `prefix`. Raise RunUnknown or RunAmbiguous."""
    run = schema.run
    matches = connection.execute(
        select(run).where(run.c.id.startswith(prefix, autoescape=True)).order_by(run.c.created.desc())
    ).all()
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise RunAmbiguous(prefix=prefix, count=len(matches), nearest=_list_runs(matches))
    others = connection.execute(select(run.c.id, run.c.name).order_by(run.c.created.desc())).all()
    if not others:
        raise RunUnknown(prefix=prefix, where=store.where, nearest="the store has no runs yet")
    starts = [str(row.id)[: len(prefix)] for row in others]
    close = difflib.get_close_matches(prefix, starts, n=3, cutoff=0.5)
    nearest = [row for row, start in zip(others, starts, strict=True) if start in close or row.name == prefix]
    raise RunUnknown(prefix=prefix, where=store.where, nearest=f"the nearest: {_list_runs(nearest or others)}")


def _list_runs(runs: Iterable[Any]) -> str:
    return ", ".join(f"{str(row.id)[:12]} ({row.name})" for row in itertools.islice(runs, 5))


def require_variant(run: str, name: str, known: Sequence[str]) -> None:
    """Raise NoSuchVariant, which names the nearest, unless the run has this variant."""
    if name not in known:
        near = (difflib.get_close_matches(name, known, n=1, cutoff=0.0) or known)[0]
        raise NoSuchVariant(run=run, name=name, near=near, known=", ".join(known))
