"""Where in a TOML file a key stands: tomllib reads the values, this finds the lines for messages. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from kdyno.base import toml

HEADER = re.compile(r"^\s*\[\[?(?P<keys>[^\[\]]+)\]\]?\s*(#.*)?$")
ASSIGNMENT = re.compile(
    r"^\s*(?P<keys>(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)


def line_of(text: str, path: Sequence[object]) -> int:
    """The number (from 1) of the line that holds the key `path`, or as much of the path as has a line of its own."""
    wanted = tuple(str(part) for part in path)
    best, best_length = 1, 0
    for number, here in _lines(text):
        if wanted[: len(here)] == here and len(here) > best_length:
            best, best_length = number, len(here)
    return best


@lru_cache(maxsize=1)
def _lines(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """The lines that have a key, and that key with its table's; kept, as one text may have many mistakes."""
    lines = []
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.removeprefix(toml.MARK).split("\n"), start=1):
        if match := HEADER.match(line):
            table = _keys(f"[{match['keys']}]")
            lines.append((number, table))
        elif match := ASSIGNMENT.match(line):
            lines.append((number, table + _keys(f"{match['keys']} = 0")))
    return lines


def _keys(line: str) -> tuple[str, ...]:
    try:
        value = toml.parse(line)
    except ValueError:
        return ()
    keys: list[str] = []
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)
