"""The plan of an experiment: randomised complete blocks of boots. Pure: the same seed gives the same plan."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass

SEED_BITS = 31


@dataclass(frozen=True)
class PlannedBoot:
    """One boot to be done; `position` counts boots over the whole run."""

    variant: str
    block: int
    position: int
    seed: int


def block_seed(seed: int, block: int) -> int:
    """The seed of a block, below 2**31: the same for all its variants, so that they meet the same randomness."""
    return int.from_bytes(hashlib.sha256(f"kdyno block {seed} {block}".encode()).digest()[:4]) >> (32 - SEED_BITS)


def plan_boots(variants: Sequence[str], blocks: int, seed: int) -> list[PlannedBoot]:
    """Every variant once in each block, in an order drawn anew for each block."""
    boots: list[PlannedBoot] = []
    for block in range(blocks):
        order = list(variants)
        random.Random(f"kdyno order {seed} {block}").shuffle(order)
        boots += [
            PlannedBoot(variant, block, len(boots) + place, block_seed(seed, block))
            for place, variant in enumerate(order)
        ]
    return boots
