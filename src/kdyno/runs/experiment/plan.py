"""The plan of an experiment: randomised complete blocks of boots. Pure: the same seed gives the same plan."""

from __future__ import annotations

import hashlib
import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kdyno.runs.experiment.errors import UnknownVariant

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kdyno.kernel.recipe import Recipe
    from kdyno.runs.experiment.models import Experiment

SEED_BITS = 31
PILOT_BLOCKS = 6
"""The blocks of a pilot: enough for a rough variance at every level."""


@dataclass(frozen=True)
class PlannedBoot:
    """One planned boot; `position` counts boots over the whole run."""

    variant: str
    block: int
    position: int
    seed: int
    layout_index: int
    """Index of the link order; 0 if layout isn't sampled."""

    @property
    def cell(self) -> tuple[str, int]:
        """The place of the boot in the run: variant and block."""
        return self.variant, self.block


def block_seed(seed: int, block: int, variant: str = "") -> int:
    """Return the seed of a block, or of one variant's boot in it; below 2**31."""
    seed_text = f"kdyno block {seed} {block} {variant}".strip()
    return int.from_bytes(hashlib.sha256(seed_text.encode()).digest()[:4]) >> (32 - SEED_BITS)


def plan_boots(experiment: Experiment) -> list[PlannedBoot]:
    """Plan every variant once in each block, in a random order of that block; blocks take the layouts in turn."""
    boots: list[PlannedBoot] = []
    for block in range(experiment.blocks):
        order = list(experiment.variants)
        random.Random(f"kdyno order {experiment.seed} {block}").shuffle(order)
        boots += [
            PlannedBoot(
                variant=variant,
                block=block,
                position=len(boots) + place,
                seed=block_seed(experiment.seed, block, variant if experiment.seeds == "own" else ""),
                layout_index=block % experiment.layouts if experiment.layouts else 0,
            )
            for place, variant in enumerate(order)
        ]
    return boots


def named_variants(experiment: Experiment, names: Sequence[str]) -> Mapping[str, Recipe]:
    """Return the recipes of these variants; of all variants if `names` is empty. Raises UnknownVariant."""
    for name in names:
        if name not in experiment.variants:
            raise UnknownVariant(name=name, known=", ".join(experiment.variants))
    return {name: recipe for name, recipe in experiment.variants.items() if not names or name in names}


def recipes(experiment: Experiment, variant: str) -> list[Recipe]:
    """Return the recipes that are built for a variant: its own, or one for each layout.

    Layout k has the same seed in all variants whose recipes don't name one. Variants that share most of their functions
    then share most of their order, and their differences contain less of the layouts' noise.
    """
    recipe = experiment.variants[variant]
    return [
        recipe.model_copy(update={"layout_seed": layout_seed(recipe.layout_seed, index)})
        for index in range(experiment.layouts)
    ] or [recipe]


def layout_seed(recipe_seed: int | None, index: int) -> int:
    """Return the seed of layout `index` of a recipe whose own seed is `recipe_seed`."""
    if recipe_seed is None:
        return index + 1
    return random.Random(f"kdyno layout {recipe_seed} {index}").getrandbits(SEED_BITS)


def derived_seed(seed: int, purpose: str) -> int:
    """Return another seed, below 2**31, for boots and link orders that must not be those of other purposes."""
    return int.from_bytes(hashlib.sha256(f"kdyno {purpose} {seed}".encode()).digest()[:4]) >> (32 - SEED_BITS)


def pilot_blocks(layouts: int) -> int:
    """Return the number of blocks of the pilot.

    Each layout gets two blocks, so that the variance of layouts can be distinguished from that of boots.
    """
    return PILOT_BLOCKS if layouts == 0 else 2 * min(layouts, PILOT_BLOCKS)


def pilot_layouts(layouts: int) -> int:
    """Return the number of layouts of the pilot."""
    return min(layouts, PILOT_BLOCKS)
