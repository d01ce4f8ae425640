"""The exit codes of kdyno, and how they change with --fail-on-regression, for `git bisect run` and CI. Pure.

Without --fail-on-regression: 0 done, 1 user error, 2 a negative verdict, 3 infrastructure or lost, 130 interrupted.
With it: 0 no regression, 2 a regression, 125 the kernel doesn't build or boot, which git bisect skips. 128 is added to
the codes 1 and 3, which say nothing about the kernel: git bisect takes 1 and 3 for a bad revision, and stops at 128.
"""

from __future__ import annotations

import signal
from collections.abc import Sequence

DONE = 0
USAGE = 1
REGRESSION = 2
LOST = 3
UNTESTABLE = 125
STOPS_BISECT = 128
OPTION = "--fail-on-regression"
MEANINGS = {
    DONE: "done; with --fail-on-regression: no regression was shown",
    USAGE: "the request has an error: the message says which, and the hint how to fix it",
    REGRESSION: "done, with a negative verdict: a regression, a faulty kernel, nothing found",
    LOST: "the host failed, or boots were lost: the same command tries again",
    UNTESTABLE: "with --fail-on-regression: the kernel doesn't build or boot; `git bisect run` skips it",
    STOPS_BISECT + USAGE: "with --fail-on-regression: what 1 means without it; also: ended by SIGHUP",
    STOPS_BISECT + signal.SIGINT: "interrupted by Ctrl-C: finished work is kept",
    STOPS_BISECT + LOST: "with --fail-on-regression: what 3 means without it",
    STOPS_BISECT + signal.SIGTERM: "ended by SIGTERM, as Ctrl-C does",
}
"""The meaning of every exit code, for the man page and the documents."""


def asks_for_regression(words: Sequence[str]) -> bool:
    """Return whether a command line has the option, perhaps abbreviated, even if it can't be parsed."""
    return any(len(word) > len("--") and OPTION.startswith(word.partition("=")[0]) for word in words)


def bisect_status(status: int | str | None) -> int:
    """Return the exit code with the option for the exit code without it."""
    plain = int(status or DONE)
    return plain + STOPS_BISECT if plain in (USAGE, LOST) else plain
