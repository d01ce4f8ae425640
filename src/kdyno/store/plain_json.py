"""JSON of a store, which may be somebody else's: safe for everything that shows it, or sums it up."""

from __future__ import annotations

import json
import math
from typing import Any

DEEPEST = 16
"""The deepest nesting of lists and objects; kdyno writes half of that."""

MOST_VALUES = 2_000_000
"""Values in one text: each takes a few hundred bytes of memory. A boot of 34 benchmarks has a tenth of it."""


def parse(text: str) -> Any:
    """Read JSON. Raise ValueError if it is not JSON, or not plain."""
    try:
        value = load(text)
    except RecursionError:
        raise ValueError("it is nested too deep") from None
    require_plain(value)
    return value


def load(text: str) -> Any:
    """Read JSON that need not be plain. Raise ValueError; for too many values before they take memory."""
    if sum(map(text.count, ",[{")) > MOST_VALUES:  # each value but the first comes after one of these
        raise ValueError(f"it may hold more than {MOST_VALUES:,} values")
    return json.loads(text)


def require_plain(value: Any) -> None:
    """Raise ValueError for deep nesting, and for a number that is not finite or needs more than 64 bits."""
    remaining = [(value, 0)]
    while remaining:
        part, depth = remaining.pop()
        if isinstance(part, dict | list):
            if depth == DEEPEST:
                raise ValueError("it is nested too deep")
            remaining += [(child, depth + 1) for child in (part.values() if isinstance(part, dict) else part)]
        elif isinstance(part, int) and not -(2**63) <= part < 2**63:
            raise ValueError("a number in it has more than 64 bits")
        elif isinstance(part, float) and not math.isfinite(part):
            raise ValueError("a number in it is not finite")
