"""How often a bisection finds a planted culprit, simulated, beside the simple ways: by boots alone, or by verdicts.

The range is synthetic: the search is that of `kdyno bisect`, and what it measures is drawn at random.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean

from bench_figures import Row, share_text

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.unit.tune.bisect_range import COSTS, STEPS, UML_COSTS, SyntheticRange, bisected, found_steps, planted

from kdyno.judge.stats.estimate import EstimateLimits, estimate_ratio
from kdyno.judge.stats.verdict import WORSE, decide
from kdyno.tune.bisect.choice import TrialCosts
from kdyno.tune.bisect.evidence import Differences, Measure
from kdyno.tune.bisect.settings import SearchSettings

FIRST_SEED = 1000
"""Other ranges than those of the tests."""
RANGES = 40
MOST_BUILDS = 12
RIGHT = 0.9
MARGIN, ALPHA = 0.005, 0.05
"""Those of the verdicts by which the simple way bisects."""
LAYOUTS = SearchSettings().layouts


@dataclass(frozen=True)
class PlantedCase:
    """Ranges that are alike."""

    size: float
    """The effect of the culprit, as a logarithm."""
    noise: float
    """The standard deviation of one block."""
    luck: float
    """The standard deviation of the luck of one image."""
    costs: TrialCosts = COSTS

    def ranges(self, count: int, layouts: int) -> list[SyntheticRange]:
        """Return so many ranges, the same ones each time, with at most so many link orders of a kernel."""
        seeds = range(FIRST_SEED, FIRST_SEED + count)
        return [planted(seed, self.size, self.noise, self.luck, layouts) for seed in seeds]


NOISY = PlantedCase(0.01, 0.008, 0.002)
"""A change of 1 % in a noisy lane."""
LUCKY = PlantedCase(0.03, 0.005, 0.015, UML_COSTS)
"""A change of 3 % where one link order moves a kernel by half of that, as on the machine `uml`."""


@dataclass(frozen=True)
class BisectionScore:
    """What a way to bisect found in some ranges."""

    right: float
    """The part of the ranges in which exactly the culprit was named."""
    wrong: float
    """The part in which a change was named that is not the culprit."""
    builds: float
    """The mean number of kernels, both ends included."""
    most_builds: int
    boots: float


def kdyno_score(case: PlantedCase, count: int, layouts: int = LAYOUTS) -> BisectionScore:
    """Bisect as `kdyno bisect` does, with at most so many link orders of a kernel; 0: one image of each."""
    right = wrong = 0
    builds, boots = [], []
    for kernels in case.ranges(count, layouts):
        search = bisected(kernels, case.costs, most_builds=MOST_BUILDS)
        found, culprit = found_steps(search), tuple(kernels.changes)
        right += found == [culprit]
        wrong += any(culprit[0] not in steps for steps in found)
        builds.append(search.builds)
        boots.append(kernels.boots)
    return BisectionScore(right / count, wrong / count, fmean(builds), max(builds), fmean(boots))


IsBad = Callable[[Differences, float], bool]
"""Whether a kernel is bad, by its differences from the good end and the effect of the bad end."""


def halved(kernels: SyntheticRange, blocks: int, is_bad: IsBad) -> int:
    """Return the step that `git bisect` finds, with so many blocks of each kernel."""

    def measured(state: int) -> Differences:
        outcome = kernels.measure(Measure(state, blocks))
        assert isinstance(outcome, Differences)
        return outcome

    good, bad = 0, kernels.steps
    effect = measured(bad).mean
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (good, middle) if is_bad(measured(middle), effect) else (middle, bad)
    return bad


def is_nearer_to_bad(measured: Differences, effect: float) -> bool:
    """Decide as somebody does who compares means: by the nearer end."""
    return measured.mean > effect / 2


def is_worse_by_verdict(measured: Differences, effect: float) -> bool:  # noqa: ARG001
    """Decide by the verdict of `kdyno ab`: undecided is good."""
    estimate = estimate_ratio(measured.log_ratio(), "paired", EstimateLimits(MARGIN), len(measured.values))
    return decide(estimate, estimate.p, "lower", "speed", MARGIN, ALPHA) in WORSE


def simple_score(case: PlantedCase, count: int, blocks: int, is_bad: IsBad) -> BisectionScore:
    """Bisect by halves, with so many blocks of each kernel."""
    ranges = case.ranges(count, 0)
    right = sum(halved(kernels, blocks, is_bad) in kernels.changes for kernels in ranges) / count
    builds = 2 + STEPS.bit_length() - 1
    # A boot of the good end for each block: boots of the others are on record in the range.
    return BisectionScore(right, 1 - right, builds, builds, fmean(kernels.boots + blocks for kernels in ranges))


def blocks_for(boots: float) -> int:
    """Return the blocks of each kernel with which halving takes about so many boots."""
    return max(1, round(boots / (2 + STEPS.bit_length() - 1)))


def bisect_rows(count: int = RANGES) -> list[Row]:
    """Return the figures of a bisection in the noisy lane and of one among lucky images, and those of the simple ways
    as ratios to them.
    """
    return [*_rows(NOISY, "", count), *_rows(LUCKY, f", {100 * LUCKY.luck:.3g} % of luck", count)]


def _rows(case: PlantedCase, luck: str, count: int) -> list[Row]:
    own = kdyno_score(case, count)
    equal = blocks_for(own.boots)
    place = f"bisect: {100 * case.size:.3g} % among {STEPS} commits{luck}"
    rows = [
        Row(
            f"{place}, found",
            share_text(round(own.right * count), count),
            count,
            f"≥ {100 * RIGHT:.3g} %",
            own.right >= RIGHT,
        ),
        Row(f"{place}, most kernels", str(own.most_builds), count, f"≤ {MOST_BUILDS}", own.most_builds <= MOST_BUILDS),
    ]
    for blocks in sorted({1, SearchSettings().blocks, equal}):
        simple = simple_score(case, count, blocks, is_nearer_to_bad)
        name = f"git bisect with {blocks} boot{'s' if blocks > 1 else ''} a step over kdyno bisect{luck}"
        rows += [
            Row(f"bisect: found, {name}", f"{simple.right / own.right:.2f}", count, "≤ 1", simple.right <= own.right),
            Row(f"bisect: boots, {name}", f"{simple.boots / own.boots:.2f}", count),
        ]
    return rows
