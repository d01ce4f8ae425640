"""Digests that are kept with the records: damage to the file of a store is found where it is read.

SQLite finds pages that are invalid, but can't find a wrong number in a valid page. So a run, a boot and a self-test
each have the SHA-256 of all that belongs to them, written in the same transaction, and compared when they are read.
They find accidents, not forgers.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from operator import itemgetter
from typing import Any

from sqlalchemy import Table

from kdyno.base.measurement import Sample
from kdyno.store import schema

LEFT_OUT = ("id", "sha256")
"""Columns of a boot's row outside its digest: a number that the database gives, and the digest itself."""


def digest_run(
    run: Mapping[str, Any], variants: Iterable[Mapping[str, Any]], cells: Iterable[Mapping[str, Any]]
) -> str:
    """Return the digest of the rows of a run, its variants and its cells, in any order."""
    parts = [
        _content(schema.run, run, but=("sha256",)),
        sorted((_content(schema.variant, row) for row in variants), key=repr),
        sorted((_content(schema.cell, row) for row in cells), key=repr),
    ]
    return _digest(parts)


def digest_boot(
    boot: Mapping[str, Any], described: Iterable[str], samples: Iterable[Sample], outcomes: Mapping[str, Any]
) -> str:
    """Return the digest of a boot's row, the names of its benchmarks in its order, its samples by benchmark and
    iteration, its outcomes.

    The meaning of a benchmark isn't part of it: that is kept once, in a table and in its index.
    """
    names = list(described)
    place = {name: number for number, name in enumerate(names)}
    measured = [
        (place[sample.benchmark], sample.iteration, sample.elapsed, sample.work, _real(sample.value))
        for sample in samples
    ]
    measured.sort(key=itemgetter(0, 1))
    return _digest([_content(schema.boot, boot, but=LEFT_OUT), names, measured, outcomes])


def digest_selftest(row: Mapping[str, Any]) -> str:
    return _digest(_content(schema.selftest, row, but=("sha256",)))


def _content(table: Table, row: Mapping[str, Any], but: Iterable[str] = ()) -> list[Any]:
    return [_plain(row[name]) for name in (column.name for column in table.columns) if name not in but]


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.timestamp()
    return _real(value)


def _real(value: Any) -> Any:
    """Return a number without the sign of a zero, which SQLite does not keep."""
    return value + 0.0 if isinstance(value, float) else value


def _digest(parts: Any) -> str:
    # A store may be somebody else's, and hold bytes where a text should be.
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=repr)
    return hashlib.sha256(text.encode()).hexdigest()
