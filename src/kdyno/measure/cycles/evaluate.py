"""The accuracy of a model: modelled against native cycles of programs that it was not fitted to. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Role = Literal["fit", "held-out"]


@dataclass(frozen=True)
class EvaluatedProgram:
    """A program with its modelled and native cycles."""

    program: str
    kind: str
    role: Role
    native: float
    """Cycles."""
    modelled: float
    instructions: float

    @property
    def error(self) -> float:
        """Modelled / native - 1."""
        return self.modelled / self.native - 1

    @property
    def error_factor(self) -> float:
        """The factor by which it is too high or too low: 1 is exact, 2 is twice or half."""
        return max(self.modelled / self.native, self.native / max(self.modelled, 1e-9))


@dataclass(frozen=True)
class Quality:
    """How well a model predicts some programs."""

    programs: int
    spearman: float
    """Rank correlation of modelled and native cycles."""
    spearman_per_instruction: float
    """Rank correlation of cycles per instruction: here a long program gives the model no advantage."""
    spearman_of_instructions: float
    """Rank correlation of the number of instructions and native cycles: the accuracy without a model."""
    median_error: float
    """Median of |modelled / native - 1|."""
    most_error: float
    """The limit that 90 % of the programs don't exceed."""


def quality(programs: Sequence[EvaluatedProgram]) -> Quality:
    """Return how well these programs were predicted; there must be at least two."""
    from scipy.stats import spearmanr

    native = np.array([program.native for program in programs])
    modelled = np.array([program.modelled for program in programs])
    instructions = np.maximum([program.instructions for program in programs], 1.0)
    errors = np.abs([program.error for program in programs])
    return Quality(
        programs=len(programs),
        spearman=float(spearmanr(modelled, native).statistic),
        spearman_per_instruction=float(spearmanr(modelled / instructions, native / instructions).statistic),
        spearman_of_instructions=float(spearmanr(instructions, native).statistic),
        median_error=float(np.median(errors)),
        most_error=float(np.quantile(errors, 0.9)),
    )


def worst(programs: Sequence[EvaluatedProgram], count: int = 5) -> list[EvaluatedProgram]:
    """Return the programs that the model is furthest off."""
    return sorted(programs, key=lambda program: -program.error_factor)[:count]


def errors_by_kind(programs: Sequence[EvaluatedProgram]) -> dict[str, float]:
    """Return the median of |error| for each kind, the worst kind first."""
    errors: dict[str, list[float]] = {}
    for program in programs:
        errors.setdefault(program.kind, []).append(abs(program.error))
    medians = {kind: float(np.median(errors[kind])) for kind in sorted(errors)}
    return dict(sorted(medians.items(), key=lambda item: -item[1]))
