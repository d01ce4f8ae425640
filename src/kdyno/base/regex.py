"""Regular expressions where the text or the expression is hostile: RE2's, which never go back in the text.

Python's own may take time that grows with the square of a text, or without end, and can't be interrupted. These take
time in proportion to the text. They have no look-around and no references to groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import re2  # type: ignore[import-untyped]

MOST_MEMORY = 1 << 20
"""Bytes that one expression may take."""


class BadPattern(Exception):
    """No regular expression of this kind; the text says why."""


class Match(Protocol):
    def __getitem__(self, group: int) -> str | None: ...


class Pattern(Protocol):
    pattern: str
    groups: int
    programsize: int
    """Steps of the expression's program: the time for a text is at most in proportion to them."""

    def search(self, text: str) -> Match | None: ...
    def finditer(self, text: str) -> Iterator[Match]: ...


def compiled(pattern: str) -> Pattern:
    """Return the expression, ready for use. `.` is all but a line end; `(?m)` makes `^` and `$` those of lines.

    Raises BadPattern.
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
