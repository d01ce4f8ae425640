"""Giving a variant up: what the boots on record say about starting it again."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from kdyno.store.records import BootRecord

GIVEN_UP_AFTER = 2
"""A variant whose boots failed so often, and never came through, is not started again."""


def given_up(boots: Iterable[BootRecord]) -> dict[str, str]:
    """The variants that are not started again, and how the last of their boots failed."""
    by_variant: dict[str, list[BootRecord]] = defaultdict(list)
    for boot in boots:
        if boot.status != "lost":
            by_variant[boot.variant].append(boot)
    return {
        variant: ended[-1].reason
        for variant, ended in by_variant.items()
        if len(ended) >= GIVEN_UP_AFTER and all(boot.status == "failed" for boot in ended)
    }
