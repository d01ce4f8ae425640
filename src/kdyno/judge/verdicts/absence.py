"""Why a benchmark of two variants of a run could not be compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdyno.judge.stats.absence import NO_BLOCK
from kdyno.store.records import BootRecord


def reason(boots: Sequence[BootRecord], withheld: Mapping[str, str], benchmark: str, variants: Sequence[str]) -> str:
    """Return why there is no block in which both variants measured the benchmark: the first cause that explains it.

    `withheld` says why variants aren't judged at all.
    """
    for variant in variants:
        if variant in withheld:
            return withheld[variant]
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


def _no_boot(variant: str, boots: Sequence[BootRecord]) -> str:
    for status in ("failed", "lost"):
        for boot in boots:
            if boot.status == status:
                return f"no boot of {variant} succeeded; the first {status}: {boot.reason}"
    return f"no boot of {variant} yet"
