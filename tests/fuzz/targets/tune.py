"""Readers of foreign bytes: the record of a bisection."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import numpy as np

from kdyno.base.state import State
from kdyno.store.store import Store
from kdyno.tune.bisect.posterior import Posterior
from kdyno.tune.bisect.ranges import KernelRange
from kdyno.tune.bisect.record import BisectEvent, BisectRecord, RecordFile
from tests.fuzz.check import Target

STEPS = 8
NAMED, RESOLVED = "v6.1..v6.2", {"v6.1": "a" * 40, "v6.2": "b" * 40}
STORE = cast(Store, SimpleNamespace(has_run=lambda _run: True))


def bisection(path: Path) -> None:
    """A record that belongs to the range gives evidence."""
    kernels = cast(KernelRange, SimpleNamespace(steps=STEPS, named=NAMED, resolved=RESOLVED))
    file = RecordFile(path.stem, kernels, cast(State, SimpleNamespace(bisects=path.parent)))
    file.resume(STORE)
    evidence = file.evidence()
    if STEPS in evidence.measured:
        assert np.isfinite(Posterior(evidence).step_probabilities()).all()
    assert all(1 <= state <= STEPS for state in file.codes())


def bisections() -> Sequence[bytes]:
    values = (0.05, 0.06, 0.055, 0.052)
    events = (
        BisectEvent(kind="measure", before=0, state=STEPS, blocks=4, run="c" * 64, values=values, places=(0, 1, 2, 3)),
        BisectEvent(kind="measure", before=0, state=4, blocks=4, run=None, reason="it doesn't build"),
        BisectEvent(kind="measure", before=0, state=5, blocks=4, run=None, same=STEPS, code="d" * 64),
        BisectEvent(kind="check", before=2, state=3, blocks=2, run=None, values=values[:2], places=(5, 6), layouts=2),
        BisectEvent(kind="revert", before=STEPS, state=3, blocks=2, run=None, values=values[:2], places=(7, 8)),
    )
    record = BisectRecord.model_validate(
        {"id": "a", "named": NAMED, "resolved": RESOLVED, "started": "2026-01-01T00:00:00Z", "events": events}
    )
    return [record.model_dump_json(indent=1).encode()]


TARGETS = (
    Target("bisection", bisection, bisections, (b'"kind": "check"', b'"same": 1', b'"values": []'), "a.json"),
)  # fmt: skip
