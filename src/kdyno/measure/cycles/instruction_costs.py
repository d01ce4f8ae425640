"""What instructions cost on a processor: the file of `kdyno lab instructions -o`, which `kdyno kernel lint` reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError, model_validator

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import problems

MOST_BYTES = 1_000_000
PROBLEMS_SHOWN = 5

Cycles = Annotated[float, Field(gt=0, allow_inf_nan=False)]
"""Cycles of the core per operation."""


class CostsUnreadable(UserError):
    message = "{path} is not a file of the costs of instructions: {why}"
    hint = "`kdyno lab instructions -o FILE` writes one, on the processor that it is of"


class InstructionCost(Frozen):
    """The cost of one loop."""

    name: str
    what: str
    kind: Literal["latency", "throughput"]
    cycles: float
    """Cycles of the core per operation."""
    better: str | None
    better_cycles: float | None
    because: str
    is_bad: bool
    """True if the better loop costs much less on this processor."""


class InstructionCosts(Frozen):
    """The outcome of `kdyno lab instructions`."""

    cpu: str
    instructions: tuple[InstructionCost, ...]


class _CostRow(Frozen):
    what: str
    kind: Literal["latency", "throughput"]
    cycles: Cycles
    better: str | None = None
    better_cycles: Cycles | None = None
    because: str = ""

    @model_validator(mode="after")
    def _knows_what_is_better(self) -> Self:
        if (self.better is None) != (self.better_cycles is None):
            raise ValueError("better and better_cycles belong together")
        return self


class _CostsFile(Frozen):
    cpu: Annotated[str, Field(min_length=1)]
    instruction: dict[str, _CostRow]


def costs_toml(costs: InstructionCosts) -> str:
    """Return the costs as TOML, with the processor that they are of. Pure."""
    lines = [f"cpu = {json.dumps(costs.cpu)}"]
    for cost in costs.instructions:
        lines += ["", f"[instruction.{cost.name}]", f"what = {json.dumps(cost.what)}", f'kind = "{cost.kind}"']
        lines.append(f"cycles = {cost.cycles:.2f}")
        if cost.better and cost.is_bad:
            lines += [f'better = "{cost.better}"', f"better_cycles = {cost.better_cycles:.2f}"]
            lines.append(f"because = {json.dumps(cost.because)}")
    return "\n".join(lines) + "\n"


def read_costs(path: Path) -> InstructionCosts:
    """Read a file of costs. Raises CostsUnreadable."""
    try:
        written = toml.parse(read_whole(path, MOST_BYTES).decode())
    except OSError as error:
        raise CostsUnreadable(path=path, why=error.strerror) from error
    except ValueError as error:
        raise CostsUnreadable(path=path, why=f"not TOML: {error}") from error
    try:
        file = _CostsFile.model_validate(written)
    except ValidationError as error:
        why = "; ".join(problems(error, _CostsFile, written)[:PROBLEMS_SHOWN])
        raise CostsUnreadable(path=path, why=why) from None
    rows = (
        InstructionCost(name=name, is_bad=row.better is not None, **row.model_dump())
        for name, row in file.instruction.items()
    )
    return InstructionCosts(cpu=file.cpu, instructions=tuple(rows))
