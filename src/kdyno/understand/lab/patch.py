"""`kdyno lab patch`: for each family the patch that puts its fastest candidate into a kernel, if it has one.

The patch says what it changes, how that was measured and what was proven of the code that a compiler makes of it.
"""

from __future__ import annotations

import hashlib
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pydantic import ValidationError

from kdyno.base.cpu import read_cpu
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole
from kdyno.base.mistakes import first_fault
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.text import format_list, number
from kdyno.kernel.image import ArchName
from kdyno.kernel.routines.families import RoutineFamily, RoutineSource, SourceEdit, find_families
from kdyno.kernel.routines.patch import patchable, require_patch, routines_patch
from kdyno.kernel.source import KernelSource
from kdyno.understand.lab.build import BASE_SET, RoutineBench
from kdyno.understand.lab.code import read_function
from kdyno.understand.lab.lines import verdict_text
from kdyno.understand.lab.prove import MACHINE_CODE, RoutineProof, proof_limits, prove_candidate
from kdyno.understand.lab.time_lab import cpu_text
from kdyno.understand.lab.verdicts import LabTimes, RoutineTimesReport

MOST_TIMES_BYTES = 256 << 20
WIDTH = 75
"""Columns of a heading."""
SEED = 1
"""The seed of the content that a proof runs on."""


class TimesUnreadable(UserError):
    message = "{path} does not hold times of `kdyno lab time --json`: {why}"
    hint = "write them by `kdyno lab time {family} --json > {path}`"


class FamilyNotTimed(UserError):
    message = "{path} has no times of {family} for {arch}"
    hint = "write them by `kdyno lab time {family} --arch {arch} --json`"


class NotProven(InfrastructureError):
    message = "{name} of {family} is {outcome}: {statement}"
    hint = "no patch was written: choose another candidate by --candidate"


@dataclass(frozen=True)
class PatchPlace:
    """Where patches are made, and how far they are proven."""

    source: KernelSource
    arch: ArchName
    state: State
    talk: Talk
    is_sample: bool
    """Whether the proofs have the small bounds of a sample."""


@dataclass(frozen=True)
class RoutinePatch:
    """What `kdyno lab patch` gives for a family."""

    family: str
    summary: str
    """One line: the candidate and its verdict, or why there is no patch."""
    text: str
    """The patch, with a heading on its origin; empty if the kernel's own choice is the best."""
    candidate: str = ""
    """The candidate of the patch; empty if there is none."""
    own: str = ""
    """The candidate that a kernel takes without it; empty if that was not found out."""


def kernel_comparison(patches: Sequence[RoutinePatch]) -> str:
    """Return the command that measures what patches are worth in kernels; empty if no kernel for um takes one.

    Kernels for um patch no ALTERNATIVE, so both get the candidates that others take on this processor.
    """
    own, chosen = list[str](), list[str]()
    for patch in patches:
        in_um = patchable(find_families([patch.family])[0], "um")
        if patch.candidate in in_um:
            chosen.append(f"routines.{patch.family}={patch.candidate}")
            own += [f"routines.{patch.family}={patch.own}"] if patch.own in in_um else []
    return f"kdyno ab --machine uml {','.join(own) or 'plain'} {','.join(chosen)} --layouts 12" if chosen else ""


def read_times(path: Path, family: str) -> LabTimes:
    """Return the report of `kdyno lab time --json` in a file. Raises TimesUnreadable."""
    try:
        return LabTimes.model_validate_json(read_whole(path, MOST_TIMES_BYTES))
    except OSError as error:
        raise TimesUnreadable(path=path, why=error.strerror, family=family) from error
    except ValidationError as error:
        raise TimesUnreadable(path=path, why=first_fault(error), family=family) from None


def times_of(times: LabTimes, family: str, arch: ArchName, path: Path) -> RoutineTimesReport:
    """Return the times of one family. Raises FamilyNotTimed."""
    row = next((row for row in times.families if row.family == family and times.arch == arch), None)
    if row is None:
        raise FamilyNotTimed(path=path, family=family, arch=arch)
    return row


def patch_by_times(
    family: RoutineFamily,
    times: LabTimes,
    row: RoutineTimesReport,
    repeated: RoutineTimesReport | None,
    place: PatchPlace,
) -> RoutinePatch:
    """Return the patch for the candidate that is the fastest over all rows, if it is faster than the kernel's own, also
    where it was timed again, and slower in no row: which rows count more, only a load says.

    Raises the errors of `routines_patch` and RoutineBench, NotProven and ProverFailed.
    """
    winner = row.patch.winner
    name = winner.name.partition(",")[0]
    summary = f"{family.name}: {name} {verdict_text(winner)}"
    if repeated:
        summary += f"; timed again {verdict_text(repeated.patch.winner)}"
    if why := _why_not(row, repeated):
        return RoutinePatch(family.name, f"{family.name if winner.is_own else summary}: no patch: {why}", "")
    text = _with_heading(family, family.candidate_named(name), list(times_paragraphs(times, row, repeated)), place)
    return RoutinePatch(family.name, summary, text, name, row.own.partition(",")[0])


def _why_not(row: RoutineTimesReport, repeated: RoutineTimesReport | None) -> str:
    """Return why times give no patch; empty if they give one."""
    if not row.patch.winner.is_faster:
        return f"{row.own}, which a kernel takes, is the best here"
    if repeated and not repeated.patch.winner.is_faster:
        return "it has to be faster both times"
    if slower := row.patch.slower_rows:
        return f"it is slower at {format_list(slower)}; weigh sizes by a load (--sizes), or name it (--candidate)"
    return ""


def patch_by_name(family: RoutineFamily, name: str, place: PatchPlace) -> RoutinePatch:
    """Return the patch for a candidate that the user chose. Raises what `patch_by_times` does, and UnknownCandidate."""
    candidate = family.candidate_named(name)
    heading = ["Chosen by name: it was not compared with the kernel's own here."]
    text = _with_heading(family, candidate, heading, place)
    return RoutinePatch(family.name, f"{family.name}: {candidate.name}, chosen by name", text, candidate.name)


def _with_heading(family: RoutineFamily, candidate: RoutineSource, measured: list[str], place: PatchPlace) -> str:
    source, arch = place.source, place.arch
    edits = require_patch(family, candidate, arch)
    diff = routines_patch({family.name: candidate.name}, source, arch)
    proven = _prove_patched(family, candidate, place)
    origin = f"{source.identity.origin} ({source.identity.version})"
    paragraphs = [
        f"{family.name}: {candidate.name}",
        f"Made by `kdyno lab patch` for {origin}, kernels for {arch}.",
        "What changes:",
        *map(_change, edits),
        *measured,
        f"Proven of the code that {proven.compiler} makes of the patched {edits[0].file}, {_sides(arch)}, on "
        f"{proven.cpu}: {proven.proof.outcome}: {proven.proof.statement}; {MACHINE_CODE}.",
        f"Code of {edits[0].function}, with plain returns: {len(proven.code):,} bytes, SHA-256 "
        f"{hashlib.sha256(proven.code).hexdigest()}",
    ]
    return f"{heading_text(paragraphs)}---\n{diff}"


def heading_text(paragraphs: Sequence[str]) -> str:
    """Return paragraphs in lines as `git log` has them, with blank lines between; those with `- ` are lists. Pure."""
    lines = list[str]()
    for place, paragraph in enumerate(paragraphs):
        is_item = paragraph.startswith("- ")
        if place and not (is_item and paragraphs[place - 1].startswith("- ")):
            lines.append("")
        lines += textwrap.wrap(
            paragraph, WIDTH, subsequent_indent="  " if is_item else "", break_long_words=False, break_on_hyphens=False
        )
    return "".join(f"{text}\n" for text in lines)


def _change(edit: SourceEdit) -> str:
    match edit.way:
        case "rewrite":
            return f"- {edit.file}: {edit.function} is another function"
        case "remove":
            return f"- {edit.file}: {edit.function}, which nothing calls any more, is removed"
        case "text" if edit.new:
            return (
                f"- {edit.file}: {edit.function} has the condition {edit.new} in place of {edit.old}: no other code "
                "than the kernel has"
            )
    return f"- {edit.file}: {edit.function} doesn't jump to another function: a kernel for um patches no ALTERNATIVE"


def _sides(arch: ArchName) -> str:
    return "with the sides of ALTERNATIVEs that " + (
        "a kernel takes on this processor" if arch == "x86_64" else "are compiled in: a kernel for um patches none"
    )


def times_paragraphs(times: LabTimes, row: RoutineTimesReport, repeated: RoutineTimesReport | None) -> Iterator[str]:
    """Yield what a heading says of times: the verdict, its rows, and the second verdict. Pure."""
    winner = row.patch.winner
    yield (
        f"Cycles against {row.own}, which a kernel takes on {times.cpu}: {verdict_text(winner)}, geometric mean of "
        f"{len(row.patch.rows)} rows, lane wall, {times.blocks} blocks."
    )
    yield from (
        f"- {compared.name} {row.size}, {compared.mode}: {number(compared.winner.own_cycles)} cycles, "
        f"{verdict_text(compared.winner)}"
        for compared in row.patch.rows
    )
    if repeated:
        yield f"Timed again, with other sizes and link orders: {verdict_text(repeated.patch.winner)}."


@dataclass(frozen=True)
class _PatchedProof:
    """The proof of a patched file, with the compiler, the processor and the code of the function."""

    proof: RoutineProof
    compiler: str
    cpu: str
    code: bytes


def _prove_patched(family: RoutineFamily, candidate: RoutineSource, place: PatchPlace) -> _PatchedProof:
    """Compile and prove the patched file. Raises NotProven."""
    with place.state.scratch("lab") as scratch, place.talk.working(f"proving {family.name}"):
        cpu = read_cpu()
        bench = RoutineBench(place.source.tree, cpu.flags, scratch, place.state)
        build = bench.build_patched(family, candidate, place.arch)
        program = bench.link(build, 0, np.random.default_rng(SEED))
        proof = prove_candidate(program, build, 0, proof_limits(family, is_sample=place.is_sample), SEED)
        if proof.outcome != "equal":
            raise NotProven(name=candidate.name, family=family.name, outcome=proof.outcome, statement=proof.statement)
        [built] = build.built
        code = read_function(built.object, built.symbol).content
        return _PatchedProof(proof, bench.compilers[BASE_SET].options.name, cpu_text(cpu), code)
