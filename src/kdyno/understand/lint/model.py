"""What `kdyno kernel lint` says. The lints themselves are crates/lint."""

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
"""Each lint, and what it finds."""


class LintFinding(Frozen):
    """One place in one file that is wrong, or might be."""

    lint: str
    level: Level
    file: str
    """The object or vmlinux that was given, or was found in the directory that was given."""
    source: str | None
    """Relative to the root of the kernel's source, where that is known."""
    line: int | None
    function: str
    address: str
    """Hexadecimal: in the section of an object; in memory of a linked kernel."""
    section: str
    instruction: str
    """Empty where the finding isn't about one instruction."""
    message: str


class BegunRecord(Frozen):
    """A file that is looked through now."""

    begun: str
    bytes: int


class FileRefused(Frozen):
    """A file that couldn't be looked through."""

    refused: str = Field(serialization_alias="file", validation_alias="refused")
    why: str


class WithoutFunctions(Frozen):
    """A linked kernel of which nobody says where its functions begin."""

    without_functions: str = Field(serialization_alias="file", validation_alias="without_functions")
    lints: tuple[str, ...]
    """Those that can't look through it."""


class LintReport(Frozen):
    files: int
    """How many were looked through."""
    findings: tuple[LintFinding, ...]
    not_read: tuple[FileRefused, ...]
    not_run: dict[str, str]
    """Lints that had nothing to go by, and what they need."""
    without_functions: tuple[WithoutFunctions, ...] = ()

    @property
    def is_bad(self) -> bool:
        """Whether there is an error or a warning."""
        return any(finding.level != "note" for finding in self.findings)
