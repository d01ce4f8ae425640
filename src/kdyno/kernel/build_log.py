"""The steps and the errors in the log of a build. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

NO_SPACE = "No space left on device"
LONGEST_LINE = 2000
"""Characters of a line that are looked at, and shown."""

ERRORS = [
    re.compile(pattern)
    for pattern in (
        r"^ccache: error: ",
        r"^[^\s:]+:\d+(?::\d+)?: (?:fatal )?error: ",  # gcc, clang: file:line:col: error: text
        r"^[^\s:]+\.[chSly]:\d+: .*undefined reference to ",  # ld, with line numbers
        r"undefined reference to ",
        r"^(?:\S*/)?(?:ccd|lk?d)(?:\.\w+)?(?:-\d+)?: (?!warning|.* in function )",  # ld, ld.lld, lkd, ccd
        r"error: objtool: |^(?>.*?objtool: ).*error",
        r"^ERROR: modpost: |^ERROR: ",
        r"^(?:\S*/)?(?:cc1|as|gcc|clang|collect2|llvm-\w+)(?:-\d+)?: (?:fatal )?error: ",
        r"^Kconfig.*:\d+: |^[\w/.-]*Kconfig:\d+: ",
        r"\*\*\* No rule to make target ",
        r"^(?:\S*/)?(?:ba|da)?sh: (?:line )?\d+: .*not found",
        r"^(?>.*?\b[Aa]ssertion ).* failed|internal compiler error",
        r"^[Ee]rror: ",
    )
]
STEP = re.compile(r"  [A-Z][A-Z0-9_+]{1,15} (?:\[[A-Z]\] )? *\S")
"""Kbuild's line for a file that it makes: ` CC fs/open.o`, ` LD [M] fs/ext4/ext4.ko`."""
COMPILED = re.compile(r"^  CC +(\S{1,4096}\.o)$", re.M)
LAST_RESORT = re.compile(r"^(?:\S+:\d+: )?\*\*\* |^make(?:\[\d+\])?: \*\*\* ")


def first_error(lines: Iterable[str]) -> str:
    """Return the first line that reports a failure; without one, the last line. Sources lose their `../`."""
    kept = [line[:LONGEST_LINE] for line in lines if line.strip()]
    error_line = next((line for line in kept if any(pattern.search(line) for pattern in ERRORS)), None)
    error_line = error_line or next((line for line in kept if LAST_RESORT.search(line)), None)
    return re.sub(r"^(?:\.\./)+", "", (error_line or (kept[-1] if kept else "it printed nothing")).strip())


def is_step(line: str) -> bool:
    """Return whether the line says that a file is made; warnings and notes don't, of which objtool may have
    thousands.
    """
    return STEP.match(line) is not None


def compiled(log: str) -> frozenset[str]:
    """Return the objects of the kernel itself that were compiled from C, relative to the object directory."""
    return frozenset(COMPILED.findall(log))


def ccache_error(lines: Iterable[str]) -> str | None:
    """Return ccache's message if ccache failed: no compiler was called then."""
    matches = (re.match(r"ccache: error: (.*)", line) for line in lines)
    return next((match[1].strip()[:LONGEST_LINE] for match in matches if match), None)


def disk_full(lines: Iterable[str]) -> bool:
    """Return whether a tool ran out of disk space."""
    return any(NO_SPACE in line for line in lines)
