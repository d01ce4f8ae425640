"""`kdyno lab instructions`: what instructions that kernels use cost on this processor, and which sequence is better."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from kdyno.base import toml
from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.frozen import Frozen
from kdyno.base.talk import Talk
from kdyno.boot.host.quiet import pin_to_cpu
from kdyno.kernel.routines.families import DATA
from kdyno.measure.cycles.instruction_costs import InstructionCost, InstructionCosts
from kdyno.measure.cycles.micro_programs import TimedLoop
from kdyno.understand.lab.time_lab import cpu_text
from kdyno.understand.validate.micro import MicroBench

PASSES = 5
DEARER = 1.5
"""The factor from which on an instruction is called bad beside a better sequence."""


class InstructionLoop(TimedLoop):
    """A loop of one instruction, or of one short sequence."""

    group: Literal["latency", "throughput"]
    what: str
    """The instruction in words."""
    operations: Annotated[int, Field(ge=1)]
    """The number of operations in a body."""
    better: str | None = None
    """The name of a loop with the same purpose."""
    because: str = ""


class _InstructionFile(Frozen):
    loop: tuple[InstructionLoop, ...]

    @model_validator(mode="after")
    def _names_its_loops(self) -> Self:
        names = [row.name for row in self.loop]
        missing = {row.better for row in self.loop if row.better} - set(names)
        if missing or len(set(names)) != len(names):
            raise ValueError(f"loops are named twice, or missing: {sorted(missing)}")
        return self


@cache
def instruction_loops() -> tuple[InstructionLoop, ...]:
    """Return the loops of data/lab/instructions.toml, in its order."""
    text = (DATA / "instructions.toml").read_text(encoding="utf-8")
    return _InstructionFile.model_validate(toml.parse(text)).loop


def time_instructions(talk: Talk, *, passes: int = PASSES, cpu: Cpu | None = None) -> InstructionCosts:
    """Assemble all loops, and time them on this processor. Raises ProgramMissing without gcc."""
    loops = instruction_loops()
    with tempfile.TemporaryDirectory(prefix="kdyno-") as directory, pin_to_cpu():
        bench = MicroBench(loops, Path(directory))
        with talk.working("timing instructions") as advance:
            iterations = bench.time(passes, advance)
    cycles = {loop.name: iterations[loop.name] / loop.operations for loop in loops}
    return costs_of(cycles, cpu_text(cpu or read_cpu()))


def costs_of(cycles: dict[str, float], cpu: str) -> InstructionCosts:
    """Return the costs from cycles of an operation by loop. Pure."""
    return InstructionCosts(
        cpu=cpu,
        instructions=tuple(
            InstructionCost(
                name=loop.name,
                what=loop.what,
                kind=loop.group,
                cycles=cycles[loop.name],
                better=loop.better,
                better_cycles=cycles[loop.better] if loop.better else None,
                because=loop.because,
                is_bad=bool(loop.better) and cycles[loop.name] > DEARER * cycles[loop.better or loop.name],
            )
            for loop in instruction_loops()
        ),
    )


def cost_lines(report: InstructionCosts) -> list[str]:
    """Return the costs as lines of text. Pure."""
    width = max(len(cost.what) for cost in report.instructions)
    rows = [f"{'instruction':<{width}} {'kind':<10} {'cycles':>8}  advice"]
    for cost in report.instructions:
        advice = ""
        if cost.is_bad:
            advice = f"{cost.better}: {cost.better_cycles:.1f}; {cost.because}"
        rows.append(f"{cost.what:<{width}} {cost.kind:<10} {cost.cycles:>8.1f}  {advice}".rstrip())
    return [*rows, "", f"lane wall: cycles of the core per operation, on {report.cpu}"]
