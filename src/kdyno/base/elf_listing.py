"""The listings that binutils make of an ELF file from anybody: even in a small file, a thousand symbols can share a
long name.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.process import TooMuchOutput, attempt, failure

MOST_BYTES = 48 << 20
"""Bytes of a listing: enough for a million symbols; a distribution's kernel has 200,000. Python needs ten times as
much.
"""
LONGEST_LINE = 4096
"""Bytes. A name in the kernel's own tables has at most 512 (KSYM_NAME_LEN of include/linux/kallsyms.h)."""


class ElfUnsound(UserError):
    message = "{path} is not a valid ELF file: {why}"
    hint = "the file is damaged, or made to exhaust memory: build it again"


def symbols(path: Path) -> str:
    """Return the listing of `nm -S`: a line `ADDRESS [SIZE] KIND NAME` for each symbol, hexadecimal.

    Raise ElfUnsound, ToolMissing, and ToolFailed if it is not an ELF file.
    """
    done = run_listing(["nm", "-S", "--defined-only"], path)
    if done.returncode != 0:
        raise failure(["nm", path], done.returncode, done.stderr)
    return done.stdout


def run_listing(command: Sequence[str], path: Path) -> subprocess.CompletedProcess[str]:
    """Return what this program of binutils prints about the file; the caller checks its status. Raise ElfUnsound."""
    try:
        done = attempt([*command, path], env={"LC_ALL": "C"}, most=MOST_BYTES)
    except TooMuchOutput:
        raise ElfUnsound(path=path, why=f"{command[0]} lists more than {MOST_BYTES:,} bytes of it") from None
    if max(map(len, done.stdout.split("\n"))) > LONGEST_LINE:
        raise ElfUnsound(path=path, why=f"a name in it has almost {LONGEST_LINE:,} bytes, or more")
    return done
