"""Why a benchmark of two variants could not be compared."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.judge.observations import Observations
from kdyno.store.records import BootRecord

NO_BLOCK = "no block in which both were measured"


def reason(boots: Sequence[BootRecord], benchmark: str, variants: Sequence[str]) -> str:
    """Say why there is no block in which both variants measured the benchmark: the first cause that explains it."""
    for variant in variants:
        own = [boot for boot in boots if boot.variant == variant]
        for boot in own:
            if why := boot.unsupported.get(benchmark):
                return f"unsupported in {variant}: {why}"
            if why := boot.broken.get(benchmark):
                return f"broken in {variant}: {why}"
        if not any(boot.status == "ok" for boot in own):
            return _no_boot(variant, own)
        if not any(sample.benchmark == benchmark for boot in own for sample in boot.samples):
            return f"not measured in {variant}"
    return NO_BLOCK


def of_values(observed: Observations, variants: Sequence[str]) -> str:
    """Say the same of values that have no boots to ask."""
    for variant in variants:
        if observed.sample(variant) is None and observed.summary(variant) is None:
            return f"no value of {variant}"
    return NO_BLOCK


def _no_boot(variant: str, boots: Sequence[BootRecord]) -> str:
    for status in ("failed", "lost"):
        for boot in boots:
            if boot.status == status:
                return f"no boot of {variant} succeeded; the first {status}: {boot.reason}"
    return f"no boot of {variant} yet"
