"""What a search found: which file goes to which choice, what that saved in its trials, and what was tried in vain."""

from __future__ import annotations

import math
from collections.abc import Mapping

from kdyno.base.frozen import Frozen
from kdyno.base.text import format_count
from kdyno.tune.delegation.group_testing import GroupTesting
from kdyno.tune.delegation.kernels import AssignmentKernels
from kdyno.tune.delegation.trial import CostTrial, gain


class TunedFile(Frozen):
    """A file that was given to a choice. Costs are parts of all modelled cycles of the reference."""

    file: str
    choice: str
    cost_reference: float
    cost_choice: float
    """In the kernel that was found, with all other files as they are there."""


class Found(Frozen):
    """The outcome of a search."""

    files: tuple[TunedFile, ...]
    """The largest saving first."""
    hot: int
    """Files that were tried."""
    hot_share: float
    """What they took together of all modelled cycles of the reference."""
    gain: float
    """Of the whole kernel in its trials, as a fraction; chosen by these trials, and so too good on average."""
    noise: float | None
    """A gain of a whole kernel that these trials can't tell from an accident; None if only the reference ran."""
    kernels: int
    """How many were measured."""
    dropped: Mapping[str, tuple[str, ...]]
    """By file, the choices that saved of the file's own cycles, and not of the kernel's."""
    failures: tuple[str, ...]
    """Kernels that couldn't be built or didn't run, and why."""

    @property
    def assignment(self) -> dict[str, str]:
        return {tuned.file: tuned.choice for tuned in self.files}


def outcome_of(search: GroupTesting, kernels: AssignmentKernels) -> Found:
    """Read it from a search that has ended, whose reference ran."""
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
        failures=tuple(f"{_named(assignment)}: {why}" for assignment, why in kernels.failures),
    )


def _file(file: str, choice: str, reference: CostTrial, best: CostTrial) -> TunedFile:
    return TunedFile(
        file=file,
        choice=choice,
        cost_reference=float(reference.cost_of(file).mean()),
        cost_choice=float(best.cost_of(file).mean()),
    )


def _named(assignment: Mapping[str, str]) -> str:
    return f"{format_count(len(assignment), 'file')} at {', '.join(sorted(set(assignment.values())))}"
