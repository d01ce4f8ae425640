"""The options for a sibling of a kernel in a soak: detectors of mistakes that cost too much elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, get_args

from kdyno.kernel.recipe import KconfigValue, Recipe

SoakVariant = Literal["kunit", "kfence", "lockdep"]
SOAK_VARIANTS: tuple[SoakVariant, ...] = get_args(SoakVariant)

SUITES = (
    "BITFIELD_KUNIT",
    "CHECKSUM_KUNIT",
    "CMDLINE_KUNIT_TEST",
    "CPUMASK_KUNIT_TEST",
    "HASHTABLE_KUNIT_TEST",
    "HASH_KUNIT_TEST",
    "LIST_KUNIT_TEST",
    "MEMCPY_KUNIT_TEST",
    "SIPHASH_KUNIT_TEST",
    "STRING_HELPERS_KUNIT_TEST",
    "STRING_KUNIT_TEST",
    "SYSCTL_KUNIT_TEST",
    "TEST_LIST_SORT",
    "TEST_SORT",
    "TIME_KUNIT_TEST",
)
"""Suites that need no other symbols."""
SYMBOLS: dict[SoakVariant, dict[str, KconfigValue]] = {
    "kunit": {"RUNTIME_TESTING_MENU": True, "KUNIT": True, **dict.fromkeys(SUITES, True)},
    "kfence": {"KFENCE": True},
    "lockdep": {"DEBUG_KERNEL": True, "PROVE_LOCKING": True, "DEBUG_ATOMIC_SLEEP": True},
}


def sibling(recipe: Recipe, variants: Sequence[SoakVariant]) -> Recipe:
    """Return the recipe with the Kconfig symbols of these variants, which replace its own values."""
    kconfig = dict(recipe.kconfig)
    for variant in variants:
        kconfig |= SYMBOLS[variant]
    return recipe.model_copy(update={"kconfig": kconfig})
