"""Boots on a host whose other work disturbs them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from kdyno.base.measurement import DISTURBED_PATHS
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.boot.fake import FakeMachine

BUSY = "of 15 repetitions the core's clock moved in 1, and somebody else was on the core in 14"


def disturb(monkeypatch: pytest.MonkeyPatch, variant: str, benchmark: str, times: int) -> Counter[tuple[str, int]]:
    """Keep the boots of a variant from measuring a benchmark, so many times each. Return how often each boot, by its
    block, is carried out.
    """
    replay, boots = FakeMachine.boot, Counter[tuple[str, int]]()

    def boot(machine: FakeMachine, order: BootOrder) -> BootEnd:
        end = replay(machine, order)
        boots[order.variant, order.block] += 1
        if order.variant != variant or boots[order.variant, order.block] > times:
            return end
        samples = tuple(sample for sample in end.report.samples if sample.benchmark != benchmark)
        report = end.report.model_copy(update={"samples": samples, "broken": {benchmark: BUSY}})
        return replace(end, report=report, conditions={DISTURBED_PATHS: 1.0})

    monkeypatch.setattr(FakeMachine, "boot", boot)
    return boots
