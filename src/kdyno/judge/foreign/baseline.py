"""The variant that the others are compared with."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from kdyno.measure.readers.errors import NoSuchBaseline
from kdyno.measure.readers.headings import BASELINES


def choose(variants: Sequence[str], wanted: str | None) -> tuple[str, str]:
    """Return the baseline, and how it was chosen. Raise NoSuchBaseline."""
    if wanted is not None:
        if wanted in variants:
            return wanted, "named"
        near = difflib.get_close_matches(wanted, variants, n=1)
        nearest = f"did you mean {near[0]!r}? " if near else ""
        raise NoSuchBaseline(name=wanted, nearest=nearest, variants=", ".join(variants))
    for name in BASELINES:
        for variant in variants:
            if name in re.split(r"[^a-z0-9]+", variant.lower()):
                return variant, "by its name"
    return variants[0], "the first in the file"
