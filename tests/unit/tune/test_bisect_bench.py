"""The simulated bisections of `make bench`."""

from __future__ import annotations

import pytest
from bench_bisect import (
    LUCKY,
    NOISY,
    IsBad,
    PlantedCase,
    blocks_for,
    is_nearer_to_bad,
    is_worse_by_verdict,
    kdyno_score,
    simple_score,
)

COUNT = 10
EXACT = PlantedCase(0.01, 0.0, 0.0)


@pytest.mark.parametrize(("blocks", "is_bad"), [(1, is_nearer_to_bad), (4, is_worse_by_verdict)])
def test_without_noise_every_way_finds_the_culprit(blocks: int, is_bad: IsBad) -> None:
    simple = simple_score(EXACT, COUNT, blocks, is_bad)
    assert (simple.right, simple.wrong, simple.builds) == (1, 0, 8)
    # Both ends and six kernels of 64 steps.
    assert simple.boots == 8 * blocks
    assert kdyno_score(EXACT, COUNT).right == 1


def test_one_noisy_boot_a_step_finds_few_of_the_culprits_that_a_bisection_finds() -> None:
    own = kdyno_score(NOISY, COUNT)
    assert own.right >= 0.9
    assert own.most_builds <= 12
    assert simple_score(NOISY, COUNT, 1, is_nearer_to_bad).right < own.right / 2
    assert blocks_for(own.boots) > 1


def test_link_orders_find_culprits_that_the_luck_of_single_images_hides() -> None:
    own = kdyno_score(LUCKY, COUNT)
    assert (own.right, own.wrong) >= (0.9, 0.0)
    assert own.most_builds <= 12
    assert kdyno_score(LUCKY, COUNT, layouts=0).right < own.right / 2
