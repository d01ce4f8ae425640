"""The symbols that the PMU plugin gets: bounds, roles, aliases, labels, and a vmlinux that lacks what it needs."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kdyno.base.process import ToolFailed
from kdyno.measure.guest.pmu_limits import LONGEST_NAME
from kdyno.measure.guest.symbols import SymbolNameTooLong, VmlinuxUnfit, functions, role_of, symbols_file

VMLINUX = Path("vmlinux")
BASE = 0xFFFFFFFF81000000


def listed(*symbols: tuple[int, int | None, str, str]) -> str:
    """What `nm -S` says: offset, size, kind, name."""
    marks = [(0, None, "T", "_text"), (0x10000, None, "T", "_etext")]
    return "".join(
        f"{BASE + offset:016x} {'' if size is None else f'{size:016x} '}{kind} {name}\n"
        for offset, size, kind, name in (*marks, *symbols)
    )


def from_listing(*symbols: tuple[int, int | None, str, str]) -> list[tuple[int, int, str]]:
    return [
        (function.address - BASE, function.size, function.name) for function in functions(listed(*symbols), VMLINUX)
    ]


def test_functions_are_sorted_and_what_is_not_code_of_the_running_kernel_is_left_out() -> None:
    symbols = (
        (0x200, 16, "t", "second"),
        (0x100, 16, "T", "first"),
        (0x300, 8, "d", "data"),
        (0x20000, 8, "T", "exit_function"),
    )
    assert from_listing(*symbols) == [(0x100, 16, "first"), (0x200, 16, "second")]


def test_code_for_booting_lies_between_its_own_marks() -> None:
    symbols = (
        (0x20000, None, "T", "_sinittext"),
        (0x20000, 32, "t", "do_one_initcall"),
        (0x20040, None, "T", "_einittext"),
        (0x20080, 8, "t", "exit_function"),
    )
    assert from_listing(*symbols) == [(0x20000, 32, "do_one_initcall")]


def test_what_the_assembler_gave_no_size_reaches_to_the_next_function() -> None:
    assert from_listing((0x100, None, "T", "swapgs_restore"), (0x180, 16, "T", "next")) == [
        (0x100, 0x80, "swapgs_restore"),
        (0x180, 16, "next"),
    ]


def test_a_label_within_a_function_is_part_of_it() -> None:
    assert from_listing((0x40, 0x100, "T", "entry_SYSCALL_64"), (0x67, None, "T", "entry_SYSCALL_64_safe_stack")) == [
        (0x40, 0x100, "entry_SYSCALL_64")
    ]


def test_functions_never_overlap() -> None:
    assert from_listing((0x100, 64, "T", "long"), (0x120, 64, "T", "inner")) == [
        (0x100, 32, "long"),
        (0x120, 64, "inner"),
    ]


def test_marks_of_the_linker_script_are_no_functions() -> None:
    assert from_listing((0x100, None, "T", "__sched_text_start"), (0x110, 16, "T", "schedule")) == [
        (0x110, 16, "schedule")
    ]


@pytest.mark.parametrize(
    ("aliases", "kept"),
    [
        ([(16, "T", "__memcpy"), (16, "W", "memcpy")], "memcpy"),
        ([(16, "t", "local"), (16, "T", "zz_global")], "zz_global"),
        ([(None, "T", "__irqentry_text_start"), (16, "T", "irq_entries_start")], "irq_entries_start"),
        ([(16, "T", "asm_sysvec_x"), (16, "T", "a_name")], "asm_sysvec_x"),
        ([(16, "t", "copy.constprop.0"), (16, "t", "zcopy")], "zcopy"),
        ([(16, "T", "b"), (16, "T", "a")], "a"),
    ],
)
def test_of_several_names_for_one_address_the_lasting_one_is_kept(
    aliases: list[tuple[int | None, str, str]], kept: str
) -> None:
    for order in (aliases, aliases[::-1]):
        assert from_listing(*((0x100, *alias) for alias in order)) == [(0x100, 16, kept)]


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("entry_SYSCALL_64", "syscall"),
        ("entry_SYSENTER_compat", "syscall"),
        ("asm_int80_emulation", "syscall"),
        ("asm_exc_page_fault", "exception"),
        ("irq_entries_start", "interrupt"),
        ("asm_sysvec_apic_timer_interrupt", "interrupt"),
        ("asm_common_interrupt", "-"),
        ("__switch_to_asm", "switch"),
        ("__switch_to", "-"),
        ("ret_from_fork_asm", "fork"),
        ("do_huge_pmd_anonymous_page", "huge"),
        ("__do_huge_pmd_anonymous_page", "-"),
        ("cpu_idle_poll", "idle"),
        ("cpu_idle_poll.isra.0", "idle"),
        ("cpu_idle_poll_ctrl", "-"),
        ("sys_getppid", "-"),
    ],
)
def test_a_function_by_which_the_kernel_is_entered_has_a_role(name: str, role: str) -> None:
    assert role_of(name) == role


def test_a_vmlinux_without_its_marks_is_refused_by_name() -> None:
    with pytest.raises(VmlinuxUnfit, match="vmlinux has no _text"):
        functions("0000000000401000 0000000000000010 T main\n", VMLINUX)


TEXT = """
.text
.globl _text, _etext
_text:
{functions}
_etext:
"""
FUNCTION = ".globl {name}\n.type {name}, @function\n{name}: ret\n.size {name}, .-{name}\n"


def linked(directory: Path, *names: str) -> Path:
    """A vmlinux with these functions and nothing else."""
    source, objects, vmlinux = (directory / name for name in ("a.S", "a.o", "vmlinux"))
    source.write_text(TEXT.format(functions="".join(FUNCTION.format(name=name) for name in names)))
    subprocess.run(["as", "--64", "-o", objects, source], check=True)
    subprocess.run(["ld", f"-Ttext={BASE:#x}", "-e", "_text", "-o", vmlinux, objects], check=True)
    return vmlinux


ENTRIES = ("entry_SYSCALL_64", "irq_entries_start", "__switch_to_asm")


def test_a_name_that_the_plugin_would_not_take_is_refused_before_a_boot(tmp_path: Path) -> None:
    assert symbols_file(linked(tmp_path, *ENTRIES, "a" * LONGEST_NAME))
    with pytest.raises(SymbolNameTooLong, match="a name of 1,025 bytes: aaaa"):
        symbols_file(linked(tmp_path, *ENTRIES, "a" * (LONGEST_NAME + 1)))


def test_the_file_for_the_plugin_has_a_line_for_each_function(tmp_path: Path) -> None:
    text = symbols_file(linked(tmp_path, *ENTRIES, "ret_from_fork", "schedule"))
    assert text.splitlines() == [
        "ffffffff81000000 1 syscall entry_SYSCALL_64",
        "ffffffff81000001 1 interrupt irq_entries_start",
        "ffffffff81000002 1 switch __switch_to_asm",
        "ffffffff81000003 1 fork ret_from_fork",
        "ffffffff81000004 1 - schedule",
    ]


def test_ret_from_fork_is_an_ordinary_function_where_ret_from_fork_asm_is_the_entry(tmp_path: Path) -> None:
    text = symbols_file(linked(tmp_path, *ENTRIES, "ret_from_fork", "ret_from_fork_asm"))
    assert re.findall(r"(\S+) (ret_from_fork\w*)", text) == [("-", "ret_from_fork"), ("fork", "ret_from_fork_asm")]


@pytest.mark.parametrize("missing", ENTRIES)
def test_a_vmlinux_without_an_entry_is_refused_by_name(tmp_path: Path, missing: str) -> None:
    with pytest.raises(VmlinuxUnfit, match=f"has no {missing}"):
        symbols_file(linked(tmp_path, *(name for name in ENTRIES if name != missing)))


def test_a_stripped_vmlinux_and_a_file_that_is_none_are_refused(tmp_path: Path) -> None:
    vmlinux = linked(tmp_path, *ENTRIES)
    subprocess.run(["strip", vmlinux], check=True)
    with pytest.raises(VmlinuxUnfit):
        symbols_file(vmlinux)
    script = Path(shutil.copy(__file__, tmp_path / "text"))
    with pytest.raises(ToolFailed):
        symbols_file(script)
