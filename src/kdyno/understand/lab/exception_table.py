"""The exception table of a kernel: the instructions whose faults it recovers, and where it goes on behind each."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from kdyno.base import process
from kdyno.understand.lab.code import ROW

SECTION = "__ex_table"
ENTRY = struct.Struct("<iii")
"""Two distances, each from its own field, and a type (arch/x86/include/asm/extable.h)."""
TYPES = {1: "EX_TYPE_DEFAULT", 3: "EX_TYPE_UACCESS"}
"""The types that do no more than go on elsewhere."""


@dataclass(frozen=True)
class Recovery:
    """One recovered fault."""

    next: int
    """The address where the kernel goes on."""
    type: int


def read_exception_table(vmlinux: Path) -> dict[int, Recovery]:
    """Return the recoveries by the address of the instruction; empty if there is no table. Raises ToolMissing."""
    done = process.attempt(["objdump", "-s", "-j", SECTION, vmlinux])
    rows = [row for line in done.stdout.splitlines() if (row := ROW.match(line))]
    if not rows:
        return {}
    content = b"".join(bytes.fromhex(row[1].replace(" ", "")) for row in rows)
    start = int(rows[0][0].split()[0], 16)
    return dict(_entries(start, content[: len(content) // ENTRY.size * ENTRY.size]))


def _entries(start: int, content: bytes) -> Iterator[tuple[int, Recovery]]:
    for place, (fault, onward, kind) in enumerate(ENTRY.iter_unpack(content)):
        if kind in TYPES:
            address = start + place * ENTRY.size
            yield address + fault, Recovery(address + 4 + onward, kind)


def table_lines(recoveries: Mapping[int, Recovery], places: Iterable[tuple[int, int, str]]) -> Iterator[str]:
    """Yield assembler of the entries for copies of functions: their addresses, ends and labels. Pure."""
    for start, end, label in places:
        for fault in range(start, end):
            recovery = recoveries.get(fault)
            if recovery is None or not start <= recovery.next < end:
                continue
            yield f'.pushsection {SECTION}, "a"'
            yield f".long {label} + {fault - start} - ., {label} + {recovery.next - start} - ., {recovery.type}"
            yield ".popsection"
