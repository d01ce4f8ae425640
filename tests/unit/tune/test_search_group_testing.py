"""The search on synthetic kernels: files with planted gains, planted effects on other files, and noise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from kdyno.tune.delegation.group_testing import GroupTesting, hot_files
from kdyno.tune.delegation.trial import Assignment, CostTrial

CHOICES = ("clang", "gcc-O3")


@dataclass
class Kernel:
    """What each file costs at each choice, and what it then does to the rest; draws the noise of every trial anew."""

    own: Mapping[str, Mapping[str, float]]
    """By file and choice; "" is the reference's."""
    elsewhere: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """By file and choice, what it adds to the cost of code that is none of the files'."""
    noise: float = 0.0
    """Standard deviation of a replicate's total; that of a file's own cost is in proportion to the cost."""
    replicates: int = 4
    broken: tuple[tuple[str, str], ...] = ()
    """Files and choices that don't boot."""
    trials: int = 0

    def trial(self, assignment: Assignment) -> CostTrial | None:
        self.trials += 1
        if any(pair in assignment.items() for pair in self.broken):
            return None
        chance = np.random.default_rng(self.trials)
        by_file = {
            file: costs[assignment.get(file, "")] * (1 + self.noise * chance.standard_normal(self.replicates))
            for file, costs in self.own.items()
        }
        rest = 1 - math.fsum(costs[""] for costs in self.own.values())
        rest += math.fsum(self.elsewhere.get(pair, 0.0) for pair in assignment.items())
        total = rest + sum(by_file.values()) + self.noise * chance.standard_normal(self.replicates)
        return CostTrial(np.asarray(total), by_file)

    def searched(self, share: float = 1.0) -> GroupTesting:
        search = GroupTesting(CHOICES, share)
        asked = search.run()
        try:
            wanted = next(asked)
            while True:
                wanted = asked.send(self.trial(wanted))
        except StopIteration:
            return search


def even(files: int, winners: Mapping[int, str] = {}, gain: float = 0.2, **more: object) -> Kernel:
    """Files that cost alike, together 0.8; winners are cheaper by `gain` at their choice, all else is dearer."""
    cost = 0.8 / files
    own = {
        f"f{number}.c": {
            "": cost,
            **{choice: cost * (1 - gain if winners.get(number) == choice else 1.1) for choice in CHOICES},
        }
        for number in range(files)
    }
    return Kernel(own, **more)  # type: ignore[arg-type]


def test_each_file_gets_the_choice_that_gains_and_a_file_that_none_gains_stays_as_it_is() -> None:
    kernel = even(8, {1: "clang", 2: "gcc-O3", 5: "clang"})
    search = kernel.searched()
    assert search.chosen == {"f1.c": "clang", "f2.c": "gcc-O3", "f5.c": "clang"}
    assert kernel.trials == 4  # the reference, the two choices, and the guess, which delivered
    best = search.best
    assert best is not None and best.total.mean() == pytest.approx(1 - 3 * 0.2 * 0.1)


def test_a_file_that_gains_itself_and_costs_others_more_is_found_and_dropped() -> None:
    winners = dict.fromkeys(range(0, 64, 2), "clang")
    kernel = even(64, winners, elsewhere={("f10.c", "clang"): 0.02}, noise=0.0005)
    search = kernel.searched()
    assert search.dropped == {"f10.c": ["clang"]}
    assert set(search.chosen) == {f"f{number}.c" for number in winners} - {"f10.c"}


def test_a_dropped_file_gets_its_second_best_choice() -> None:
    kernel = even(4, {0: "clang", 1: "clang"}, elsewhere={("f0.c", "clang"): 0.3})
    own = {**kernel.own, "f0.c": {"": 0.2, "clang": 0.1, "gcc-O3": 0.15}}
    search = Kernel(own, kernel.elsewhere).searched()
    assert search.chosen == {"f0.c": "gcc-O3", "f1.c": "clang"}


@pytest.mark.parametrize("losers", [1, 2, 4])
def test_kernels_grow_with_the_logarithm_of_the_files_and_in_proportion_to_the_losers(losers: int) -> None:
    for files in (16, 64, 256, 1024):
        winners = dict.fromkeys(range(files), "clang")
        bad = [7 * files // 16 + number * (files // losers // 2) for number in range(losers)]
        kernel = even(
            files, winners, elsewhere={(f"f{number}.c", "clang"): 0.05 for number in bad}, gain=0.1, noise=0.00002
        )
        search = kernel.searched()
        assert set(search.dropped) == {f"f{number}.c" for number in bad}
        assert kernel.trials <= 4 + 2 * losers * (math.log2(files) + 1)


def test_where_a_choice_gains_as_a_whole_by_what_files_do_to_each_other_the_search_starts_there() -> None:
    files = 8
    kernel = even(files, elsewhere={(f"f{number}.c", "clang"): -0.05 for number in range(files)})
    own = {**kernel.own, "f3.c": {"": 0.1, "clang": 0.11, "gcc-O3": 0.05}}
    search = Kernel(own, kernel.elsewhere).searched()
    assert search.start == "clang"
    best, all_clang = search.best, search.tried[frozenset((file, "clang") for file in own)]
    assert best is not None and all_clang is not None
    assert best.total.mean() <= all_clang.total.mean()
    assert search.chosen["f0.c"] == "clang"


def test_noise_alone_chooses_few_files_and_never_many_kernels() -> None:
    chosen = []
    for seed in range(20):
        own = {f"f{number}.c": dict.fromkeys(("", *CHOICES), 0.008) for number in range(100)}
        search = Kernel(own, noise=0.01, trials=1000 * seed).searched()
        chosen.append(len(search.chosen))
        assert search.kernels < 12
    assert sorted(chosen)[10] < 20


def test_winners_larger_than_noise_are_found_in_noise() -> None:
    winners = {number: CHOICES[number % 2] for number in range(0, 40, 4)}
    search = even(40, winners, gain=0.15, noise=0.01).searched()
    assert {f"f{number}.c": choice for number, choice in winners.items()}.items() <= search.chosen.items()


def test_a_file_with_which_a_kernel_does_not_boot_is_set_aside_and_the_choice_is_tried_for_all_others() -> None:
    kernel = even(64, {1: "gcc-O3", 9: "clang", 50: "clang"}, broken=(("f4.c", "clang"),))
    search = kernel.searched()
    assert search.unfit == {"clang": ["f4.c"]}
    assert search.chosen == {"f1.c": "gcc-O3", "f9.c": "clang", "f50.c": "clang"}
    assert kernel.trials <= 4 + 2 * math.log2(64)


def test_a_choice_with_which_nothing_boots_costs_few_kernels() -> None:
    kernel = even(256, {1: "gcc-O3"}, broken=tuple((f"f{number}.c", "clang") for number in range(256)))
    search = kernel.searched()
    assert set(search.unfit) == {"clang"} and len(search.unfit["clang"]) == 256
    assert search.chosen == {"f1.c": "gcc-O3"}
    assert kernel.trials <= 4 + 2 * math.log2(512)


def test_a_search_whose_reference_does_not_run_ends() -> None:
    search = GroupTesting(CHOICES, 0.95)
    asked = search.run()
    assert next(asked) == {}
    with pytest.raises(StopIteration):
        asked.send(None)
    assert search.chosen == {}
    assert search.best is None


def test_hot_files_are_the_fewest_that_hold_the_share_and_only_those_that_may_be_chosen() -> None:
    costs = {"a.c": 0.5, "entry.S": 0.3, "b.c": 0.15, "c.c": 0.05, "d.c": 0.0}
    trial = CostTrial(np.ones(3), {file: np.full(3, cost) for file, cost in costs.items()})
    assert hot_files(trial, 0.9) == ("a.c", "entry.S", "b.c")
    assert hot_files(trial, 0.9, ["a.c", "b.c", "c.c"]) == ("a.c", "b.c")
    assert hot_files(trial, 1.0) == ("a.c", "entry.S", "b.c", "c.c")
