"""Routines that tests compile, and reports of times."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from kdyno.base import process
from kdyno.base.cpu import read_cpu
from kdyno.kernel.routines.families import DATA, RoutineSource, routine_families
from kdyno.understand.lab.build import (
    NO_IDIOMS,
    REWRITE_FLAGS,
    BuiltCandidate,
    RoutineBuild,
    code_problems,
    link_program,
    write_assembler_headers,
)
from kdyno.understand.lab.crc32c_tables import tables_header
from kdyno.understand.lab.prove import ProofLimits, RoutineProof, proof_limits, prove_candidate

KERNEL_FLAGS = ("-O2", "-mno-sse", "-mno-red-zone", "-mcmodel=kernel", "-fno-pie", "-fno-stack-protector", "-w")
"""The flags of a kernel that matter to a routine."""


def compile_routine(source: Path, candidate: RoutineSource, directory: Path, number: int = 0) -> BuiltCandidate:
    """Compile a file to an object whose only symbol is the candidate's."""
    (directory / "crc32c_tables.h").write_text(tables_header(), encoding="ascii")
    target, symbol = directory / f"{number}.o", f"lab_candidate_{number}"
    is_assembler = source.suffix == ".S"
    flags = () if is_assembler else (*KERNEL_FLAGS, *REWRITE_FLAGS, NO_IDIOMS, "-I", str(directory))
    write_assembler_headers(directory / "assembler")
    headers = ("-I", str(DATA / "rewrites"), "-I", str(directory / "assembler"))
    process.output(["gcc", *flags, *headers, *candidate.words, "-c", source, "-o", target])
    process.output(["objcopy", f"--redefine-sym={candidate.entry}={symbol}", target])
    process.output(["objcopy", f"--keep-global-symbol={symbol}", target])
    problems = code_problems(process.output(["objdump", "-d", "--no-show-raw-insn", target]))
    return BuiltCandidate(candidate.name, candidate, "gcc", candidate.words, symbol, target, problems)


def rewrite_build(family: str, directory: Path) -> RoutineBuild:
    """Compile all rewrites of a family that this CPU can run by gcc; the first one takes the place of the kernel's own
    choice.
    """
    flags = read_cpu().flags
    rewrites = [
        row for row in routine_families()[family].candidate if row.origin == "kdyno" and flags.issuperset(row.cpu_flags)
    ]
    built = tuple(
        compile_routine(DATA / "rewrites" / row.file, row, directory, number) for number, row in enumerate(rewrites)
    )
    return RoutineBuild(routine_families()[family], built, built[0].name, ())


def planted_build(family: str, text: str, directory: Path, suffix: str = ".c") -> RoutineBuild:
    """Compile a text as the only candidate of a family."""
    model = routine_families()[family]
    source = directory / f"planted{suffix}"
    source.write_text(text, encoding="ascii")
    row = model.candidate[-1].model_copy(update={"name": "planted", "entry": "planted", "words": ()})
    built = compile_routine(source, row, directory)
    return RoutineBuild(model, (built,), "planted", ())


def prove_build(build: RoutineBuild, directory: Path, limits: ProofLimits | None = None) -> list[RoutineProof]:
    """Prove all candidates of a build, by default with the limits of a sample."""
    program = link_program(directory, build.family, build.built, 0, np.random.default_rng(1))
    limits = limits or proof_limits(build.family, is_sample=True)
    return [prove_candidate(program, build, place, limits, 1) for place in range(len(build.built))]
