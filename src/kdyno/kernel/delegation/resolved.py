"""A resolved plan, which `ccd` reads. Nothing in it depends on the place of a state directory, except paths of
programs.
"""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen, digest
from kdyno.kernel.delegation import globs

FORMAT = 3
"""The version of the format and of what ccd takes for kernel code; ccd refuses any other. Part of an image's key."""

INPUT = "delegation"
"""The name of the resolved plan among the inputs of a build."""


class Compiler(Frozen):
    """A compiler that takes part."""

    family: Literal["gcc", "clang"]
    """The family whose options it has."""
    command: tuple[str, ...]


class ResolvedChoice(Frozen):
    """The choice for a file."""

    compiler: str
    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()
    by_assembler: bool = False
    passes: tuple[str, ...] = ()


class ResolvedRule(ResolvedChoice):
    """A choice, and the files that it applies to."""

    name: str
    """`rule 1`, by its place in the plan; for records and messages."""
    files: tuple[str, ...]
    """Globs on the source path."""


class ProfileUse(Frozen):
    """A profile, and how a compiler is told of the part that covers a source; ccd cuts it (docs/feedback.md)."""

    name: str
    """The name of its input."""
    file: str
    """Its path from the object directory."""
    family: Literal["gcc", "clang"] = "clang"
    """The family of the compilers that read it."""
    cut: Literal["sources", "objects", "whole"] = "sources"
    """Text with comments that name sources, .gcda files by object in hexadecimal, or not cut at all."""
    option: str
    """The text before the path of a part: `-fprofile-sample-use=`."""
    add: tuple[str, ...] = ()
    """Further arguments for sources that it covers."""


class Resolved(Frozen):
    """The plan as ccd reads it, from a JSON file."""

    format: int = FORMAT
    reference: str
    """The compiler of everything that no rule chooses, and of calls that don't compile: a key of `compilers`."""
    compilers: dict[str, Compiler]
    assembler: tuple[str, ...]
    held: bool
    """Whether several compilers take part: a probe passes only if all of them pass."""
    fallback: bool
    assem: bool
    lint: bool
    programs: dict[str, tuple[str, ...]]
    """The passes that a user adds: commands."""
    rules: tuple[ResolvedRule, ...]
    profiles: tuple[ProfileUse, ...] = ()
    """Profiles for every source of the running kernel that a compiler of their family compiles."""

    def rule_of(self, source: str) -> ResolvedRule | None:
        """Return the rule that decides for a source file, relative to its tree."""
        return next((rule for rule in self.rules if any(globs.matches(glob, source) for glob in rule.files)), None)

    def choice_of(self, source: str) -> ResolvedChoice:
        """Return the choice for a source file of the running kernel."""
        rule = self.rule_of(source)
        if rule is None:
            return ResolvedChoice(compiler=self.reference)
        return ResolvedChoice(**rule.model_dump(exclude={"name", "files"}))

    def content_digest(self, programs: dict[str, str]) -> str:
        """Return the SHA-256 of everything that decides an object: for programs their content (SHA-256 by name), not
        their path.
        """
        without = {"profiles"} if not self.profiles else set()
        return digest({**self.model_dump(mode="json", exclude=without), "programs": programs})


class Delegation(Frozen):
    """A resolved plan, and how its build is checked."""

    plan: Resolved
    strict: bool
    """Whether the build fails unless every compiled object is on record."""
