"""Tells whether two kernels run the same code: a digest of all that a vmlinux has in memory."""

from __future__ import annotations

import hashlib
from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.kernel.vmlinux.elf_sections import MOST_BYTES, Damaged, MappedElf

IGNORED = frozenset({".notes", "__bug_table", ".BTF", ".BTF_ids"})
"""Sections that change with the numbers of lines, or with types alone, and are not executed or read by a benchmark."""


def code_digest(vmlinux: Path) -> str | None:
    """Return the SHA-256 of the code and data of a kernel, with their addresses; None if the file can't be read.

    Kernels with one digest differ at most in the IGNORED sections. A changed comment or document gives the same digest.
    """
    try:
        elf = MappedElf(read_whole(vmlinux, MOST_BYTES))
        total = hashlib.sha256()
        for name, section in elf.in_memory():
            if name not in IGNORED:
                total.update(f"{name} {section.address} {section.size}\n".encode())
                total.update(section.content)
    except (OSError, Damaged):
        return None
    return total.hexdigest()
