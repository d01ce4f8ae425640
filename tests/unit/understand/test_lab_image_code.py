"""Routines of a built kernel: their bytes are taken out of its vmlinux, with what they call, and proven."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from kdyno.base import process
from kdyno.kernel.routines.families import DATA, routine_families
from kdyno.understand.lab.build import BuiltCandidate, RoutineBuild, link_program
from kdyno.understand.lab.code import read_function
from kdyno.understand.lab.exception_table import Recovery, read_exception_table, table_lines
from kdyno.understand.lab.image_code import CodeUnfit, ImageFunctions, routine_source
from kdyno.understand.lab.prove import RoutineProof, image_candidate, proof_limits, prove_candidate
from tests.unit.lab_specimen import compile_routine

FUNCTION = """\
.globl {name}
.type {name}, @function
.p2align 4
{name}:
{body}
.size {name}, . - {name}
"""
FILL = "\tmovq %rdx, %rcx\n\tmovl %esi, %eax\n\trep stosb"
THUNK = FUNCTION.format(name="__x86_return_thunk", body="\tret\n\tint3")
TRACER = FUNCTION.format(name="__fentry__", body="\tud2")
MEMSET = "\tendbr64\n\tcall __fentry__\n\tpushq %rdi\n\tcall fill\n\tpopq %rax\n\tjmp __x86_return_thunk"


def link(tmp_path: Path, *functions: str) -> ImageFunctions:
    """The functions of a program that is linked where kernels are."""
    source, target, vmlinux = tmp_path / "kernel.s", tmp_path / "kernel.o", tmp_path / "vmlinux"
    source.write_text(".text\n" + ".skip 512\n".join(functions), encoding="ascii")
    process.output(["as", source, "-o", target])
    process.output(["ld", "-Ttext=0xffffffff81000000", "-e", "0", target, "-o", vmlinux])
    return ImageFunctions(vmlinux)


def kernel(tmp_path: Path, fill: str = FILL) -> ImageFunctions:
    """A kernel whose memset is traced, calls another function, and returns by a thunk."""
    filler = FUNCTION.format(name="fill", body=f"{fill}\n\tjmp __x86_return_thunk")
    return link(tmp_path, TRACER, THUNK, filler, FUNCTION.format(name="__memset", body=MEMSET))


def prove(functions: ImageFunctions, tmp_path: Path) -> RoutineProof:
    family = routine_families()["memset"]
    built = image_candidate(functions, "__memset", family.candidate_named("orig"), tmp_path)
    build = RoutineBuild(family, (built,), built.name, ())
    program = link_program(tmp_path, family, build.built, 0, np.random.default_rng(1))
    return prove_candidate(program, build, 0, proof_limits(family, is_sample=True), 1)


def test_a_routine_of_a_kernel_is_proven_with_the_function_that_it_calls(tmp_path: Path) -> None:
    proof = prove(kernel(tmp_path), tmp_path)
    assert proof.outcome == "equal", proof.statement


def test_a_wrong_routine_of_a_kernel_is_found(tmp_path: Path) -> None:
    wrong = "\tmovq %rdx, %rcx\n\tmovl %esi, %eax\n\tcmpq $9, %rcx\n\tjne 1f\n\tdecq %rcx\n1:\trep stosb"
    proof = prove(kernel(tmp_path, wrong), tmp_path)
    assert proof.outcome == "wrong" and "size 9," in proof.statement


def test_all_bytes_but_calls_and_returns_are_those_of_the_kernel(tmp_path: Path) -> None:
    functions = kernel(tmp_path)
    source, target = tmp_path / "copy.s", tmp_path / "copy.o"
    source.write_text(routine_source(functions, "__memset", "copy"), encoding="ascii")
    process.output(["as", source, "-o", target])
    listing = process.output(["objdump", "-d", "--no-show-raw-insn", target])
    for text in ("endbr64", "nopl", "push   %rdi", "pop    %rax", "ret", "rep stos"):
        assert text in listing
    assert "ud2" not in listing, "the tracer is not called"
    assert read_function(functions.vmlinux, "fill").content[:3] == b"\x48\x89\xd1"


def test_functions_that_a_short_jump_reaches_keep_their_distance(tmp_path: Path) -> None:
    near = FUNCTION.format(name="__memset", body="\tendbr64\n\tjmp fill\n\t.skip 30, 0x90")
    filler = FUNCTION.format(name="fill", body=f"{FILL}\n\tmovq %rdi, %rax\n\tsubq %rdx, %rax\n\tret")
    functions = link(tmp_path, f"{near}.skip 40, 0xcc\n{filler}")
    assert read_function(functions.vmlinux, "__memset").content[4] == 0xEB, "a short jump"
    proof = prove(functions, tmp_path)
    assert proof.outcome == "equal", proof.statement


def test_a_call_within_a_routine_stays_as_it_is(tmp_path: Path) -> None:
    inner = "\tendbr64\n\tcall inside\n\tret\n.globl inside\n.type inside, @function\ninside:\n\tnop\n\tret\n"
    functions = link(tmp_path, FUNCTION.format(name="__memset", body=inner) + ".size inside, 2\n")
    assert "inside" in {row.name for row in functions.rows}
    assert ".long" not in routine_source(functions, "__memset", "copy")


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("\tmovq 0x1234(%rip), %rax\n\tret", r"__memset refers to data: mov .*\(%rip\),%rax"),
        ("\tjmp *0x60001000(,%rax,8)", "__memset refers to data: jmp"),
        ("\tjmp __x86_return_thunk + 1", "where no function begins"),
    ],
)
def test_a_routine_that_can_not_stand_alone_is_refused(body: str, reason: str, tmp_path: Path) -> None:
    functions = link(tmp_path, THUNK, FUNCTION.format(name="__memset", body=body))
    with pytest.raises(CodeUnfit, match=reason):
        routine_source(functions, "__memset", "copy")


def test_a_kernel_without_the_routine_is_refused(tmp_path: Path) -> None:
    with pytest.raises(CodeUnfit, match="the image has 0 functions strlen"):
        routine_source(link(tmp_path, THUNK), "strlen", "copy")


def prove_copy(vmlinux: Path, built: BuiltCandidate, directory: Path) -> RoutineProof:
    """Prove csum_and_copy by its bytes in an image."""
    directory.mkdir()
    copy = image_candidate(ImageFunctions(vmlinux), built.symbol, built.candidate, directory)
    build = RoutineBuild(routine_families()["csum_and_copy"], (copy,), copy.name, ())
    program = link_program(directory, build.family, build.built, 0, np.random.default_rng(1))
    return prove_candidate(program, build, 0, proof_limits(build.family, is_sample=True), 1)


def test_faults_of_a_routine_are_recovered_by_the_exception_table_of_its_kernel(tmp_path: Path) -> None:
    row = routine_families()["csum_and_copy"].candidate_named("any-alignment")
    built = compile_routine(DATA / "rewrites" / row.file, row, tmp_path)
    vmlinux, without = tmp_path / "vmlinux", tmp_path / "without"
    process.output(["ld", "-Ttext=0xffffffff81000000", "-e", "0", built.object, "-o", vmlinux])
    proof = prove_copy(vmlinux, built, tmp_path / "with-table")
    assert proof.outcome == "equal" and proof.statement.endswith("that its exception table recovers")
    process.output(["objcopy", "--remove-section=__ex_table", vmlinux, without])
    assert read_exception_table(vmlinux) and read_exception_table(without) == {}
    proof = prove_copy(without, built, tmp_path / "without-table")
    assert proof.outcome == "wrong" and proof.statement.startswith("its exception table doesn't recover a fault; ")


def test_only_recoveries_that_go_on_elsewhere_in_the_function_are_copied() -> None:
    recoveries = {0x1004: Recovery(0x1010, 3), 0x1008: Recovery(0x3000, 1), 0x2000: Recovery(0x2004, 1)}
    assert list(table_lines(recoveries, [(0x1000, 0x1020, "copy")])) == [
        '.pushsection __ex_table, "a"',
        ".long copy + 4 - ., copy + 16 - ., 3",
        ".popsection",
    ]
