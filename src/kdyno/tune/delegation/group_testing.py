"""The search: attribute, guess, confirm in groups. A generator that asks for trials, so that anything can measure them.

One kernel for each choice, with all hot files at that choice, shows the effect of the choice on the cycles of each
file. It doesn't show the effect of a file on others: on its callees, the caches, the predictor. So the best choices of
all files are tried together. If that saves less than the files promised, the culprits are found by binary splitting: a
loser among n files costs about log2(n) more kernels (Hwang: A method for detecting all defective members in a
population by group testing, JASA 1972), and a group that delivers is never split. If one choice for all hot files is
better still, because of the effects of its files on each other, the search starts again from there.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from kdyno.tune.delegation.noise import error, noise
from kdyno.tune.delegation.trial import Assignment, CostTrial, gain

REFERENCE = ""
"""The choice that leaves a file to the reference's compiler."""

Trials = Generator[Assignment, CostTrial | None, None]
"""Asks for a trial of each assignment that it yields; None if that kernel can't be built or doesn't run."""


@dataclass(frozen=True)
class Promise:
    """The expected saving of a choice for a file, by the file's own cycles."""

    file: str
    choice: str
    gain: float
    """The saving, reduced by the part that is likely to be chance."""


@dataclass
class GroupTesting:
    """The state of a search. `run` carries it out, and stores its results here."""

    choices: Sequence[str]
    share: float
    """The share of the reference's cost in source files that the hot files hold together."""
    hot: tuple[str, ...] = ()
    """The files that are tried, the most expensive first."""
    start: str = REFERENCE
    """The choice of all hot files at the last start of the search."""
    chosen: dict[str, str] = field(default_factory=dict)
    """The choice by file; the reference compiles all other files."""
    promises: dict[str, list[Promise]] = field(default_factory=dict)
    """By hot file, the choices that gain on `start` by attribution, the best first."""
    kept: set[str] = field(default_factory=set)
    """Files of which a choice delivered what it promised."""
    dropped: dict[str, list[str]] = field(default_factory=dict)
    """By file, the choices that didn't deliver the promised gain."""
    attributed: dict[tuple[str, str], CostTrial] = field(default_factory=dict)
    """By choice and file, the trial that shows the effect of the choice on the file's own cycles."""
    unfit: dict[str, list[str]] = field(default_factory=dict)
    """By choice, the files for which it was not tried, because kernels with them can't be built or don't run."""
    kernels: int = 0
    """The number of kernels that were requested."""
    tried: dict[frozenset[tuple[str, str]], CostTrial | None] = field(default_factory=dict)

    def run(self, tunable: Iterable[str] | None = None) -> Trials:
        """Carry out the search. `tunable` are the files that may be given to a choice; None: all files with a cost."""
        reference = yield from self._try({})
        if reference is None:
            return
        self.hot = hot_files(reference, self.share, tunable)
        for choice in self.choices:
            yield from self._attribute(choice, list(self.hot), 2 * len(self.hot).bit_length())
        yield from self._improve(REFERENCE)
        if (whole := self._better_whole()) is not None:
            yield from self._improve(whole)

    @property
    def reference(self) -> CostTrial | None:
        return self.tried.get(frozenset())

    @property
    def best(self) -> CostTrial | None:
        """The trial of the chosen assignment."""
        return self.tried.get(frozenset(self.chosen.items()))

    @property
    def noise(self) -> float:
        """The smallest gain of a whole kernel that is not taken for chance."""
        return noise([trial.total for trial in self._successful_trials()])

    def least_left(self) -> int:
        """Return the number of kernels that will still be requested if all choices deliver."""
        attributed = 1 + len(self.choices)
        return attributed + 1 - self.kernels if self.kernels < attributed else 0

    def _successful_trials(self) -> list[CostTrial]:
        return [trial for trial in self.tried.values() if trial is not None]

    def _try(self, assignment: Assignment) -> Generator[Assignment, CostTrial | None, CostTrial | None]:
        """Request a trial, unless it was made before."""
        key = frozenset(assignment.items())
        if key not in self.tried:
            self.kernels += 1
            self.tried[key] = yield assignment
        return self.tried[key]

    def _assign_all(self, choice: str) -> dict[str, str]:
        return {} if choice == REFERENCE else dict.fromkeys(self.hot, choice)

    def _attribute(self, choice: str, files: list[str], most: int) -> Generator[Assignment, CostTrial | None, int]:
        """Try the choice for these files together, in halves if such a kernel doesn't run.

        At most `most` kernels may fail; returns how many of them remain. A choice that uses them up isn't tried for the
        remaining files.
        """
        trial = (yield from self._try(dict.fromkeys(files, choice))) if most and files else None
        if trial is not None:
            self.attributed |= {(choice, file): trial for file in files}
        elif len(files) <= 1 or most <= 1:
            self.unfit.setdefault(choice, []).extend(files)
            most = max(most - 1, 0)
        else:
            most -= 1
            middle = len(files) // 2
            for half in (files[:middle], files[middle:]):
                most = yield from self._attribute(choice, half, most)
        return most

    def _wholes(self) -> dict[str, CostTrial]:
        """Return by choice the trial of the kernel with all hot files at that choice, if it runs."""
        tried = {choice: self.tried.get(frozenset(self._assign_all(choice).items())) for choice in self.choices}
        return {choice: trial for choice, trial in tried.items() if trial is not None}

    def _better_whole(self) -> str | None:
        """Return the choice for all hot files that beats the best kernel by more than noise; None without one."""
        assert self.best is not None
        total = self.best.total
        gains = {choice: gain(total, trial.total) for choice, trial in self._wholes().items()}
        choice = max(gains, key=lambda choice: gains[choice], default=None)
        return choice if choice is not None and gains[choice] > self.noise else None

    def _improve(self, start: str) -> Trials:
        """Start from the kernel with all hot files at one choice, and give each file the choice that gains most."""
        self.start, self.chosen = start, self._assign_all(start)
        self.kept, self.dropped = set(), {}
        self.promises = {file: self._promises(file) for file in self.hot}
        for rank in range(len(self.choices)):
            group = [
                promises[rank]
                for file, promises in self.promises.items()
                if file not in self.kept and rank < len(promises)
            ]
            if group:
                yield from self._confirm(sorted(group, key=lambda promise: -promise.gain))

    def _promises(self, file: str) -> list[Promise]:
        """Return the choices that gain more than noise over the start, by the file's own cycles, the best first."""
        assert self.reference is not None
        costs = {REFERENCE: self.reference.cost_of(file)} | {
            choice: self.attributed[choice, file].cost_of(file)
            for choice in self.choices
            if (choice, file) in self.attributed
        }
        least, luck = noise(list(costs.values())), error(list(costs.values()))
        gains = {choice: gain(costs[self.start], cost) for choice, cost in costs.items()}
        return sorted(
            (Promise(file, choice, _shrink(saved, luck)) for choice, saved in gains.items() if saved > least),
            key=lambda promise: -promise.gain,
        )

    def _confirm(self, group: Sequence[Promise]) -> Trials:
        """Choose the promises of the group that deliver on top of the chosen ones; drop the others."""
        best = self.best
        assert best is not None
        candidate = self.chosen | {promise.file: promise.choice for promise in group}
        candidate = {file: choice for file, choice in candidate.items() if choice != REFERENCE}
        trial = yield from self._try(candidate)
        if trial is not None and self._delivers(best, trial, group):
            self.chosen = candidate
            self.kept |= {promise.file for promise in group}
        elif len(group) == 1:
            self.dropped.setdefault(group[0].file, []).append(group[0].choice)
        else:
            # The better half first: if it delivers, both halves together are a kernel that was tried already.
            for half in halves(group, shortfalls(best, trial, group)):
                yield from self._confirm(half)

    def _delivers(self, best: CostTrial, trial: CostTrial, group: Sequence[Promise]) -> bool:
        promised = math.fsum(promise.gain for promise in group)
        return gain(best.total, trial.total) >= promised - self.noise


def hot_files(reference: CostTrial, share: float, tunable: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return the fewest files that together hold this share of the cost of all files, the most expensive first."""
    costs = {file: float(values.mean()) for file, values in reference.by_file.items() if values.mean() > 0}
    wanted_cost = share * math.fsum(costs.values())
    allowed = set(costs if tunable is None else tunable)
    hot, held_cost = [], 0.0
    for file in sorted(costs, key=lambda file: (-costs[file], file)):
        if held_cost >= wanted_cost:
            break
        held_cost += costs[file]
        if file in allowed:
            hot.append(file)
    return tuple(hot)


def shortfalls(best: CostTrial, trial: CostTrial | None, group: Sequence[Promise]) -> Mapping[str, float]:
    """Return by file the promised saving less the actual one in its own cycles; 0 for all if the trial didn't run."""
    if trial is None:
        return {promise.file: 0.0 for promise in group}
    return {
        promise.file: promise.gain - gain(best.cost_of(promise.file), trial.cost_of(promise.file)) for promise in group
    }


def halves(group: Sequence[Promise], shortfall: Mapping[str, float]) -> tuple[list[Promise], list[Promise]]:
    """Return the half that kept its promises better, and the other; so suspects are in one group."""
    ranked = sorted(group, key=lambda promise: shortfall[promise.file])
    middle = len(ranked) // 2
    return ranked[:middle], ranked[middle:]


def _shrink(saved: float, luck: float) -> float:
    """Return the expected value of a saving that was picked because it was large. It shrinks as its error grows.

    Source: James and Stein, Estimation with quadratic loss, Berkeley Symposium 1961; here for one value, towards 0.
    """
    return saved * (1 - (luck / saved) ** 2)
