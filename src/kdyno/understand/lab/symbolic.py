"""Proofs for every content: a candidate and its definition are carried out with bytes that may have any value.

angr follows both through their machine code, and its SMT solver (z3) looks for a content with which they differ. Sizes
and addresses are those of the bounds (data/lab/families), so what is shown holds for these alone.
"""

from __future__ import annotations

import json
import signal
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Literal

from kdyno.base import process
from kdyno.base.extras import require_extra
from kdyno.base.frozen import Frozen
from kdyno.base.installed import find_program
from kdyno.base.packages import install_advice
from kdyno.kernel.routines.families import DATA, RoutineFamily, SymbolicBounds
from kdyno.understand.lab import sum_program, symbolic_program
from kdyno.understand.lab.build import BuiltCandidate

TOOL, EXTRA = "angr", "symbolic"
DEFINITION_FLAGS = ("-O1", "-ffreestanding", "-fno-builtin", "-mno-sse", "-fno-pie", "-fno-stack-protector", "-w")
"""Keep the definition a loop over bytes, with general registers and without calls."""
KEEP_FUNCTIONS = "-fno-inline"
"""Keeps the function by which a definition folds sums."""
LINK_FLAGS = ("-nostdlib", "-static", "-no-pie", "-Wl,-e,0", "-Wl,--build-id=none", "-Wl,-z,noexecstack")
UNRESOLVED = "-Wl,--unresolved-symbols=ignore-all"
"""The harness, which only `fill` calls, isn't part of the program."""
SECONDS = 900
"""The limit of CPU time for one candidate."""
SAMPLE_SIZES = 9
"""The largest size of a sample."""


Outcome = Literal["equal", "wrong", "not proven"]


class SymbolicProof(Frozen):
    """What was shown of a candidate for every content."""

    outcome: Outcome
    statement: str
    tool: str
    """`angr 9.2.213`."""


def prove_symbolically(
    family: RoutineFamily, built: BuiltCandidate, directory: Path, *, is_sample: bool
) -> SymbolicProof:
    """Prove a candidate of a family with bounds, in a directory. Raises ExtraMissing, ProgramMissing and ToolFailed."""
    require_extra(EXTRA)
    bounds = family.symbolic
    assert bounds, f"{family.name} has bounds for a symbolic proof"
    if is_sample:
        bounds = sample(bounds)
    program = link_with_definition(family, built, directory)
    words = [program, family.name, built.symbol, SECONDS, bounds.model_dump_json()]
    module = sum_program if bounds.folds_sums else symbolic_program
    command = [sys.executable, "-m", module.__name__, *map(str, words)]
    done = process.attempt(command, guarded=True)
    outcome, complaint = read_answer(done.returncode, done.stdout, done.stderr)
    return SymbolicProof(
        outcome=outcome, statement=complaint or bounds.words(family.size), tool=f"{TOOL} {version(TOOL)}"
    )


def sample(bounds: SymbolicBounds) -> SymbolicBounds:
    """Return bounds without the sizes that are too large for a sample; a single size becomes the largest. Pure."""
    least = min(bounds.least, SAMPLE_SIZES)
    return bounds.model_copy(update={"least": least, "most": min(bounds.most, SAMPLE_SIZES), "larger": ()})


def read_answer(status: int, printed: str, complaints: str) -> tuple[Outcome, str]:
    """Return the outcome that the program printed last, and what it says of it. Pure.

    While it runs, the last line says that the time is over, which is true only if it ended by that limit.
    """
    lines = printed.strip().splitlines()
    if status not in (0, -signal.SIGXCPU, -signal.SIGKILL) or not lines:
        complaint = complaints.strip().rpartition("\n")[2]
        return "not proven", complaint or f"the program ended with status {status}"
    answer = json.loads(lines[-1])
    return answer["outcome"], answer["statement"]


def link_with_definition(family: RoutineFamily, built: BuiltCandidate, directory: Path) -> Path:
    """Link the definition and one candidate to a program that nothing can start."""
    gcc = find_program("gcc", "linking a definition", install_advice("gcc"))
    definition, program = directory / "definition.o", directory / f"symbolic-{built.object.stem}"
    inlining = (KEEP_FUNCTIONS,) if family.symbolic and family.symbolic.folds_sums else ()
    process.output([gcc, *DEFINITION_FLAGS, *inlining, "-I", DATA / "harness", "-c", family.harness, "-o", definition])
    process.output([gcc, *LINK_FLAGS, UNRESOLVED, definition, built.object, "-o", program])
    return program
