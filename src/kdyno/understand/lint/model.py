"""The output of `kdyno kernel lint`. The lints are in crates/lint."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from kdyno.base.frozen import Frozen

Level = Literal["error", "warning", "note"]

LINTS = {
    "lock-on-stack-copy": "an atomic instruction on a copy of its operand on the stack",
    "always-inline-emitted": "a function that the source declares always_inline, emitted as a function",
    "simd-in-kernel": "vector or x87 registers outside of kernel_fpu_begin/end",
    "alternatives": "an alternative that the kernel can't put in place at boot",
    "unknown-call": "a call of a function that the kernel doesn't have",
    "costly-instruction": "instructions that the CPU family is bad at",
}
"""The description of each lint."""


class LintFinding(Frozen):
    """One place in a file with a mistake, or a possible one."""

    lint: str
    level: Level
    file: str
    """The object or vmlinux that was named, or found in the named directory."""
    source: str | None
    """The source file, relative to the root of the kernel's source if that is known."""
    line: int | None
    function: str
    address: str
    """The hexadecimal address: in the section of an object, or in memory for a linked kernel."""
    section: str
    instruction: str
    """The instruction; empty if the finding isn't about a single one."""
    message: str
    executions: float | None = None
    """With a load: how often the function executes such instructions, per million instructions of the kernel."""
    cycles: float | None = None
    """With a load and measured costs: the cycles saved at most by a better sequence, per million instructions."""


class BegunRecord(Frozen):
    """The start of a file's check."""

    begun: str
    bytes: int


class FileRefused(Frozen):
    """A file that couldn't be checked."""

    refused: str = Field(serialization_alias="file", validation_alias="refused")
    why: str


class WithoutFunctions(Frozen):
    """A linked kernel without the addresses of its functions."""

    without_functions: str = Field(serialization_alias="file", validation_alias="without_functions")
    lints: tuple[str, ...]
    """The lints that can't check it."""


class LibraryLeftOut(Frozen):
    """A kernel that is a program (ARCH=um), with a C library in it."""

    with_library: str = Field(serialization_alias="file", validation_alias="with_library")
    functions: int
    """The number of functions that weren't checked: they are the library's, or start programs."""


class LintReport(Frozen):
    files: int
    """The number of files that were checked."""
    findings: tuple[LintFinding, ...]
    not_read: tuple[FileRefused, ...]
    not_run: dict[str, str]
    """The option that is missing, by lint that was not run."""
    without_functions: tuple[WithoutFunctions, ...] = ()
    left_out: tuple[LibraryLeftOut, ...] = ()
    costs_of: str | None = None
    """The processor that the costs of instructions were measured on."""

    @property
    def is_bad(self) -> bool:
        """Return whether the report has an error or a warning."""
        return any(finding.level != "note" for finding in self.findings)

    @property
    def cycles(self) -> float | None:
        """Return the cycles per million instructions that better sequences would save at most; None if not known."""
        cycles = [finding.cycles for finding in self.findings if finding.cycles is not None]
        return sum(cycles) if cycles else None
