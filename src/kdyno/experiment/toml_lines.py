"""Where in a TOML file a key stands: tomllib reads the values, this finds the lines for messages. Pure."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Sequence

HEADER = re.compile(r"^\s*\[\[?(?P<keys>[^\[\]]+)\]\]?\s*(#.*)?$")
ASSIGNMENT = re.compile(
    r"^\s*(?P<keys>(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*'))*)\s*="
)


def line_of(text: str, path: Sequence[object]) -> int:
    """The number (from 1) of the line that holds the key `path`, or as much of the path as has a line of its own."""
    wanted = tuple(str(part) for part in path)
    best, best_length = 1, 0
    table: tuple[str, ...] = ()
    for number, line in enumerate(text.splitlines(), start=1):
        if found := HEADER.match(line):
            table = here = _keys(f"[{found['keys']}]")
        elif found := ASSIGNMENT.match(line):
            here = table + _keys(f"{found['keys']} = 0")
        else:
            continue
        if wanted[: len(here)] == here and len(here) > best_length:
            best, best_length = number, len(here)
    return best


def _keys(toml: str) -> tuple[str, ...]:
    try:
        value = tomllib.loads(toml)
    except tomllib.TOMLDecodeError:
        return ()
    keys: list[str] = []
    while isinstance(value, dict) and value:
        key, value = next(iter(value.items()))
        keys.append(key)
    return tuple(keys)
