"""Boots that say nothing of their kernel: lost ones, and those that other work on the host disturbed."""

from __future__ import annotations

from collections.abc import Iterable

from kdyno.base.errors import InfrastructureError
from kdyno.base.measurement import DISTURBED_PATHS
from kdyno.base.text import clean
from kdyno.store.records import BootRecord


class BootsLost(InfrastructureError):
    message = "boots were lost: {boots}: {reason}"
    hint = "run the same command to try them again: everything else is kept"


class HostDisturbed(InfrastructureError):
    message = "other work on this host left no value of {benchmark} in any boot of {name}: {reason}"
    hint = "run the same command again when nothing else runs here: it boots these kernels anew, and keeps the rest"


def disturbance(boots: Iterable[BootRecord], variant: str, benchmark: str) -> str:
    """Return how other work on the host kept the boots of a variant from measuring a benchmark; empty if it didn't.

    Then nothing is known of the kernel.
    """
    reasons = (
        boot.broken[benchmark]
        for boot in boots
        if boot.variant == variant and benchmark in boot.broken and boot.conditions.get(DISTURBED_PATHS, 0) > 0
    )
    return clean(next(reasons, ""))
