"""TOML from somebody else: parsed, or refused with one ValueError."""

from __future__ import annotations

import re
import tomllib
from typing import Any

_PART = r"""(?:[A-Za-z0-9_-]{1,200}+|"(?:[^"\\\n]|\\.){0,200}+"|'[^'\n]{0,200}+')"""
DEEP_KEY = re.compile(rf"(?<![A-Za-z0-9_-]){_PART}(?:[ \t]{{0,200}}+\.[ \t]{{0,200}}+{_PART}){{16}}")
"""The most parts of a key, a.b.c...: tomllib's memory grows with the square of their number. kdyno's limit on file
sizes leaves no room for many longer parts.
"""
MARK = "\ufeff"
KEY_SHOWN = 200
"""Characters of a key, in messages."""


def parse(text: str) -> dict[str, Any]:
    """Return the content of the TOML. Raise ValueError, also if reading it would take time or memory without end.

    A byte order mark before it, as editors of Windows write one, is not part of the text.
    """
    text = text.removeprefix(MARK)
    if key := DEEP_KEY.search(text):
        raise ValueError(f"the key {key[0][:KEY_SHOWN]}... has too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("its tables and arrays are nested too deeply") from None
