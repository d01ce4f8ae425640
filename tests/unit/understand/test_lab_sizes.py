"""Calls of routines: a program whose calls are known is counted exactly, and counts become tables and pictures."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import pytest

from kdyno.base import process
from kdyno.base.installed import ProgramMissing
from kdyno.cli.schemas import schema
from kdyno.kernel.routines.families import counted_routines
from kdyno.measure.cycles.measure import QEMU_USER
from kdyno.understand.lab.size_lines import quantile, size_classes, size_lines, size_plot
from kdyno.understand.lab.sizes import (
    CallSizes,
    find_calls_plugin,
    read_counts,
    read_symbols,
    routine_lines,
    sizes_csv,
    sum_by_size,
    uncounted_notes,
)
from kdyno.understand.lab.timing import read_distributions

ROUTINES = counted_routines()
PROGRAM = r"""
	.globl _start, memcpy, strlen
	.text
memcpy:
	movq %rdi, %rax
	cmpq $8, %rdx
	jae memcpy_orig
	movq %rdx, %rcx
	rep movsb
	ret
	.p2align 4
	.type memcpy_orig, @function
memcpy_orig:
	pushq %rbx
	leaq -8(%rdx), %rcx
	movq (%rsi,%rcx), %rbx
	movq (%rsi), %r8
	movq %r8, (%rdi)
	movq %rbx, (%rdi,%rcx)
	popq %rbx
	jmp thunk
	.p2align 4
	.globl thunk
thunk:
	ret
	.p2align 4
strlen:
	xorl %eax, %eax
1:	cmpb $0, (%rdi,%rax)
	je 2f
	incq %rax
	jmp 1b
2:	ret
	.p2align 4
	.globl crc32_le, __crc32c_le, crc32_body, csum_partial_copy_generic, rep_movs_alternative, after
crc32_le:
	leaq table(%rip), %rcx
	jmp crc32_body
	.p2align 4
__crc32c_le:
	leaq table+1024(%rip), %rcx
	call crc32_body
	ret
	.p2align 4
crc32_body:
	xorb (%rsi), %dil
	movzbl %dil, %eax
	movl (%rcx,%rax,4), %edi
	incq %rsi
	decq %rdx
	jne crc32_body
	ret
	.p2align 4
csum_partial_copy_generic:
	movl %edx, %ecx
	xchgq %rsi, %rdi
	prefetcht0 5*64(%rsi)
	rep movsb
	ret
	.p2align 4
rep_movs_alternative:
	cmpq $64, %rcx
	rep movsb
	ret
	.p2align 4
after:
	ret
	.macro sum function, from, size
	leaq area+1024+\from(%rip), %rsi
	movl $\size, %edx
	call \function
	.endm
	.macro copy to, from, size
	leaq area+\to(%rip), %rdi
	leaq area+1024+\from(%rip), %rsi
	movl $\size, %edx
	call memcpy
	.endm
_start:
	copy 0, 3, 5
	.byte 0x66, 0x87, 0xdb
	copy 1, 0, 0
	copy 1, 0, 7
	copy 17, 40, 16
	copy 17, 40, 16
	copy 64, 8, 11
	leaq text+2(%rip), %rdi
	call strlen
	.byte 0x66, 0x87, 0xc9
	leaq text(%rip), %rdi
	call strlen
	sum crc32_le, 3, 21
	sum __crc32c_le, 8, 9
	leaq area+1024+6(%rip), %rdi
	leaq area+2(%rip), %rsi
	movl $75, %edx
	call csum_partial_copy_generic
	leaq area(%rip), %rdi
	leaq area+1024(%rip), %rsi
	movl $5, %ecx
	call rep_movs_alternative
	movl $60, %eax
	xorl %edi, %edi
	syscall
	.bss
	.balign 64
area:	.skip 2048
	.skip 4096
table:	.skip 2048
	.data
	.balign 64
text:	.asciz "routines"
"""


def need_plugin() -> Path:
    try:
        return find_calls_plugin()
    except ProgramMissing as error:
        pytest.skip(str(error))


def need_plugins_of_qemu(plugin: Path) -> None:
    done = process.attempt([QEMU_USER, "-plugin", str(plugin), "/bin/true"])
    if "kdyno-calls:" not in done.stderr:
        pytest.skip(f"this {QEMU_USER} loads no plugins")


def test_calls_whose_sizes_are_known_are_counted_exactly(tmp_path: Path) -> None:
    plugin = need_plugin()
    need_plugins_of_qemu(plugin)
    source, program = tmp_path / "program.S", tmp_path / "program"
    source.write_text(PROGRAM, encoding="ascii")
    process.output(["gcc", "-nostdlib", "-static", "-no-pie", source, "-o", program])
    symbols = read_symbols(process.output(["nm", program]))
    (tmp_path / "routines").write_text(routine_lines(symbols, ROUTINES), encoding="ascii")
    words = f"{plugin},out={tmp_path}/out,routines={tmp_path}/routines"
    process.output([QEMU_USER, "-plugin", words, program])
    counts = read_counts((tmp_path / "out").read_text(encoding="ascii"), ROUTINES)
    calls = {
        (family.family, call.size, call.to, call.from_, call.when): call.count
        for family in counts.calls
        for call in family.calls
    }
    assert (counts.lost, counts.undirected) == (0, 1), "both sides of a process's copies are in the lower half"
    assert calls == {
        ("memcpy", 5, 0, 3, "other"): 1,
        ("memcpy", 0, 0, 0, "measured"): 1,
        ("memcpy", 7, 1, 0, "measured"): 1,
        ("memcpy", 16, 17, 40, "measured"): 2,
        ("memcpy", 11, 0, 8, "measured"): 1,
        ("strlen", 6, 0, 2, "measured"): 1,
        ("strlen", 8, 0, 0, "other"): 1,
        ("crc32", 21, 0, 3, "other"): 1,
        ("crc32c", 9, 0, 8, "other"): 1,
        ("csum_and_copy", 75, 2, 6, "other"): 1,
    }


@pytest.mark.parametrize("words", ["", ",out=x", ",out=x,routines=/nowhere/at/all", ",out=x,routines=x,more=y"])
def test_the_plugin_refuses_options_that_it_cannot_follow(words: str, tmp_path: Path) -> None:
    plugin = need_plugin()
    need_plugins_of_qemu(plugin)
    done = process.attempt([QEMU_USER, "-plugin", f"{plugin}{words}", "/bin/true"], cwd=tmp_path)
    assert done.returncode != 0 and "kdyno-calls: " in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_missing_plugin_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KDYNO_CALLS_PLUGIN", raising=False)
    monkeypatch.setattr("kdyno.measure.guest.pmu.PACKAGE", tmp_path)
    with pytest.raises(ProgramMissing, match=r"kdyno_calls\.\*\.so"):
        find_calls_plugin()
    (tmp_path / "kdyno_calls.abi3.so").write_bytes(b"")
    assert find_calls_plugin() == tmp_path / "kdyno_calls.abi3.so"


SYSTEM_MAP = """\
ffffffff81000000 T memcpy
ffffffff81000000 T __memcpy
ffffffff81000030 t memcpy_orig
ffffffff81000100 T strlen
ffffffff81000120 T other
ffffffff81000140 t crc32_body
ffffffff81000180 T crc32_le
ffffffff81000180 T crc32_le_base
ffffffff81000190 T __crc32c_le
ffffffff810001a0 T rep_movs_alternative
ffffffff81000200 T last
ffffffff82000000 D data
"""


def test_the_routines_of_a_kernel_are_found_by_their_symbols() -> None:
    lines = routine_lines(read_symbols(SYSTEM_MAP), ROUTINES).splitlines()
    assert lines == [
        "copy_from_user ffffffff810001a0 ffffffff810001a0 ffffffff81000200",
        "crc32 ffffffff81000180 ffffffff81000180 ffffffff81000190",
        "crc32 0 ffffffff81000140 ffffffff81000180",
        "crc32c ffffffff81000190 ffffffff81000190 ffffffff810001a0",
        "crc32c 0 ffffffff81000140 ffffffff81000180",
        "memcpy ffffffff81000000 ffffffff81000000 ffffffff81000030",
        "memcpy 0 ffffffff81000030 ffffffff81000100",
        "strlen ffffffff81000100 ffffffff81000100 ffffffff81000120",
    ]
    assert routine_lines(read_symbols("ffffffff81000120 T other\n"), ROUTINES) == ""


COUNTS = """\
routine\twhen\twritten\tread\tto\tfrom\tuser\tcount
memcpy\tmeasured\t40\t40\t0\t8\tneither\t30
memcpy\tmeasured\t40\t40\t1\t8\tneither\t10
memcpy\tother\t1500\t1500\t0\t0\tneither\t60
strlen\tmeasured\t0\t6\t0\t3\tread\t2
-\tlost\t0\t0\t0\t0\t-\t7
"""
USER_COPIES = """\
routine\twhen\twritten\tread\tto\tfrom\tuser\tcount
copy_from_user\tmeasured\t40\t40\t0\t8\tread\t3
copy_from_user\tmeasured\t16\t16\t0\t8\twritten\t4
copy_from_user\tmeasured\t0\t0\t0\t0\tneither\t5
"""


def report() -> CallSizes:
    counts = read_counts(COUNTS, ROUTINES)
    return CallSizes(
        image="0" * 64,
        kernel="6.12",
        load=("lat_udp",),
        seed=1,
        families=counts.calls,
        lost=counts.lost,
        undirected=counts.undirected,
        notes=uncounted_notes(read_symbols(SYSTEM_MAP), ROUTINES, {calls.family for calls in counts.calls}),
    )


def test_counts_are_summed_by_size_and_phase() -> None:
    memcpy, strlen = report().families
    assert sum_by_size(memcpy, "measured") == {40: 40}
    assert sum_by_size(memcpy, None) == {40: 40, 1500: 60}
    assert sum_by_size(strlen, None) == {5: 2}
    assert (memcpy.total("other"), memcpy.total()) == (60, 100)


def test_the_direction_of_a_user_copy_is_determined_by_the_half_of_the_addresses() -> None:
    counts = read_counts(USER_COPIES, ROUTINES)
    assert {calls.family: sum_by_size(calls, None) for calls in counts.calls} == {
        "copy_from_user": {40: 3},
        "copy_to_user": {16: 4},
    }
    assert (counts.lost, counts.undirected) == (0, 5)
    lines = size_lines(report().model_copy(update={"undirected": 5}), None)
    assert "5 user copies of no bytes are left out, too" in lines


def test_a_kernel_that_inlines_a_user_copy_is_reported() -> None:
    text = "\n".join(size_lines(report(), None))
    copied = "nothing called rep_movs_alternative: this kernel has it inlined as rep movsb, as on a processor with FSRM"
    assert f"copy_from_user: {copied}, or never called it" in text and f"copy_to_user: {copied}" in text
    assert "clear_user: not counted: this kernel has none of rep_stos_alternative, clear_user_original" in text


def test_sizes_are_written_for_the_timing_to_read(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text(sizes_csv(report(), "measured"), encoding="utf-8")
    assert read_distributions(path) == {"memcpy": [(40, 30.0), (40, 10.0)], "strlen": [(5, 2.0)]}
    rows = list(csv.DictReader(io.StringIO(sizes_csv(report(), None))))
    assert Counter(row["when"] for row in rows) == {"measured": 3, "other": 1}


def test_sizes_are_printed_with_their_quantiles_and_drawn() -> None:
    text = "\n".join(size_lines(report(), None))
    assert "memcpy                100   1,500   1,500   1,500     90 %  1,500 (60 %), 40 (40 %)" in text
    assert "7 calls whose return wasn't seen are left out" in text
    assert "load lat_udp, seed 1: all calls of the boot" in text
    picture = ElementTree.fromstring(size_plot(report(), "measured"))
    labels = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "memcpy, bytes: 40 calls" in labels and "32-63" in labels
    jsonschema.validate(json.loads(report().model_dump_json()), schema("lab-sizes"))


def test_classes_of_sizes_double_and_a_quantile_is_a_size() -> None:
    counts = {0: 1, 1: 2, 5: 3, 16: 4}
    assert size_classes(counts) == [
        ("0", 1, 0),
        ("1", 2, 2),
        ("2-3", 0, 0),
        ("4-7", 3, 15),
        ("8-15", 0, 0),
        ("16-31", 4, 64),
    ]
    assert [quantile(counts, share) for share in (0.1, 0.5, 0.9)] == [0, 5, 16]
    with pytest.raises(ValueError, match="there are no calls"):
        quantile({}, 0.5)
