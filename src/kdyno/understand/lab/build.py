"""Builds the candidates of a family as objects, and links programs of them, each in another order.

C files of the tree are compiled with the flags of its makefiles and the shim headers of `kdyno validate --library`.
Assembler files get headers of their own (data/lab/shims), in which an ALTERNATIVE is one of its sides.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.base.installed import find_program
from kdyno.base.packages import install_advice
from kdyno.base.state import State
from kdyno.kernel.environment import nothing_but, passed_on
from kdyno.kernel.image import ArchName
from kdyno.kernel.routines.families import DATA, RoutineFamily, RoutineSource, flags_that_choose
from kdyno.kernel.routines.patch import edited_files
from kdyno.kernel.toolchain import installed
from kdyno.understand.lab.crc32c_tables import tables_header
from kdyno.understand.validate.library_build import (
    HostOptionSet,
    OptionSet,
    Workshop,
    compilers,
    default_sets,
    first_complaint,
)

NEEDED_FOR = "building routines"
HARNESS_FLAGS = ("-O2", "-fno-pie", "-fno-stack-protector", "-w")
LINK_FLAGS = ("-no-pie", "-Wl,--build-id=none", "-Wl,-z,noexecstack", "-Wl,--gc-sections")
REWRITE_FLAGS = ("-ffreestanding", "-fno-builtin")
NO_IDIOMS = "-fno-tree-loop-distribute-patterns"
"""Keeps gcc from making a call of memset out of a loop that is memset. clang obeys -fno-builtin."""
SECTIONS = "-ffunction-sections"
"""Lets the linker drop the other functions of a file, with what they refer to."""
BASE_SET = "gcc"
"""The option set of the kernel's own choice."""
FEATURES = ("ERMS", "FSRM", "FSRS", "REP_GOOD")
"""The features that ALTERNATIVEs of the routines ask for; their flags in /proc/cpuinfo have small letters."""
MOST_PADDING = 64
"""Up to so many times 16 bytes are before an object of a program: functions are aligned to 16 bytes."""
VECTOR = re.compile(r"%(?:[xyz]mm\d+|mm\d|st\b|k[1-7]\b)")
BELOW_STACK = re.compile(r"[\s,]-0x[0-9a-f]+\(%rsp\)")
"""An access below the stack pointer, where an interrupt of the kernel writes."""


class NothingToTime(InfrastructureError):
    message = "no candidate of {family} can be built from {tree}: {why}"
    hint = "name a kernel source from 6.6 on, for which the candidates are written"


@dataclass(frozen=True)
class BuiltCandidate:
    """A candidate that was compiled with one option set."""

    name: str
    """`words`, or with several sets `words, clang`."""
    candidate: RoutineSource
    options: str
    """The name of its option set."""
    flags: tuple[str, ...]
    symbol: str
    """The only global symbol of the object."""
    object: Path
    problems: tuple[str, ...]
    """The promises of its machine code that it breaks, as far as its listing shows them."""


@dataclass(frozen=True)
class RoutineBuild:
    """The candidates of a family that this host can run."""

    family: RoutineFamily
    built: tuple[BuiltCandidate, ...]
    own: str
    """The name of the kernel's own choice on this processor."""
    notes: tuple[str, ...]
    """The candidates that are left out, with the reasons."""


def routine_sets(names: Sequence[str]) -> dict[str, OptionSet]:
    """Return the option sets by their short names, of these installed compilers. Pure."""
    by_name = {options.name: options for options in default_sets(names)}
    gcc = next(options for name, options in by_name.items() if name.startswith("gcc") and name.endswith("-O2"))
    clang = next(options for name, options in by_name.items() if name.startswith("clang") and name.endswith("-O2"))
    return {
        "gcc": gcc,
        "gcc-O3": OptionSet(f"{gcc.compiler} -O3", gcc.compiler, ("-O3",)),
        "gcc-v3": OptionSet(f"{gcc.compiler} -O2 v3", gcc.compiler, ("-march=x86-64-v3",)),
        "clang": clang,
    }


class RoutineBench:
    """Builds candidates and programs in a scratch directory. Raises TooFewSets, NoMakefileFlags and ProgramMissing."""

    def __init__(self, tree: Path, cpu_flags: frozenset[str], scratch: Path, state: State) -> None:
        self.tree, self.cpu_flags, self.scratch = tree, cpu_flags, scratch
        sets = routine_sets(installed())
        usable, self.set_notes = compilers(sets.values(), tree, scratch, state)
        by_name = {compiler.options.name: compiler for compiler in usable}
        self.compilers: dict[str, HostOptionSet] = {
            name: by_name[options.name] for name, options in sets.items() if options.name in by_name
        }
        self.objcopy = find_program("objcopy", NEEDED_FOR, install_advice("binutils"))
        self.objdump = find_program("objdump", NEEDED_FOR, install_advice("binutils"))
        self.gcc = find_program("gcc", NEEDED_FOR, install_advice("gcc"))
        self.workshop = Workshop(tree, usable, scratch)
        for name in _names(DATA / "shims" / "library.txt"):
            self.workshop.add_header(name, DATA / "shims" / "library.h")
        self.assembler_headers = scratch / "assembler"
        write_assembler_headers(self.assembler_headers)
        (scratch / "rewrites").mkdir()
        (scratch / "rewrites" / "crc32c_tables.h").write_text(tables_header(), encoding="ascii")

    def build(self, family: RoutineFamily, arch: ArchName = "x86_64") -> RoutineBuild:
        """Compile all candidates of a family. Raises NothingToTime without the own choice of a kernel of `arch`."""
        built, notes = list[BuiltCandidate](), list[str]()
        own_choice = family.kernel_choice(flags_that_choose(arch, self.cpu_flags))
        own: str | None = None
        for candidate in family.candidate:
            if lacking := sorted(set(candidate.cpu_flags) - self.cpu_flags):
                notes.append(f"{candidate.name}: left out: this CPU lacks {', '.join(lacking)}")
                continue
            for options in candidate.sets:
                name = candidate.name if len(candidate.sets) == 1 else f"{candidate.name}, {options}"
                if options not in self.compilers:
                    continue
                try:
                    built.append(self._candidate(family, candidate, name, options, len(built)))
                except process.ToolFailed as error:
                    notes.append(f"{name}: left out: it doesn't compile outside of this tree: {_complaint(error)}")
                    continue
                if candidate == own_choice and options == BASE_SET:
                    own = name
        if own is None:
            raise NothingToTime(family=family.name, tree=self.tree, why="; ".join((*notes, *self.set_notes)))
        return RoutineBuild(family, tuple(built), own, tuple(notes))

    def build_patched(self, family: RoutineFamily, candidate: RoutineSource, arch: ArchName) -> RoutineBuild:
        """Compile the kernel's own routine after the edits for a candidate, which its patch makes, too.

        ALTERNATIVEs are the sides that a kernel of `arch` takes on this processor. Raises EditFailed and ToolFailed.
        """
        file = candidate.edits_for(arch)[0].file
        own = next(row for row in family.candidate if row.origin == "kernel" and row.file == file)
        flags = flags_that_choose(arch, self.cpu_flags)
        features = tuple(name for name in FEATURES if name.lower() in flags)
        row = own.model_copy(
            update={"name": candidate.name, "features": features, "rewrite": None, "contract": candidate.contract}
        )
        built = self._candidate(family, row, candidate.name, BASE_SET, 0, self._edited(candidate, arch))
        return RoutineBuild(family, (built,), built.name, ())

    def _candidate(
        self,
        family: RoutineFamily,
        candidate: RoutineSource,
        name: str,
        options: str,
        number: int,
        source: Path | None = None,
    ) -> BuiltCandidate:
        compiler = self.compilers[options]
        directory = self.scratch / family.name
        directory.mkdir(exist_ok=True)
        target, symbol = directory / f"{number}.o", f"lab_candidate_{number}"
        flags = self._compile(candidate, compiler, target, source or self._source(candidate))
        self._run([self.objcopy, f"--redefine-sym={candidate.entry}={symbol}", target])
        self._run([self.objcopy, f"--keep-global-symbol={symbol}", target])
        listing = process.output([self.objdump, "-d", "--no-show-raw-insn", target])
        return BuiltCandidate(name, candidate, options, flags, symbol, target, code_problems(listing))

    def _compile(
        self, candidate: RoutineSource, compiler: HostOptionSet, target: Path, source: Path
    ) -> tuple[str, ...]:
        """Compile a candidate, and return the words that distinguish it. Raises ToolFailed."""
        wrapped = () if candidate.wrapper is None else (f'-DKDYNO_SOURCE="{source}"',)
        source = source if candidate.wrapper is None else DATA / "wrappers" / candidate.wrapper
        if source.suffix == ".S":
            features = tuple(f"-DX86_FEATURE_{feature}=1" for feature in candidate.features)
            words = (*features, *candidate.words)
            headers = ("-D__ASSEMBLY__", "-I", self.assembler_headers)
            self._run([self.gcc, *headers, *words, *wrapped, "-c", source, "-o", target])
            return words
        if candidate.origin == "kdyno":
            own = (*REWRITE_FLAGS, "-I", str(self.scratch / "rewrites"))
            idioms = () if compiler.options.compiler.startswith("clang") else (NO_IDIOMS,)
            self._run(
                [compiler.command, *compiler.flags, *own, *idioms, *candidate.words, "-w", "-c", source, "-o", target]
            )
        else:
            if candidate.file == "lib/crc32.c":
                self.workshop.generate_crc32_table()
            shims = ("-include", str(DATA / "shims" / "library.h"))
            self.workshop.compile_source(source, compiler, (SECTIONS, *candidate.words, *wrapped), target, shims)
        return (*compiler.options.words, *candidate.words)

    def _source(self, candidate: RoutineSource) -> Path:
        """Return the file that a candidate is compiled from: with its rewrite in it, if it has one."""
        if candidate.origin == "kdyno":
            return DATA / "rewrites" / candidate.file
        if candidate.rewrite is None:
            return self.tree / candidate.file
        return self._edited(candidate, "x86_64")

    def _edited(self, candidate: RoutineSource, arch: ArchName) -> Path:
        """Write the kernel's file after the edits for a candidate, and return its path."""
        [(name, text)] = edited_files(self.tree, candidate.edits_for(arch), candidate).items()
        path = self.scratch / "edited" / candidate.name / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogateescape")
        return path

    def link(self, build: RoutineBuild, number: int, rng: np.random.Generator) -> Path:
        """Link a program of all candidates; see `link_program`."""
        return link_program(self.scratch / build.family.name, build.family, build.built, number, rng)

    def _run(self, command: Sequence[str | Path]) -> None:
        _run_tool(command, self.scratch)


def link_program(
    directory: Path,
    family: RoutineFamily,
    built: Sequence[BuiltCandidate],
    number: int,
    rng: np.random.Generator,
) -> Path:
    """Link the harness with candidates in a random order with random distances; `number` names the program.

    Raises ProgramMissing and ToolFailed.
    """
    gcc = find_program("gcc", NEEDED_FOR, install_advice("gcc"))
    objects = directory / "harness.o", directory / "family.o"
    if not objects[0].is_file():
        flags = (*HARNESS_FLAGS, "-I", DATA / "harness")
        _run_tool([gcc, *flags, "-r", *sorted((DATA / "harness").glob("*.c")), "-o", objects[0]], directory)
        _run_tool([gcc, *flags, "-c", family.harness, "-o", objects[1]], directory)
    table = directory / f"table-{number}.s"
    table.write_text(_table(built), encoding="ascii")
    words = list[str | Path]()
    for place in rng.permutation(len(built)):
        padding = directory / f"padding-{place}.s"
        padding.write_text(_padding(16 * int(rng.integers(MOST_PADDING))), encoding="ascii")
        words += [padding, built[place].object]
    program = directory / f"program-{number}"
    _run_tool([gcc, *LINK_FLAGS, *objects, table, *words, "-o", program], directory)
    return program


def write_assembler_headers(directory: Path) -> None:
    """Write headers of the kernel's names for assembler files: each is data/lab/shims/assembler.h."""
    for name in _names(DATA / "shims" / "assembler.txt"):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'#include "{DATA / "shims" / "assembler.h"}"\n', encoding="utf-8")


def _run_tool(command: Sequence[str | Path], scratch: Path) -> None:
    environment: Mapping[str, str] = {**passed_on(scratch), "LC_ALL": "C"}
    process.output([*nothing_but(environment), *command], env=environment)


def _padding(size: int) -> str:
    """Return assembler text of so many bytes that no linker drops."""
    section = f'.section .text.kdyno_padding,"axR",@progbits\n.p2align 4\n.skip {size}, 0x90\n'
    return f'{section}.section .note.GNU-stack,"",@progbits\n'


def code_problems(listing: str) -> tuple[str, ...]:
    """Return what the machine code of a routine must not do in a kernel, but does, by objdump's listing. Pure."""
    problems = []
    if match := VECTOR.search(listing):
        problems.append(f"it uses {match[0].removeprefix('%')}, which belongs to user space")
    if BELOW_STACK.search(listing):
        problems.append("it uses memory below the stack pointer, where interrupts write")
    return tuple(problems)


def _table(built: Sequence[BuiltCandidate]) -> str:
    rows = "".join(f"\t.quad {candidate.symbol}\n" for candidate in built)
    return f'.section .rodata\n.globl candidates\ncandidates:\n{rows}\t.quad 0\n.section .note.GNU-stack,"",@progbits\n'


def _names(path: Path) -> list[str]:
    """Return the lines of a list of headers, but for its heading."""
    return path.read_text(encoding="ascii").splitlines()[1:]


def _complaint(error: process.ToolFailed) -> str:
    return first_complaint(str(error))
