"""The exit codes of kdyno, and how they differ where `git bisect run` or a pipeline asks for a regression. Pure.

Without --fail-on-regression: 0 done, 1 user error, 2 the experiment says no, 3 infrastructure or lost, 130 interrupted.
With it: 0 no regression, 2 a regression, 125 it doesn't build or boot, which git bisect skips; and for all that says
nothing about the kernel 128 more than else, at which git bisect stops: it takes 1 and 3 for a bad revision.
"""

from __future__ import annotations

from collections.abc import Sequence

DONE = 0
USAGE = 1
REGRESSION = 2
LOST = 3
UNTESTABLE = 125
STOPS_BISECT = 128
OPTION = "--fail-on-regression"


def asks_for_regression(words: Sequence[str]) -> bool:
    """Whether a command line has the option, perhaps abbreviated; also one that can't be parsed."""
    return any(len(word) > len("--") and OPTION.startswith(word.partition("=")[0]) for word in words)


def for_bisect(status: int | str | None) -> int:
    """The exit code with the option, for that without it."""
    plain = int(status or DONE)
    return plain + STOPS_BISECT if plain in (USAGE, LOST) else plain
