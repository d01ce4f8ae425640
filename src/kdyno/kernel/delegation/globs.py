"""Globs on source paths: `*` and `?` stay within a directory, `**` crosses directories, `[...]` is one character.

`ccd` matches with the crate glob (crates/delegate/src/ccd/plan.rs); one table is in the tests of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

PART = re.compile(r"(\*\*/)|(\*\*)|(\*)|(\?)|\[(!?)(\][^\]]{0,40}|[^\]]{1,40})\]|([^*?\[])")
RANGE = re.compile(r"(.)(?:-(.))?", re.S)
SPECIAL = re.compile(r"[*?\[]")


def matches(glob: str, path: str) -> bool:
    """Return whether a path relative to the source tree matches. Raise ValueError if the glob is not valid."""
    # A measured table has a rule for hundreds of files: no expression for each.
    return glob == path if is_path(glob) else _expression(glob).fullmatch(path) is not None


def matching(glob: str, paths: Iterable[str]) -> Iterable[str]:
    """Return the paths that match."""
    expression = _expression(glob)
    return (path for path in paths if expression.fullmatch(path))


def escaped(path: str) -> str:
    """Return the glob that matches only this path."""
    return SPECIAL.sub(lambda match: f"[{match[0]}]", path)


def is_path(glob: str) -> bool:
    """Return whether it names exactly one file."""
    return not SPECIAL.search(glob)


@lru_cache(maxsize=1024)
def _expression(glob: str) -> re.Pattern[str]:
    parts, end = [], 0
    for token in PART.finditer(glob):
        if token.start() != end:
            break
        end = token.end()
        parts.append(_translated(token))
    if end != len(glob):
        raise ValueError(f"`{glob}` is not a glob: a [ without its ]")
    if re.search(r"\*{3}|[^/]\*\*|\*\*[^/]", glob):
        raise ValueError(f"`{glob}` is not a glob: ** stands for directories, between two /")
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise ValueError(f"`{glob}` is not a glob: {error.msg}") from None


def _translated(token: re.Match[str]) -> str:
    directories, all_below, star, one, negated, characters, plain = token.groups()
    if directories:
        return "(?:[^/]+/)*"
    if all_below:
        return ".*"
    if star:
        return "[^/]*"
    if one:
        return "[^/]"
    if characters:
        ranges = [
            f"{re.escape(first)}-{re.escape(last)}" if last else re.escape(first)
            for first, last in RANGE.findall(characters)
        ]
        return f"(?!/)[{'^' if negated else ''}{''.join(ranges)}]"
    return re.escape(plain)
