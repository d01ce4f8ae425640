"""How fast samplers find a good recipe: searches in a recorded space, whose recipes were all built and measured.

A replayed search asks the record instead of building: the samplers are those of `kdyno tune`, and so are the trials.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, median

from bench_figures import Row, ratio_interval

from kdyno.runs.experiment.space import RungSpec, Sampler, SearchConfig
from kdyno.tune.space.outcome import TrialOutcome
from kdyno.tune.space.read import read_space
from kdyno.tune.space.record import SearchRecord
from kdyno.tune.space.samplers import PROPOSERS, Proposer
from kdyno.tune.space.search import SearchCosts, SearchState
from kdyno.tune.space.space import Point, Space

RECORDED = Path(__file__).parent.parent / "tests" / "data" / "search"
REPLAYS = 40
"""Seeds of each sampler."""
BUILDS = (1, 2, 4, 8)
"""After so many builds the share of the best gain is read."""
NEARLY = 0.9
"""The part of the best gain that counts as found."""
SIMPLE_WAYS: tuple[Sampler, ...] = ("random", "one-at-a-time")
OWN: Sampler = "effects"


@dataclass(frozen=True)
class RecordedPoints(Space):
    """A space of which only some recipes are on record: there are no others."""

    recorded: frozenset[Point] = frozenset()

    @cached_property
    def points(self) -> tuple[Point, ...]:
        return (self.baseline, *sorted(self.recorded - {self.baseline}))

    @property
    def is_listed(self) -> bool:
        return True

    def is_allowed(self, point: Sequence[int]) -> bool:
        return tuple(point) in self.recorded or tuple(point) == self.baseline


@dataclass(frozen=True)
class RecordedSpace:
    """A space with the outcome of each of its recipes."""

    space: Space
    outcomes: Mapping[Point, TrialOutcome]

    @property
    def best(self) -> float:
        """The largest gain, as a logarithm."""
        return max(trial.measured["speed"].value for trial in self.outcomes.values() if trial.is_ok)

    def gain(self, trial: TrialOutcome) -> float:
        return trial.measured["speed"].value if trial.is_ok else 0.0


def recorded_space(folder: Path = RECORDED) -> RecordedSpace:
    """Return the recorded space."""
    space = read_space(folder / "space.toml").space
    record = SearchRecord.model_validate_json((folder / "record.json").read_text(encoding="utf-8"))
    outcomes = {point: trial for trial in record.trials if (point := space.point_of(trial.values)) is not None}
    recorded = RecordedPoints(space.knobs, recorded=frozenset(outcomes))
    return RecordedSpace(recorded, outcomes)


def replay(recorded: RecordedSpace, propose: Proposer, seed: int, recipes: int) -> Iterator[tuple[int, float, float]]:
    """Yield after each trial the number of builds, the seconds, and the best gain so far."""
    state = SearchState(recorded.space, SearchConfig(recipes=recipes + 1), [RungSpec(blocks=2)], ())
    best = seconds = 0.0
    built: set[Point] = {recorded.space.image_of(recorded.space.baseline)}
    compiled: set[Point] = {recorded.space.objects_of(recorded.space.baseline)}
    costs = SearchCosts(
        build=_typical(recorded, is_build=True), link=_typical(recorded, is_build=False), boots=_boots(recorded)
    )
    while (step := state.next_step(propose, state.costs(costs.build, costs.boots), seed)) is not None:
        trial = recorded.outcomes[step.point]
        objects, image = recorded.space.objects_of(step.point), recorded.space.image_of(step.point)
        work = 0.0 if image in built else costs.link if objects in compiled else costs.build
        built.add(image)
        compiled.add(objects)
        state.add(trial.model_copy(update={"build_seconds": work, "boot_seconds": costs.boots}))
        seconds += work + costs.boots
        best = max(best, recorded.gain(trial))
        yield len(compiled) - 1, seconds, best


def _typical(recorded: RecordedSpace, *, is_build: bool) -> float:
    """Return the median seconds of a build, or of a link of objects that exist."""
    first: dict[Point, float] = {}
    links: list[float] = []
    for point, trial in recorded.outcomes.items():
        if not trial.build_seconds:
            continue
        objects = recorded.space.objects_of(point)
        if objects in first:
            links.append(trial.build_seconds)
        first[objects] = max(first.get(objects, 0.0), trial.build_seconds)
    return median(first.values()) if is_build else median(links)


def _boots(recorded: RecordedSpace) -> float:
    return median(trial.boot_seconds for trial in recorded.outcomes.values())


@dataclass(frozen=True)
class Found:
    """What a sampler found, as means over seeds."""

    share_by_builds: Mapping[int, float]
    """By a number of builds the part of the best recipe's gain that was found with so many."""
    seconds_by_seed: tuple[float, ...]
    """The seconds until nine tenths of it were found, seed by seed."""

    @property
    def seconds(self) -> float:
        return fmean(self.seconds_by_seed)


def find(recorded: RecordedSpace, propose: Proposer, replays: int = REPLAYS) -> Found:
    shares: dict[int, list[float]] = {builds: [] for builds in BUILDS}
    seconds = []
    for seed in range(replays):
        trials = []
        for trial in replay(recorded, propose, seed, len(recorded.outcomes)):
            trials.append(trial)
            builds, _, gain = trial
            if gain >= recorded.best or (builds > max(BUILDS) and gain >= NEARLY * recorded.best):
                break
        for builds in BUILDS:
            shares[builds].append(
                max((gain for done, _, gain in trials if done <= builds), default=0.0) / recorded.best
            )
        seconds.append(next(took for _, took, gain in trials if gain >= NEARLY * recorded.best))
    return Found({builds: fmean(values) for builds, values in shares.items()}, tuple(seconds))


def search_rows(replays: int = REPLAYS) -> list[Row]:
    """Return the figures of kdyno's sampler as ratios to the simple ways."""
    recorded = recorded_space()
    found = {name: find(recorded, PROPOSERS[name], replays) for name in (OWN, *SIMPLE_WAYS)}
    own = found[OWN]
    rows = [
        Row(
            f"search: gain found after {builds} builds, {name} over effects",
            f"{of.share_by_builds[builds] / own.share_by_builds[builds]:.2f}",
            replays,
        )
        for builds in BUILDS
        for name, of in found.items()
        if name != OWN and own.share_by_builds[builds]
    ]
    for name in SIMPLE_WAYS:
        ratio = found[name].seconds / own.seconds
        low, high = ratio_interval(found[name].seconds_by_seed, own.seconds_by_seed)
        rows.append(
            Row(
                f"search: time to 90 % of the best gain, {name} over effects",
                f"{ratio:.1f} ({low:.1f} to {high:.1f})",
                replays,
                "≥ 1",
                ratio >= 1,
            )
        )
    return rows
