"""The forecast of a bisection: how many kernels it takes, and how long the rest of it should take. Pure."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from kdyno.tune.bisect.choice import TrialCosts
from kdyno.tune.bisect.evidence import Check, Revert, Trial
from kdyno.tune.bisect.search import Search

SPARE_BUILDS = 2
"""Kernels beyond one for each halving that a forecast counts: noise, and kernels that don't build."""


@dataclass(frozen=True)
class BisectForecast:
    """What is ahead of a search in its present state."""

    search: Search

    def kernels_ahead(self) -> int:
        """Return about how many kernels a search takes from its beginning."""
        steps = self.search.evidence.steps
        states = 2 + math.ceil(math.log2(steps)) + SPARE_BUILDS * (steps > 1)
        return min(states, steps + 1, self.search.settings.most_builds)

    def seconds_left(self, costs: TrialCosts) -> float:
        """Return about how long the rest of the search takes: what it needs to know, at the pace of its next trial."""
        match self.search.ends():
            case "unknown" | "undecided":
                return self._seconds_from_ends(costs)
            case "worse":
                return self._seconds_of_search(costs)
        return 0.0

    def _seconds_from_ends(self, costs: TrialCosts) -> float:
        search = self.search
        trial = search.ends_trial(costs)
        if trial is None:
            return 0.0
        # A kernel in between gets half as many boots as the ends: it need not be compared with one other kernel alone.
        blocks, orders = math.ceil(trial.blocks / 2), math.ceil(trial.orders / 2)
        kernel = costs.build + max(0, orders - 1) * costs.link + blocks * costs.block
        check = Check(0, search.evidence.steps, trial.blocks, trial.orders)
        revert = (
            costs.seconds(Revert(1, trial.blocks, trial.orders), search.evidence) if search.settings.revert else 0.0
        )
        between = (self.kernels_ahead() - 2) * kernel
        return costs.seconds(trial, search.evidence) + between + costs.seconds(check, search.evidence) + revert

    def _seconds_of_search(self, costs: TrialCosts) -> float:
        search = self.search
        search.settle()

        def cost(trial: Trial | None) -> float:
            return costs.seconds(trial, search.evidence) if trial else 0.0

        if search.is_explained():
            return cost(search.revert_trial())
        posterior = search.posterior()
        check = search.plan_check((0, search.evidence.steps), None, costs)
        revert = cost(Revert(1, check.blocks, check.orders)) if search.settings.revert else 0.0
        if culprit := search.suspect(posterior):
            return cost(search.check_trial(culprit, costs)) + revert
        choice = search.choose_trial(posterior, costs)
        if choice is None:
            candidate = search.smallest_set(posterior)
            return cost(search.check_trial(candidate, costs)) + revert if candidate else 0.0
        return max(choice.seconds, self.trials_left() * choice.seconds / choice.bits) + cost(check) + revert

    def trials_left(self) -> float:
        """Return about how many states are still to be measured: as many as there are bits in the probabilities."""
        probabilities = self.search.posterior().step_probabilities()
        total = probabilities.sum()
        if total <= 0:
            return 0.0
        parts = probabilities[probabilities > 0] / total
        return float(-(parts * np.log2(parts)).sum())
