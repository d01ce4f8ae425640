"""Making text from a guest safe to show: it may hold anything, and must neither drive a terminal nor mislead."""

from __future__ import annotations

import re
import unicodedata

ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # colours, cursor movement
    r"|\x1b[\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\)?"  # window titles, clipboard
    r"|\x1b[ -/]*[0-~]"
)
UNSHOWN = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
"""Unicode categories that steer instead of show: controls, direction overrides, invisible separators."""


def clean(text: str) -> str:
    """Return the text as one line: escape sequences gone, controls as `\\x07`, line ends as spaces."""
    return _visible(" ".join(ESCAPES.sub("", text).split()))


def clean_lines(text: str) -> str:
    """Return a whole console cleaned, its lines and tabs kept."""
    lines = ESCAPES.sub("", text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(_visible(line.replace("\t", "        ")) for line in lines)


def _visible(line: str) -> str:
    return "".join(_escaped(each) if unicodedata.category(each) in UNSHOWN else each for each in line)


def _escaped(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
