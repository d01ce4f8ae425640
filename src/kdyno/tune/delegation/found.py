"""The outcome of a search: the choice of each file, the savings in the trials, and the failed attempts."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kdyno.base.frozen import Frozen
from kdyno.base.text import format_count
from kdyno.tune.delegation.group_testing import GroupTesting
from kdyno.tune.delegation.kernels import AssignmentKernels
from kdyno.tune.delegation.trial import CostTrial, gain


class TunedFile(Frozen):
    """A file that was given to a choice. Costs are parts of the reference's cost (trial.py)."""

    file: str
    choice: str
    cost_reference: float
    cost_choice: float
    """The cost in the chosen kernel, with the choices of all other files."""


class Found(Frozen):
    """The outcome of a search."""

    files: tuple[TunedFile, ...]
    """The files with a choice, the largest saving first."""
    hot: int
    """The number of files that were tried."""
    hot_share: float
    """Their share of the reference's cost."""
    gain: float
    """The gain of the whole kernel in its trials, as a fraction. It was chosen by these trials, so it is too large on
    average."""
    noise: float | None
    """The largest gain of a whole kernel that may be chance in these trials; None if only the reference ran."""
    kernels: int
    """The number of kernels that were measured."""
    dropped: Mapping[str, tuple[str, ...]]
    """By file, the choices that saved cost of the file and not of the kernel."""
    failures: tuple[str, ...]
    """The kernels that couldn't be built or didn't run, with their reasons."""

    @property
    def assignment(self) -> dict[str, str]:
        return {tuned.file: tuned.choice for tuned in self.files}


def outcome_of(search: GroupTesting, kernels: AssignmentKernels) -> Found:
    """Return the outcome of a finished search whose reference ran."""
    reference, best = search.reference, search.best
    assert reference is not None and best is not None
    files = [_file(file, choice, reference, best) for file, choice in search.chosen.items()]
    return Found(
        files=tuple(sorted(files, key=lambda tuned: (tuned.cost_choice - tuned.cost_reference, tuned.file))),
        hot=len(search.hot),
        hot_share=sum(float(reference.cost_of(file).mean()) for file in search.hot),
        gain=gain(reference.total, best.total),
        noise=search.noise if math.isfinite(search.noise) else None,
        kernels=search.kernels,
        dropped={file: tuple(choices) for file, choices in sorted(search.dropped.items())},
        failures=tuple(f"{_describe(assignment)}: {reason}" for assignment, reason in kernels.failures),
    )


def _file(file: str, choice: str, reference: CostTrial, best: CostTrial) -> TunedFile:
    return TunedFile(
        file=file,
        choice=choice,
        cost_reference=float(reference.cost_of(file).mean()),
        cost_choice=float(best.cost_of(file).mean()),
    )


def _describe(assignment: Mapping[str, str]) -> str:
    return f"{format_count(len(assignment), 'file')} at {', '.join(sorted(set(assignment.values())))}"
