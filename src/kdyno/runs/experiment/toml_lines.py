"""Finds the line of a key in a TOML file, for messages: tomllib gives values without lines. Pure."""

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
    """Return the number (from 1) of the line of the key `path`, or of its longest prefix that has a line of its own."""
    names = tuple(str(part) for part in path)
    best, best_length = 1, 0
    for number, line_keys in _lines(text):
        if names[: len(line_keys)] == line_keys and len(line_keys) > best_length:
            best, best_length = number, len(line_keys)
    return best


@lru_cache(maxsize=1)
def _lines(text: str) -> list[tuple[int, tuple[str, ...]]]:
    """Return the number of each line with a key, and the key with its table. The last result is cached: a text may have
    many mistakes.
    """
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
