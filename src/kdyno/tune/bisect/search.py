"""The search: which trial is next, and what all trials show. Pure: whoever measures tells it the outcomes.

Both ends come first. Then states are chosen by expected information until a step has the stated probability. That step
is checked: the states before and after it are measured again, in boots and link orders that the search didn't use. If
it explains less than half of the effect of the range, the search goes on for the others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

import numpy as np
from scipy import special

from kdyno.judge.stats.estimate import EstimateLimits, estimate_ratio
from kdyno.judge.stats.verdict import BETTER, WORSE, decide
from kdyno.tune.bisect.choice import BOOTS, Choice, TrialCosts, candidates, choose, designs, grown
from kdyno.tune.bisect.culprit import CONFIDENCE, Checked, Culprit, Interval, interval_of
from kdyno.tune.bisect.evidence import (
    BisectEvidence,
    Check,
    Differences,
    Measure,
    Outcome,
    Revert,
    Trial,
    luck_variance,
    spread,
)
from kdyno.tune.bisect.posterior import Posterior
from kdyno.tune.bisect.settings import SearchSettings

ENOUGH = 0.5
"""The part of the range's effect that the culprits must explain."""
MOST_CULPRITS = 4
ENDS_ALPHA = 0.05
MOST_ORDERS = 256
"""More link orders than this are not advised."""
POWER = 0.5
"""By how many standard errors an effect should be beyond the limit that shows it."""

PairTrial = TypeVar("PairTrial", Measure, Check)
Ends = Literal["worse", "equal", "reversed", "undecided", "untestable", "unknown"]
Answer = Literal["better", "worse", "undecided"]


@dataclass
class Search:
    """A bisection under way. `next_trial` returns what to measure, and `learn` takes the outcome."""

    evidence: BisectEvidence
    settings: SearchSettings = field(default_factory=SearchSettings)
    _found: list[Culprit] = field(default_factory=list)
    """The confirmed culprits."""

    def learn(self, trial: Trial, outcome: Outcome) -> None:
        """Add the outcome of a trial."""
        self.evidence.learn(trial, outcome)

    @property
    def builds(self) -> int:
        """The number of states that were built, or that failed to build."""
        return len(self.evidence.tried)

    # The ends.

    def ends(self) -> Ends:
        """Return how the bad end compares with the good end so far."""
        last = self.evidence.steps
        if last in self.evidence.untestable:
            return "untestable"
        if last in self.evidence.same:
            return "equal"
        if last not in self.evidence.measured:
            return "unknown"
        measured = self.evidence.measured[last]
        alpha = self._ends_alpha
        limits = EstimateLimits(self.settings.margin, alpha, 1 - alpha)
        estimate = estimate_ratio(measured.log_ratio(), "paired", limits, len(measured.values))
        verdict = decide(estimate, estimate.p, "lower", "speed", self.settings.margin, alpha)
        if verdict in WORSE:
            return "worse"
        if verdict in BETTER:
            return "reversed"
        return "equal" if verdict == "equivalent" else "undecided"

    def ends_trial(self, costs: TrialCosts) -> Measure | None:
        """Return what to measure of the bad end next; None if the most blocks and link orders are measured."""
        last, state, settings = self.evidence.steps, self.ends(), self.settings
        if state == "unknown":
            return Measure(last, *self._first_design(costs))
        measured = self.evidence.measured[last]
        if measured.blocks >= settings.most_blocks and measured.layouts >= settings.layouts:
            return None
        more = grown(measured, settings.most_blocks, settings.layouts)
        trials = [Measure(last, *design) for design in more] or [Measure(last, settings.most_blocks, settings.layouts)]
        return self._least_that_shows(trials, measured.mean, self._ends_alpha, costs)

    def _first_design(self, costs: TrialCosts) -> tuple[int, int]:
        """Return the first blocks and link orders of the ends: more boots of each image if a boot is cheaper."""
        settings = self.settings
        if not settings.layouts:
            return settings.blocks, 0
        orders = min(settings.blocks, settings.layouts)
        boots = min(max(1, round(costs.link / costs.block)), BOOTS[-1])
        blocks = min(max(orders * boots, settings.blocks), settings.most_blocks)
        return blocks, orders

    @property
    def _ends_alpha(self) -> float:
        """The level of each look at the ends."""
        looks = 1 + max(0, math.ceil(math.log2(self.settings.most_blocks / self.settings.blocks)))
        return ENDS_ALPHA / looks

    def _least_that_shows(
        self, trials: Sequence[PairTrial], effect: float, alpha: float, costs: TrialCosts
    ) -> PairTrial:
        """Return the cheapest trial that should show an effect of two states; the one that shows most if none does."""
        posterior = self.posterior()

        def variance(trial: PairTrial) -> float:
            return self._pair_variance(posterior, trial.blocks, trial.orders)

        def shows(trial: PairTrial) -> bool:
            replicates = trial.orders or trial.blocks
            reach = float(special.stdtrit(max(1, replicates - 1), 1 - alpha / 2)) + POWER
            return abs(effect) > reach * math.sqrt(variance(trial))

        if enough := [trial for trial in trials if shows(trial)]:
            return min(enough, key=lambda trial: costs.seconds(trial, self.evidence))
        return min(trials, key=lambda trial: (variance(trial), -trial.blocks))

    def _pair_variance(self, posterior: Posterior, blocks: int, orders: int) -> float:
        """Return the variance of the difference of two states; blocks of one image have its luck as a part of it."""
        return posterior.pair_variance(blocks, orders) if orders else posterior.noise**2 / blocks

    # The search.

    def next_trial(self, costs: TrialCosts) -> Trial | None:
        """Return what to measure next; None at the end."""
        match self.ends():
            case "unknown" | "undecided":
                return self.ends_trial(costs)
            case "worse":
                return self._search_trial(costs)
        return None

    def _search_trial(self, costs: TrialCosts) -> Trial | None:
        self.settle()
        if self.is_explained():
            return self.revert_trial()
        posterior = self.posterior()
        if culprit := self.suspect(posterior):
            # None: probable, but the most blocks didn't confirm it
            return self.check_trial(culprit, costs) or self.revert_trial()
        if choice := self.choose_trial(posterior, costs):
            return choice.trial
        candidate = self.smallest_set(posterior)
        return (self.check_trial(candidate, costs) if candidate else None) or self.revert_trial()

    def choose_trial(self, posterior: Posterior, costs: TrialCosts) -> Choice | None:
        """Return the trial that tells most about the culprit for its time; None if no state tells anything."""
        may_build = self.builds < self.settings.most_builds
        return choose(posterior, costs, self.settings.most_blocks, may_build=may_build, layouts=self.settings.layouts)

    def revert_trial(self) -> Revert | None:
        """Return the next confirmed step to revert on top of the bad end; None if there is none."""
        if not self.settings.revert:
            return None
        for culprit in self._found:
            if len(culprit.steps) == 1 and culprit.steps[0] not in self.evidence.reverts:
                checked = self.evidence.checks[culprit.before, culprit.after]
                return Revert(culprit.steps[0], checked.blocks, checked.layouts)
        return None

    def settle(self) -> None:
        """Note each culprit that is probable and confirmed."""
        while not self.is_explained():
            posterior = self.posterior()
            culprit = self.suspect(posterior) or self.smallest_set(posterior)
            if culprit is None or self.checked(culprit) != "confirmed" or self._can_divide(posterior, culprit):
                return
            self._found.append(culprit)

    def _can_divide(self, posterior: Posterior, culprit: Culprit) -> bool:
        """Return whether another kernel could divide a set of steps. A set is the end only if none can."""
        intervals = posterior.intervals_of(culprit.before, culprit.after)
        may_build = self.builds < self.settings.most_builds
        return len(culprit.steps) > 1 and may_build and any(candidates(posterior, place, ()) for place in intervals)

    def is_divisible(self) -> bool:
        """Return whether another kernel could divide the steps that hold the culprit."""
        posterior = self.posterior()
        remaining = self.smallest_set(posterior)
        return remaining is not None and self._can_divide(posterior, remaining)

    def posterior(self) -> Posterior:
        """Return the posterior of further culprits. The ends must differ."""
        return Posterior(self.evidence, [(culprit.before, culprit.after) for culprit in self._found])

    def suspect(self, posterior: Posterior) -> Culprit | None:
        """Return the step with at least the stated probability, the most probable one; None if there is none."""
        probabilities = posterior.step_probabilities()
        step = int(np.argmax(probabilities)) + 1
        if probabilities[step - 1] < self.settings.probability:
            return None
        interval = posterior.interval_of(step)
        before, after = posterior.edges[interval], posterior.edges[interval + 1]
        return Culprit(before, after, (step,), float(probabilities[step - 1]))

    def smallest_set(self, posterior: Posterior) -> Culprit | None:
        """Return the fewest steps in a row between two measured states that hold a culprit with the stated
        probability; None if there are none.
        """
        masses, edges = posterior.masses, posterior.edges
        best: Culprit | None = None
        for first in range(len(masses)):
            for last in range(first, len(masses)):
                mass = min(1.0, float(masses[first : last + 1].sum()))
                if mass < self.settings.probability:
                    continue
                before, after = edges[first], edges[last + 1]
                suspected = np.flatnonzero(posterior.weights[before:after] > 0)
                if len(suspected) and (best is None or len(suspected) < len(best.steps)):
                    steps = (suspected + before + 1).tolist()
                    best = Culprit(before, after, tuple(steps), mass)
        return best

    # The checks.

    def check_trial(self, culprit: Culprit, costs: TrialCosts) -> Check | None:
        """Return the next check of a culprit; None if it is decided, can't be checked, or has the most blocks."""
        pair, settings = (culprit.before, culprit.after), self.settings
        if pair in self.evidence.uncheckable:
            return None
        checked = self.evidence.checks.get(pair)
        if checked and (self.judge_check(checked) != "undecided" or checked.blocks >= settings.most_blocks):
            return None
        return self.plan_check(pair, checked, costs)

    def plan_check(self, pair: tuple[int, int], checked: Differences | None, costs: TrialCosts) -> Check:
        """Return the cheapest check that should show ENOUGH of the effect, after what was checked already."""
        settings = self.settings
        if checked:
            more = grown(checked, settings.most_blocks, settings.layouts)
        else:
            least = min(settings.blocks, settings.layouts or settings.blocks)
            pairs = designs(settings.most_blocks, settings.layouts)
            is_enough = [blocks >= settings.blocks and (orders or blocks) >= least for blocks, orders in pairs]
            more = [pair for pair, enough in zip(pairs, is_enough, strict=True) if enough]
        trials = [Check(*pair, *design) for design in more] or [Check(*pair, settings.most_blocks, settings.layouts)]
        effect = self.evidence.measured[self.evidence.steps].mean * ENOUGH
        return self._least_that_shows(trials, effect, 1 - CONFIDENCE, costs)

    def judge_check(self, differences: Differences) -> Checked:
        """Return whether a check shows a change for the worse, or that there is none of the expected size."""
        size = interval_of(differences)
        if size.low > 0:
            return "confirmed"
        return "contradicted" if size.high < self.range_effect.effect / 4 else "undecided"

    def checked(self, culprit: Culprit) -> Checked | None:
        """Return the result of the check of a culprit; None without one."""
        differences = self.evidence.checks.get((culprit.before, culprit.after))
        return self.judge_check(differences) if differences else None

    def culprits(self) -> list[Culprit]:
        """Return the confirmed culprits in the order in which they were found, with their sizes."""
        return [self.with_size(culprit) for culprit in self._found]

    def with_size(self, culprit: Culprit) -> Culprit:
        """Return a culprit with what its check has shown, if there was one."""
        differences = self.evidence.checks.get((culprit.before, culprit.after))
        if differences is None:
            return culprit
        size = interval_of(differences)
        share = math.log1p(size.effect) / math.log1p(self.range_effect.effect)
        return replace(culprit, size=size, checked=self.judge_check(differences), share=share)

    @property
    def range_effect(self) -> Interval:
        """The effect of the whole range."""
        return interval_of(self.evidence.measured[self.evidence.steps])

    def explained(self) -> float:
        """Return the part of the range's effect that the confirmed culprits explain."""
        return sum(culprit.share or 0.0 for culprit in self.culprits())

    def is_explained(self) -> bool:
        """Return whether the culprits explain enough of the effect, or there are too many."""
        return self.explained() >= ENOUGH or len(self.culprits()) >= MOST_CULPRITS

    # What it shows.

    def luck_and_noise(self) -> tuple[float | None, float | None]:
        """Return the standard deviations of the luck of an image and of a block's noise, as logarithms; None for what
        the trials don't show.
        """
        measured = self.evidence.measured
        variance, freedom = spread(measured)
        noise = math.sqrt(variance) if freedom else None
        luck = luck_variance(measured, variance if freedom else 0.0)
        return None if luck is None else math.sqrt(luck), noise

    def blocks_that_show(self, effect: float) -> int | None:
        """Return the number of blocks, each with a link order of its own, that should show an effect of two kernels;
        None if not even MOST_ORDERS are enough.
        """
        posterior = Posterior(self.evidence)
        blocks = 2 * self.settings.most_blocks if not self.settings.layouts else 2 * self.settings.layouts
        while blocks <= MOST_ORDERS:
            orders = blocks if self.settings.layouts else 0
            reach = float(special.stdtrit(blocks - 1, 1 - self._ends_alpha / 2)) + POWER
            if abs(effect) > reach * math.sqrt(self._pair_variance(posterior, blocks, orders)):
                return blocks
            blocks *= 2
        return None

    def answer(self, state: int) -> Answer:
        """Return whether a measured state is as bad as the bad end, as good as the good end, or neither was shown."""
        posterior = self.posterior()
        measured = self.evidence.measured[state]
        bad = self.evidence.measured[self.evidence.steps].mean
        variance = posterior.luck**2 / measured.orders + posterior.noise**2 / len(measured.values)
        ratio = (measured.mean - bad / 2) * bad / variance
        if abs(ratio) < math.log(self.settings.probability / (1 - self.settings.probability)):
            return "undecided"
        return "worse" if ratio > 0 else "better"
