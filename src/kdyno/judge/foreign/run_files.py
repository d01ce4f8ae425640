"""Files that look like runs of one variant by their names: without a NAME, each is a variant of its own."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence

from kdyno.base.text import format_list
from kdyno.measure.readers.source import FileSource

_RUN = re.compile(
    r"(?P<stem>.*?)(?:(?P<word>[-_. /]?(?:run|rep|repeat|iter|iteration|trial|sample|round|r))[-_. ]?|[-_ /])"
    r"(?P<number>\d{1,3})",
    re.IGNORECASE,
)
SHOWN = 2
"""Files that the note names as an example."""


def runs_note(sources: Sequence[FileSource]) -> tuple[str, ...]:
    """Return the note on files that are judged as variants and are numbered like runs: `6.12-1`, `6.12-2`, or
    `a/run1`, `a/run2`. Compilers and kernels have numbers as well, but they don't count up from 0 or 1.
    """
    numbered: dict[tuple[str, bool], dict[int, FileSource]] = {}
    for source in sources:
        if match := _RUN.fullmatch(source.name):
            numbered.setdefault((match["stem"], bool(match["word"])), {})[int(match["number"])] = source
    runs = {
        stem: by_number
        for (stem, is_called_so), by_number in numbered.items()
        if _counts_up(sorted(by_number)) and (is_called_so or len(numbered) > 1)
    }
    if not runs:
        return ()
    stem, by_number = next(iter(runs.items()))
    files = list(by_number.values())
    example = shlex.join(f"{stem or 'NAME'}={source.shown}" for source in files[:SHOWN])
    names = format_list([source.name for source in files])
    return (
        f"each of {names} is a variant, though the files look like runs of one: runs of a variant have one NAME, as in "
        f"{example}",
    )


def _counts_up(numbers: Sequence[int]) -> bool:
    """Return whether numbers of runs are 0, 1, ... or 1, 2, ..."""
    return len(numbers) > 1 and numbers[0] < 2 and list(numbers) == list(range(numbers[0], numbers[-1] + 1))
