"""lkd: the linker's delegate, which makes a link order of a seed. The program is crates/delegate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from kdyno.errors import InfrastructureError
from kdyno.installed import find_program
from kdyno.toolchain import Toolchain

BINARY = "kdyno-delegate"
"""The installed program. Called as `lkd` it is the linker's delegate."""
LINKER_WORD = "LD=lkd"
"""Stands in a plan for the linker's delegate, wherever that is installed."""
FORMAT = "1"
"""What lkd makes of a seed; it refuses any other, and raises it with every change of that. Part of an image's key."""
SCRIPT = ".kdyno-layout.lds"
"""Where lkd leaves the linker script that it made, in the object directory."""
HEADER = re.compile(r"/\* kdyno layout: format (\d+), seed (\d+), \d+ sections \*/\n")


class LayoutNotMade(InfrastructureError):
    message = "vmlinux was linked without the layout that was asked for ({asked}; {made})"
    hint = "this kernel's makefiles call the linker in a way that lkd doesn't know: see {log}"


def find_lkd() -> Path:
    """The delegate's binary, which has to be called by the name `lkd`; raises ProgramMissing."""
    return find_program(BINARY, "a layout")


def environment(seed: int, toolchain: Toolchain) -> dict[str, str]:
    """What lkd has to know."""
    return {"KDYNO_LAYOUT_FORMAT": FORMAT, "KDYNO_LAYOUT_SEED": str(seed), "KDYNO_LD": toolchain.linker}


def make_words(words: Sequence[str], build: Path) -> tuple[str, ...]:
    """Put the delegate's path, a link in the build directory, where the plan has its name."""
    if LINKER_WORD not in words:
        return tuple(words)
    link = build / "lkd"
    if not link.is_symlink():
        link.symlink_to(find_lkd())
    return tuple(f"LD={link}" if word == LINKER_WORD else word for word in words)


def forget(objects: Path) -> None:
    """Remove what an earlier link left, so that the next one can be checked."""
    (objects / SCRIPT).unlink(missing_ok=True)


def check(objects: Path, seed: int, log: Path) -> None:
    """Raise LayoutNotMade unless vmlinux was just linked in the order of this seed."""
    asked = f"format {FORMAT}, seed {seed}"
    try:
        with (objects / SCRIPT).open(encoding="utf-8") as file:
            match = HEADER.match(file.readline())
    except OSError:
        raise LayoutNotMade(asked=asked, made="none was made", log=log) from None
    made = f"format {match[1]}, seed {match[2]}" if match else "unreadable"
    if made != asked:
        raise LayoutNotMade(asked=asked, made=made, log=log)
