"""The search: attribute, guess, confirm in groups. A generator that asks for trials, so that anything can measure them.

One kernel for each choice, with all hot files at that choice, tells what each choice makes of each file's own cycles.
That misses what a file does to others: its callees, the caches, the predictor. So the best choices of all files are
tried together, and where that delivers less than the files promised, the culprits are found by binary splitting: a
loser among n files costs about log2(n) more kernels (Hwang: A method for detecting all defective members in a
population by group testing, JASA 1972), and a group that delivers is never opened. If one choice for all hot files is
better still, by what its files do to each other, the search starts anew from there.
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
    """What a choice should save with a file, by the file's own cycles."""

    file: str
    choice: str
    gain: float
    """Less what of it is likely to be luck."""


@dataclass
class GroupTesting:
    """The state of a search; `run` carries it out, and leaves here what it found."""

    choices: Sequence[str]
    share: float
    """Of the reference's cost in source files that the hot files hold together."""
    hot: tuple[str, ...] = ()
    """The files that are tried, the most expensive first."""
    start: str = REFERENCE
    """The choice of all hot files that the search started from, the last time that it did."""
    chosen: dict[str, str] = field(default_factory=dict)
    """By file; what is not here is the reference's."""
    promises: dict[str, list[Promise]] = field(default_factory=dict)
    """By hot file, the choices that gain on `start` by attribution, the best first."""
    kept: set[str] = field(default_factory=set)
    """Files of which a choice delivered what it promised."""
    dropped: dict[str, list[str]] = field(default_factory=dict)
    """By file, the choices that promised to gain and didn't deliver."""
    attributed: dict[tuple[str, str], CostTrial] = field(default_factory=dict)
    """By choice and file, the trial that says what the choice makes of the file's own cycles."""
    unfit: dict[str, list[str]] = field(default_factory=dict)
    """By choice, the files that it was not tried for, because kernels with them can't be built or don't run."""
    kernels: int = 0
    """How many were asked for."""
    tried: dict[frozenset[tuple[str, str]], CostTrial | None] = field(default_factory=dict)

    def run(self, tunable: Iterable[str] | None = None) -> Trials:
        """The whole search; `tunable` are the files that may be given to a choice (None: all that cost anything)."""
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
        """The trial of what was chosen."""
        return self.tried.get(frozenset(self.chosen.items()))

    @property
    def noise(self) -> float:
        """The smallest gain of a whole kernel that is not taken for an accident."""
        return noise([trial.total for trial in self._measured()])

    def least_left(self) -> int:
        """How many kernels are still to be asked for, if all goes as promised."""
        attributed = 1 + len(self.choices)
        return attributed + 1 - self.kernels if self.kernels < attributed else 0

    def _measured(self) -> list[CostTrial]:
        return [trial for trial in self.tried.values() if trial is not None]

    def _try(self, assignment: Assignment) -> Generator[Assignment, CostTrial | None, CostTrial | None]:
        """Ask for a trial, unless it was made before."""
        key = frozenset(assignment.items())
        if key not in self.tried:
            self.kernels += 1
            self.tried[key] = yield assignment
        return self.tried[key]

    def _all_at(self, choice: str) -> dict[str, str]:
        return {} if choice == REFERENCE else dict.fromkeys(self.hot, choice)

    def _attribute(self, choice: str, files: list[str], most: int) -> Generator[Assignment, CostTrial | None, int]:
        """Try the choice for these files together, in halves where such a kernel doesn't run; return how many of `most`
        kernels are left that may fail. A choice that uses them up isn't tried for what is left of the files."""
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
        """By choice, the kernel with all hot files at it; those that run."""
        tried = {choice: self.tried.get(frozenset(self._all_at(choice).items())) for choice in self.choices}
        return {choice: trial for choice, trial in tried.items() if trial is not None}

    def _better_whole(self) -> str | None:
        """The choice that makes, for all hot files alone, a kernel cheaper than what was found by more than noise."""
        assert self.best is not None
        total = self.best.total
        gains = {choice: gain(total, trial.total) for choice, trial in self._wholes().items()}
        choice = max(gains, key=lambda choice: gains[choice], default=None)
        return choice if choice is not None and gains[choice] > self.noise else None

    def _improve(self, start: str) -> Trials:
        """Start from the kernel with all hot files at one choice, and give each file what gains most on that."""
        self.start, self.chosen = start, self._all_at(start)
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
        """The choices that gain more than their noise on where the search starts, by the file's own cycles."""
        assert self.reference is not None
        costs = {REFERENCE: self.reference.cost_of(file)} | {
            choice: self.attributed[choice, file].cost_of(file)
            for choice in self.choices
            if (choice, file) in self.attributed
        }
        least, luck = noise(list(costs.values())), error(list(costs.values()))
        gains = {choice: gain(costs[self.start], cost) for choice, cost in costs.items()}
        return sorted(
            (Promise(file, choice, _sober(saved, luck)) for choice, saved in gains.items() if saved > least),
            key=lambda promise: -promise.gain,
        )

    def _confirm(self, group: Sequence[Promise]) -> Trials:
        """Choose what of the group delivers on top of what is chosen already; drop the rest."""
        before = self.best
        assert before is not None
        wanted = self.chosen | {promise.file: promise.choice for promise in group}
        wanted = {file: choice for file, choice in wanted.items() if choice != REFERENCE}
        trial = yield from self._try(wanted)
        if trial is not None and self._delivers(before, trial, group):
            self.chosen = wanted
            self.kept |= {promise.file for promise in group}
        elif len(group) == 1:
            self.dropped.setdefault(group[0].file, []).append(group[0].choice)
        else:
            # The better half first: if it delivers, both halves together are a kernel that was tried already.
            for half in halves(group, shortfalls(before, trial, group)):
                yield from self._confirm(half)

    def _delivers(self, before: CostTrial, after: CostTrial, group: Sequence[Promise]) -> bool:
        promised = math.fsum(promise.gain for promise in group)
        return gain(before.total, after.total) >= promised - self.noise


def hot_files(reference: CostTrial, share: float, tunable: Iterable[str] | None = None) -> tuple[str, ...]:
    """The fewest files that together hold this share of what all files cost, the most expensive first."""
    costs = {file: float(values.mean()) for file, values in reference.by_file.items() if values.mean() > 0}
    wanted = share * math.fsum(costs.values())
    allowed = set(costs if tunable is None else tunable)
    hot, held = [], 0.0
    for file in sorted(costs, key=lambda file: (-costs[file], file)):
        if held >= wanted:
            break
        held += costs[file]
        if file in allowed:
            hot.append(file)
    return tuple(hot)


def shortfalls(before: CostTrial, trial: CostTrial | None, group: Sequence[Promise]) -> Mapping[str, float]:
    """By file, how much less than promised it saved of its own cycles in this trial; 0 for all if it didn't run."""
    if trial is None:
        return {promise.file: 0.0 for promise in group}
    return {
        promise.file: promise.gain - gain(before.cost_of(promise.file), trial.cost_of(promise.file))
        for promise in group
    }


def halves(group: Sequence[Promise], shortfall: Mapping[str, float]) -> tuple[list[Promise], list[Promise]]:
    """The half that kept its promises better, and the other; so that suspects are in one group."""
    ranked = sorted(group, key=lambda promise: shortfall[promise.file])
    middle = len(ranked) // 2
    return ranked[:middle], ranked[middle:]


def _sober(saved: float, luck: float) -> float:
    """What to expect of a saving that was picked because it was large: it shrinks as its error grows (James and Stein:
    Estimation with quadratic loss, Berkeley Symposium 1961; here of one value, towards nothing)."""
    return saved * (1 - (luck / saved) ** 2)
