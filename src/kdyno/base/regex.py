"""Regular expressions for hostile texts or expressions: RE2's, which never backtrack.

Those of Python may take time that grows with the square of a text, or without end, and can't be interrupted. These take
time in proportion to the text. They have no look-around and no references to groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import re2  # type: ignore[import-untyped]

MOST_MEMORY = 1 << 20
"""The most bytes of memory of one expression."""


class BadPattern(Exception):
    """The text is not a regular expression of RE2; the error's text says why."""


class Match(Protocol):
    def __getitem__(self, group: int) -> str | None: ...


class Pattern(Protocol):
    pattern: str
    groups: int
    programsize: int
    """Steps of the compiled expression: the time for a text is at most in proportion to them."""

    def search(self, text: str) -> Match | None: ...
    def finditer(self, text: str) -> Iterator[Match]: ...


def compile_pattern(pattern: str) -> Pattern:
    """Return the compiled expression. `.` matches all but a line end; `(?m)` makes `^` and `$` those of lines.

    Raise BadPattern.
    """
    options = re2.Options()
    options.max_mem = MOST_MEMORY
    options.log_errors = False
    try:
        expression: Pattern = re2.compile(pattern, options)
    except re2.error as error:
        [why] = error.args
        raise BadPattern(why.decode(errors="replace")) from None
    return expression
