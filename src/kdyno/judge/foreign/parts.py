"""Which benchmarks of a file are parts of others, by their names: the processor time of a program is a part of the time
that it took.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from kdyno.judge.stats.observations import Observations

PARTS = frozenset(("user", "sys", "system"))
WHOLES = frozenset(("real", "elapsed", "wall", "clock", "time"))
_NO_WORD = re.compile(r"[^0-9A-Za-z]+")


def mark_parts(observations: Sequence[Observations]) -> tuple[Observations, ...]:
    """Return the observations, with `is_part` of each whose name calls it the processor time of another one: `time
    user` beside `time real`.
    """
    words = [_words(observed.benchmark) for observed in observations]
    wholes = {name - WHOLES for name in words if name & WHOLES and not name & PARTS}
    return tuple(
        replace(observed, is_part=bool(name & PARTS) and name - PARTS - WHOLES in wholes)
        for observed, name in zip(observations, words, strict=True)
    )


def _words(name: str) -> frozenset[str]:
    return frozenset(word for word in _NO_WORD.split(name.lower()) if word)
