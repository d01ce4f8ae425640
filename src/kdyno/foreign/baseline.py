"""Which variant the others are compared with."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from kdyno.foreign.errors import NoSuchBaseline

NAMES = ("baseline", "base", "generic", "vanilla", "default", "stock", "control", "reference", "before", "old")


def choose(variants: Sequence[str], asked: str | None) -> tuple[str, str]:
    """Return the baseline, and how it was chosen. Raises NoSuchBaseline."""
    if asked is not None:
        if asked in variants:
            return asked, "named"
        near = difflib.get_close_matches(asked, variants, n=1)
        nearest = f"did you mean {near[0]!r}? " if near else ""
        raise NoSuchBaseline(name=asked, nearest=nearest, known=", ".join(variants))
    for name in NAMES:
        for variant in variants:
            if name in re.split(r"[^a-z0-9]+", variant.lower()):
                return variant, "by its name"
    return variants[0], "the first in the file"
