"""Proofs that a candidate does what its family's definition does, up to stated limits.

The harness calls it with memory between pages that nothing may touch, and compares the result, the memory and the
registers with those of the definition (data/lab/harness/families/NAME.c).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kdyno.base import process
from kdyno.base.cpu import read_cpu
from kdyno.base.errors import InfrastructureError
from kdyno.base.extras import require_extra
from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.image import ArchName
from kdyno.kernel.images import find_image
from kdyno.kernel.routines.families import Contract, RoutineFamily, RoutineSource, flags_that_choose
from kdyno.kernel.source import fetch
from kdyno.understand.lab.build import BuiltCandidate, RoutineBench, RoutineBuild, code_problems, link_program
from kdyno.understand.lab.image_code import CodeUnfit, ImageFunctions, routine_source
from kdyno.understand.lab.started_code import started_code
from kdyno.understand.lab.symbolic import EXTRA, Outcome, SymbolicProof, prove_symbolically

WRONG = 4
"""The harness's status for a routine that is wrong."""
SAMPLE_OFFSETS, SAMPLE_CASES = 8, 500
SECONDS = 600
"""The time limit for one candidate; at it, a candidate is not proven."""
SAMPLE_SECONDS = 20
RECOVERED_BYTES = 7
"""The bytes behind the end that a `recovered word` may be in."""
MACHINE_CODE = "no vector registers and nothing below the stack pointer in the listing of its machine code"
CHECKED = (
    "result, written memory and 256 bytes around it, read memory, callee-saved registers, stack pointer and direction "
    "flag are those of the definition"
)
NOT_SHOWN = (
    "not shown: other sizes than these, content that is none of random, all zeros, all ones or bytes of both, reads "
    "that stay in the page, exception tables other than of the faults above, and objtool's rules"
)
NO_BOUNDS = "not proven for every content: this family has no bounds for that"
KERNELS_OWN = "kernel"
IN_FILE, IN_MEMORY = "of vmlinux", "in memory"
AS_IN_FILE: Mapping[ArchName, str] = {
    "um": "which runs as it is in its file",
    "x86_64": "as it is in its file, before a start patches its ALTERNATIVEs (--started); returns are plain ones here",
}


class ProverFailed(InfrastructureError):
    message = "the prover of {name} failed: {why}"
    hint = "run the command again with -v to see the program"


class RoutineProof(Frozen):
    """What was shown of a candidate."""

    name: str
    file: str
    flags: tuple[str, ...]
    contract: Contract
    outcome: Outcome
    statement: str
    """What was shown, and to which bound; or what is wrong; or where the time ended."""
    digest: str
    """The SHA-256 of its object file: another compiler makes the proof void."""
    for_every_content: SymbolicProof | None = None
    """None: not asked for, or without bounds."""

    @property
    def is_equal(self) -> bool:
        """Return whether nothing that was asked for is wrong or not proven."""
        outcomes = {self.outcome, self.for_every_content.outcome if self.for_every_content else "equal"}
        return outcomes == {"equal"}


class FamilyProofs(Frozen):
    """The proofs of one family."""

    family: str
    about: str
    proofs: tuple[RoutineProof, ...]
    notes: tuple[str, ...]


class LabProofs(Frozen):
    """The outcome of `kdyno lab prove`."""

    source: str
    cpu: str
    checked: str
    not_shown: str
    families: tuple[FamilyProofs, ...]

    @property
    def are_all_equal(self) -> bool:
        """Return whether there is a proof of each family, and all candidates are equal to their definitions."""
        return all(family.proofs for family in self.families) and all(
            proof.is_equal for family in self.families for proof in family.proofs
        )


@dataclass(frozen=True)
class ProofDepth:
    """How much is asked of the proofs."""

    is_sample: bool = False
    """Smaller bounds."""
    is_symbolic: bool = False
    """For every content, too."""
    seed: int = 1
    """Of the content."""


@dataclass(frozen=True)
class Start:
    """The start of a kernel whose code is proven as it is afterwards."""

    cpu: str | None
    """QEMU's CPU model; None: kdyno's."""


@dataclass(frozen=True)
class ProofLimits:
    """How far one proof goes, and for how long."""

    most_exhaustive: int
    offsets: int
    cases: int
    seconds: int
    most_faults: int = 0
    """The largest size of a call with a fault at each of its bytes."""


def prove_families(
    spec: str, families: Sequence[RoutineFamily], depth: ProofDepth, state: State, talk: Talk
) -> LabProofs:
    """Build all candidates and prove each. Raise the errors of `fetch` and RoutineBench, ProverFailed, and
    ExtraMissing.
    """
    _require_tools(depth)
    cpu = read_cpu()
    source = fetch(spec, state, talk.say)
    rows = []
    with state.scratch("lab") as scratch:
        bench = RoutineBench(source.tree, cpu.flags, scratch, state)
        for family in families:
            with talk.working(f"proving {family.name}") as advance:
                build = bench.build(family)
                program = bench.link(build, 0, np.random.default_rng(depth.seed))
                limits = proof_limits(family, is_sample=depth.is_sample)
                proofs = []
                for place, built in enumerate(build.built):
                    advance(place, len(build.built), built.name)
                    proof = prove_candidate(program, build, place, limits, depth.seed)
                    proofs.append(_for_every_content(proof, family, built, depth))
            notes = (*build.notes, *_notes(family, depth))
            rows.append(FamilyProofs(family=family.name, about=family.about, proofs=tuple(proofs), notes=notes))
    return LabProofs(
        source=f"{source.identity.origin} ({source.identity.version})",
        cpu=cpu.name,
        checked=CHECKED,
        not_shown=NOT_SHOWN,
        families=tuple(rows),
    )


def prove_image(
    named: str,
    families: Sequence[RoutineFamily],
    depth: ProofDepth,
    state: State,
    talk: Talk,
    start: Start | None = None,
) -> LabProofs:
    """Prove the routines of a built image, by their bytes in its vmlinux, or in memory after a start.

    Raises NoSuchImage, the errors of `load_image` and `started_code`, ProgramMissing, ProverFailed and ExtraMissing.
    """
    _require_tools(depth)
    cpu = read_cpu()
    image = find_image(named, state)
    arch = image.record.arch
    rows = []
    with state.scratch("lab") as scratch:
        started = started_code(image, start.cpu, depth.seed, scratch, state, talk) if start else None
        flags = started.flags if started else flags_that_choose(arch, cpu.flags)
        functions = ImageFunctions(started.vmlinux if started else image.vmlinux)
        for family in families:
            if arch not in family.arches:
                continue
            name = image.record.recipe.routines.get(family.name)
            own = family.kernel_choice(flags)
            source = family.candidate_named(name) if name else own.model_copy(update={"name": KERNELS_OWN})
            source = source.model_copy(update={"file": f"{own.entry} {IN_MEMORY if started else IN_FILE}", "words": ()})
            (scratch / family.name).mkdir()
            try:
                if own.wrapper or own.origin == "kdyno":
                    raise CodeUnfit(f"a kernel has no function that is called like {own.entry}")
                built = image_candidate(functions, own.entry, source, scratch / family.name)
            except CodeUnfit as error:
                rows.append(
                    FamilyProofs(family=family.name, about=family.about, proofs=(), notes=(f"not proven: {error}",))
                )
                continue
            with talk.working(f"proving {family.name}"):
                build = RoutineBuild(family, (built,), built.name, ())
                program = link_program(scratch / family.name, family, build.built, 0, np.random.default_rng(depth.seed))
                proof = prove_candidate(program, build, 0, proof_limits(family, is_sample=depth.is_sample), depth.seed)
                proof = _for_every_content(proof, family, built, depth)
            notes = _notes(family, depth)
            rows.append(FamilyProofs(family=family.name, about=family.about, proofs=(proof,), notes=notes))
    state_of_code = started.sentence if started else AS_IN_FILE[arch]
    return LabProofs(
        source=f"image {image.record.key[:12]} (Linux {image.record.release}, ARCH={arch}), {state_of_code}",
        cpu=cpu.name,
        checked=CHECKED,
        not_shown=NOT_SHOWN,
        families=tuple(rows),
    )


def _require_tools(depth: ProofDepth) -> None:
    """Raise ExtraMissing before anything is built."""
    if depth.is_symbolic:
        require_extra(EXTRA)


def _for_every_content(
    proof: RoutineProof, family: RoutineFamily, built: BuiltCandidate, depth: ProofDepth
) -> RoutineProof:
    """Return a proof with that for every content, if it is asked for and its family has bounds for one."""
    if family.symbolic is None or not depth.is_symbolic:
        return proof
    symbolic = prove_symbolically(family, built, built.object.parent, is_sample=depth.is_sample)
    return proof.model_copy(update={"for_every_content": symbolic})


def _notes(family: RoutineFamily, depth: ProofDepth) -> tuple[str, ...]:
    return (NO_BOUNDS,) if depth.is_symbolic and family.symbolic is None else ()


def image_candidate(functions: ImageFunctions, entry: str, source: RoutineSource, directory: Path) -> BuiltCandidate:
    """Return a routine of an image as an object in a directory. Raises CodeUnfit."""
    assembler, target, symbol = directory / "image.s", directory / "image.o", "lab_candidate_0"
    assembler.write_text(routine_source(functions, entry, symbol), encoding="ascii")
    process.output(["as", assembler, "-o", target])
    problems = code_problems(process.output(["objdump", "-d", "--no-show-raw-insn", target]))
    return BuiltCandidate(source.name, source, "image", (), symbol, target, problems)


def prove_candidate(program: Path, build: RoutineBuild, place: int, limits: ProofLimits, seed: int) -> RoutineProof:
    """Prove one candidate of a linked program. Raises ProverFailed."""
    built, family = build.built[place], build.family
    slack = RECOVERED_BYTES if built.candidate.contract.reads_beyond == "recovered word" else 0
    numbers = [
        place,
        family.proof.least,
        limits.most_exhaustive,
        limits.offsets,
        limits.cases,
        family.proof.most,
        slack,
        limits.seconds,
        limits.most_faults,
        seed,
    ]
    done = process.attempt([program, "prove", *map(str, numbers)], guarded=True)
    if done.returncode not in (0, WRONG):
        raise ProverFailed(name=built.name, why=done.stderr.strip() or f"status {done.returncode}")
    outcome, statement = read_outcome(done.stdout, family, limits, slack)
    if built.problems and outcome == "equal":
        outcome, statement = "wrong", "; ".join(built.problems)
    return RoutineProof(
        name=built.name,
        file=built.candidate.file,
        flags=built.flags,
        contract=built.candidate.contract,
        outcome=outcome,
        statement=statement,
        digest=_object_digest(built),
    )


def proof_limits(family: RoutineFamily, *, is_sample: bool) -> ProofLimits:
    """Return the limits of a proof, or of a sample of it. Pure."""
    proof = family.proof
    if is_sample:
        return ProofLimits(
            proof.sample,
            min(proof.offsets, SAMPLE_OFFSETS),
            min(proof.cases, SAMPLE_CASES),
            SAMPLE_SECONDS,
            min(proof.faults, proof.sample),
        )
    return ProofLimits(proof.exhaustive, proof.offsets, proof.cases, SECONDS, proof.faults)


def read_outcome(output: str, family: RoutineFamily, limits: ProofLimits, slack: int) -> tuple[Outcome, str]:
    """Return the outcome and its statement from what the harness printed. Pure."""
    line = output.strip().rpartition("\n")[2]
    if match := re.fullmatch(r"equal: (\d+) (\d+) (\d+)", line):
        least, most, offsets = family.proof.least, limits.most_exhaustive, limits.offsets
        sizes = f"size {most:,}" if least == most else f"all sizes from {least:,} to {most:,}"
        spread = f" at {offsets} offsets of each address," if offsets > 1 else ","
        beyond = f", {slack} bytes before the page behind" if slack else ""
        faults = (
            f"; and {int(match[3]):,} faults, at each byte of either memory up to size {limits.most_faults}, that its "
            "exception table recovers"
        )
        return "equal", (
            f"{sizes}{spread} beside a page without memory on either side{beyond}: {int(match[1]):,} cases; "
            f"and {int(match[2]):,} random cases up to {family.proof.most:,} {family.size}"
            f"{faults if limits.most_faults else ''}"
        )
    if line.startswith("wrong: "):
        return "wrong", line.removeprefix("wrong: ")
    return "not proven", line or "it ended without a word"


def _object_digest(built: BuiltCandidate) -> str:
    return hashlib.sha256(built.object.read_bytes()).hexdigest()


def proof_lines(report: LabProofs) -> list[str]:
    """Return the report as lines of text. Pure."""
    rows = []
    for family in report.families:
        rows.append(f"{family.family}: {family.about}")
        for proof in family.proofs:
            words = " ".join(proof.flags)
            rows.append(f"  {proof.name}: {proof.outcome}: {proof.statement}")
            if symbolic := proof.for_every_content:
                rows.append(f"    for every content: {symbolic.outcome}: {symbolic.statement}; {symbolic.tool}")
            rows.append(f"    {proof.file}{f' {words}' if words else ''}; object {proof.digest[:12]}")
            rows.append(
                f"    contract: overlap {proof.contract.overlap}; reads {proof.contract.reads_beyond} beyond its "
                f"arguments; faults: {proof.contract.faults}; {proof.contract.flags}; vector registers: "
                f"{proof.contract.vectors}"
            )
        rows += [f"  {note}" for note in family.notes]
    return [
        *rows,
        "",
        f"equal: {report.checked}; {MACHINE_CODE}",
        report.not_shown,
        f"routines of {report.source}, run on {report.cpu}",
    ]
