"""What nm lists of an ELF file that may be anybody's: in a small one a thousand symbols can share a long name."""

from __future__ import annotations

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
    try:
        done = attempt(["nm", "-S", "--defined-only", path], env={"LC_ALL": "C"}, most=MOST_BYTES)
    except TooMuchOutput:
        raise ElfUnsound(path=path, why=f"nm lists more than {MOST_BYTES:,} bytes of it") from None
    if done.returncode != 0:
        raise failure(["nm", path], done.returncode, done.stderr)
    if max(map(len, done.stdout.split("\n"))) > LONGEST_LINE:
        raise ElfUnsound(path=path, why=f"a name in it has nearly {LONGEST_LINE:,} bytes, or more")
    return done.stdout
