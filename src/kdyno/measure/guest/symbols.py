"""The functions of a vmlinux as the PMU plugin reads them: sorted, none overlapping, each with its role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise
from operator import attrgetter
from pathlib import Path
from typing import NamedTuple

from kdyno.base import elf_listing
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.measure.guest.pmu_limits import LONGEST_NAME

KERNEL_IMAGE = 0xFFFFFFFF80000000
"""__START_KERNEL_map: where x86-64 kernels are linked to (Documentation/arch/x86/x86_64/mm.rst)."""

ROLES = {
    # The names of arch/x86/entry/entry_64.S, entry_64_compat.S and arch/x86/include/asm/idtentry.h of Linux 5.8 to 7.2.
    # asm_common_interrupt is no entry: the stubs of irq_entries_start jump to it. entry_INT80_compat became an IDT
    # entry like others in 6.7 (be5341eb0d43 "x86/entry: Convert INT 0x80 emulation to IDTENTRY").
    "syscall": r"entry_SYSCALL_64|entry_SYSCALL_compat|entry_SYSENTER_compat|entry_INT80_compat|asm_int80_emulation",
    "exception": r"asm_exc_\w+",
    "interrupt": r"irq_entries_start|spurious_entries_start|asm_sysvec_\w+",
    "switch": r"__switch_to_asm",
    "fork": r"ret_from_fork_asm",
    # These map a page of 2 MB for a fault, or for khugepaged: without them there are no such pages.
    "huge": r"do_huge_pmd_anonymous_page|hugetlb_fault|hpage_collapse_scan_pmd|khugepaged_scan_pmd",
    # The loop of `idle=poll` (kernel/sched/idle.c); compilers add a suffix to its name.
    "idle": r"cpu_idle_poll(?:\.\w+)*",
}
OLD_FORK = "ret_from_fork"
"""The name of ret_from_fork_asm before Linux 6.6, where a C function has taken it."""
NEEDED = {"syscall": "entry_SYSCALL_64", "switch": "__switch_to_asm", "interrupt": "irq_entries_start"}
"""Roles that the plugin needs to distinguish contexts, and the function that every kernel has for them."""

ROLE = re.compile("|".join(f"(?P<{role}>{names})" for role, names in ROLES.items()))
MARK = re.compile(r"_s?text|_sinittext|__\w+_(start|end)")
"""Marks of the linker script: without a size, and not functions."""
LINE = re.compile(r"^([0-9a-f]{16}) (?:([0-9a-f]{16}) )?([tTwW]) (\S+)$", re.MULTILINE)


MOST_BYTES = 100_000_000
"""Marks of the linker script in a System.map."""


class VmlinuxUnfit(UserError):
    message = "{vmlinux} has no {what}: the emulated PMU can't distinguish what this kernel does"
    hint = "use the vmlinux of an x86-64 kernel with its symbols, not a stripped one"


class SymbolNameTooLong(UserError):
    message = "{vmlinux} has a function with a name of {length:,} bytes: {name}..."
    hint = f"rename it: the emulated PMU takes up to {LONGEST_NAME:,}; the kernel's own tables allow at most 512"


class Symbol(NamedTuple):
    """A function; `size` in bytes, 0 if the assembler gave none."""

    address: int
    size: int
    name: str
    is_global: bool = True


def symbols_file(vmlinux: Path, system_map: Path | None = None, *, is_process: bool = False) -> str:
    """Return the file for the plugin's option `symbols`: a line `ADDRESS SIZE ROLE NAME` for each function,
    hexadecimal.

    `system_map` gives the functions of a vmlinux that has no symbols; without sizes each reaches to the next.

    A kernel that `is_process` (ARCH=um) lies anywhere, and has no entries: no function has a role.

    Raise VmlinuxUnfit if it is not the vmlinux of an x86-64 kernel, SymbolNameTooLong, and ToolFailed if it is not an
    ELF file.
    """
    listing = read_whole(system_map, MOST_BYTES).decode("ascii", "replace") if system_map else None
    symbols = functions(listing or elf_listing.symbols(vmlinux), vmlinux, 0 if is_process else KERNEL_IMAGE)
    for symbol in symbols:
        if (length := len(symbol.name.encode())) > LONGEST_NAME:
            raise SymbolNameTooLong(vmlinux=vmlinux, length=length, name=symbol.name[:40])
    if is_process:
        return "".join(f"{symbol.address:x} {symbol.size:x} - {symbol.name}\n" for symbol in symbols)
    roles = [role_of(symbol.name) for symbol in symbols]
    for role, name in NEEDED.items():
        if role not in roles:
            raise VmlinuxUnfit(vmlinux=vmlinux, what=name)
    if "fork" not in roles:
        roles = ["fork" if symbol.name == OLD_FORK else role for symbol, role in zip(symbols, roles, strict=True)]
    return "".join(
        f"{symbol.address:x} {symbol.size:x} {role} {symbol.name}\n"
        for symbol, role in zip(symbols, roles, strict=True)
    )


def role_of(name: str) -> str:
    """Return the role of this function for the plugin, `-` for almost all."""
    match = ROLE.fullmatch(name)
    return (match and match.lastgroup) or "-"


def functions(listing: str, vmlinux: Path, lowest: int = KERNEL_IMAGE) -> list[Symbol]:
    """Return the functions in the listing of `nm -S`, by address, with one name each and no overlap. Pure.

    Raise VmlinuxUnfit if the text doesn't lie at `lowest` or above.
    """
    symbols = sorted(
        (
            Symbol(int(address, 16), int(size or "0", 16), name, kind != "t")
            for address, size, kind, name in (line.groups() for line in LINE.finditer(listing))
        ),
        key=attrgetter("address"),
    )
    marks = {symbol.name: symbol.address for symbol in symbols if not symbol.size}
    for mark in ("_text", "_etext"):
        if mark not in marks or marks[mark] < lowest:
            raise VmlinuxUnfit(vmlinux=vmlinux, what=mark)
    kept: list[Symbol] = []
    for start, end in (("_text", "_etext"), ("_sinittext", "_einittext")):
        if kept and marks.get(start, 0) < marks["_etext"]:
            continue  # ARCH=um has its initialisation code within the text
        kept += _bound_functions(symbols, marks.get(start, 0), marks.get(end, 0))
    return kept


def _bound_functions(symbols: list[Symbol], start: int, end: int) -> Iterator[Symbol]:
    """Yield the functions from `start` to `end`; one without a size reaches to the next."""
    inside = (symbol for symbol in symbols if start <= symbol.address < end)
    named = (_best(list(aliases)) for _, aliases in groupby(inside, key=attrgetter("address")))
    for symbol, following in pairwise([*_drop_labels(named), Symbol(end, 0, "")]):
        room = following.address - symbol.address
        if symbol.size or not MARK.fullmatch(symbol.name):
            yield symbol._replace(size=min(symbol.size or room, room))


def _best(aliases: list[Symbol]) -> Symbol:
    """Return the best of several names for one address: a role's, a sized function's, a global one, the plainest.

    `memcpy` rather than `__memcpy`, and a name rather than one with a suffix that the compiler made.
    """

    def preference(symbol: Symbol) -> tuple[object, ...]:
        underscores = len(symbol.name) - len(symbol.name.lstrip("_"))
        return (
            role_of(symbol.name) == "-",
            symbol.size == 0,
            not symbol.is_global,
            symbol.name.count("."),
            underscores,
            symbol.name,
        )

    return aliases[0] if len(aliases) == 1 else min(aliases, key=preference)


def _drop_labels(symbols: Iterable[Symbol]) -> Iterator[Symbol]:
    """Yield all but labels: symbols without a size that lie within a function, as entry_SYSCALL_64_after_hwframe
    does.
    """
    end = 0
    for symbol in symbols:
        if symbol.size or symbol.address >= end:
            yield symbol
        end = max(end, symbol.address + symbol.size)
