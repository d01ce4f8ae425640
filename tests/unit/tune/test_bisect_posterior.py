"""The posterior of a bisection, compared with the definition, and the information of a trial."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import multivariate_normal

from kdyno.tune.bisect.choice import buildable_probability, candidates, information
from kdyno.tune.bisect.evidence import BisectEvidence, Check, Differences, Measure, SameCode
from kdyno.tune.bisect.posterior import PAIR, SINGLE, Posterior

STEPS = 12


def differences(mean: float, blocks: int, spread: float, layouts: int = 0) -> Differences:
    offsets = np.linspace(-1, 1, blocks) if blocks > 1 else np.zeros(1)
    return Differences(tuple(map(float, mean + spread * offsets)), layouts)


@st.composite
def evidences(draw: st.DrawFn) -> BisectEvidence:
    """Measured states with a bad end, perhaps in several link orders; a check between two of them perhaps."""
    evidence = BisectEvidence(STEPS)
    layouts = draw(st.sampled_from([0, 3]))
    effects = st.floats(-0.03, 0.03, allow_subnormal=False)
    blocks = st.integers(1, 6)
    evidence.learn(
        Measure(STEPS, 4), differences(draw(st.floats(0.005, 0.03)), 4, draw(st.floats(1e-4, 5e-3)), layouts)
    )
    for state in draw(st.lists(st.integers(1, STEPS - 1), max_size=5, unique=True)):
        count = draw(blocks)
        evidence.learn(Measure(state, count), differences(draw(effects), count, draw(st.floats(0, 5e-3)), layouts))
    if draw(st.booleans()):
        edges = [0, *sorted(evidence.measured)]
        place = draw(st.integers(0, len(edges) - 2))
        check = Check(edges[place], edges[place + 1], 4)
        evidence.learn(check, Differences(differences(draw(effects), 4, 1e-3).values, 4))
    return evidence


def by_definition(posterior: Posterior, evidence: BisectEvidence) -> np.ndarray:
    """The probability of each step, from the covariance of all measured values under each pair of steps."""
    scale = posterior.scale
    checks = list(evidence.checks.items())
    images = [
        (state, order, values)
        for state in sorted(evidence.measured)
        for order, values in evidence.measured[state].values_by_order().items()
    ]
    values = [float(np.mean(own)) for _, _, own in images] + [check.mean for _, check in checks]
    orders = sorted({order for _, order, _ in images})
    most = [max(len(own) for _, other, own in images if other == order) for order in orders]
    pairs: dict[tuple[int, ...], float] = {(step,): SINGLE / STEPS for step in range(1, STEPS + 1)}
    for first in range(1, STEPS + 1):
        for second in range(1, STEPS + 1):
            is_shared = posterior.interval_of(first) == posterior.interval_of(second)
            key = (first,) if is_shared else (min(first, second), max(first, second))
            pairs[key] = pairs.get(key, 0.0) + PAIR / STEPS**2
    masses = np.zeros(STEPS)
    total = 0.0
    for steps, prior in pairs.items():
        weight, sizes_of_steps = 0.0, np.zeros(len(steps))
        for part in posterior.luck_parts:
            luck = part * scale
            # A change in an interval moves all states from the interval's end on; each order has a level of its own.
            design = np.array(
                [
                    [*(float(order == other) for other in orders), *(float(state >= step) for step in steps)]
                    for state, order, _ in images
                ]
            )
            noise = [luck**2 + posterior.noise**2 / len(own) for _, _, own in images]
            for (before, after), check in checks:
                inside = [float(before < step <= after) for step in steps]
                design = np.vstack([design, [*[0.0] * len(orders), *inside]])
                noise.append(posterior.noise**2 / len(check.values) + 2 * luck**2 / check.layouts)
            levels = [luck**2 + posterior.noise**2 / count for count in most]
            sizes = np.diag([*levels, *[scale**2] * len(steps)])
            covariance = design @ sizes @ design.T + np.diag(noise)
            likelihood = prior * math.exp(multivariate_normal.logpdf(values, cov=covariance, allow_singular=False))
            weight += likelihood
            sizes_of_steps += likelihood * (sizes @ design.T @ np.linalg.solve(covariance, values))[len(orders) :]
        total += weight
        for step, size in zip(steps, sizes_of_steps, strict=True):
            masses[step - 1] += weight * (size > 0)
    return masses / total


@settings(max_examples=15)
@given(evidences())
def test_the_posterior_is_that_of_the_definition(evidence: BisectEvidence) -> None:
    posterior = Posterior(evidence)
    expected = by_definition(posterior, evidence)
    places = np.array([posterior.interval_of(step) for step in range(1, STEPS + 1)])
    spread_over_intervals = np.array([expected[places == place].mean() for place in places])
    assert posterior.step_probabilities() == pytest.approx(spread_over_intervals, abs=1e-6)


@settings(max_examples=50)
@given(evidences())
def test_probabilities_are_probabilities_of_at_most_two_changes(evidence: BisectEvidence) -> None:
    posterior = Posterior(evidence)
    assert posterior.probabilities.sum() == pytest.approx(1.0)
    steps = posterior.step_probabilities()
    assert steps.min() >= 0 and posterior.masses.max() <= 1 + 1e-9
    assert steps.sum() == pytest.approx(posterior.masses.sum())
    assert posterior.masses.sum() <= 2 + 1e-9


@settings(max_examples=30)
@given(evidences(), st.floats(0.5, 20))
def test_the_unit_of_the_effect_does_not_matter(evidence: BisectEvidence, factor: float) -> None:
    scaled = BisectEvidence(STEPS)
    for state, measured in evidence.measured.items():
        scaled.measured[state] = Differences(tuple(factor * value for value in measured.values), measured.layouts)
    for pair, check in evidence.checks.items():
        scaled.checks[pair] = Differences(tuple(factor * value for value in check.values), check.layouts)
    expected = Posterior(evidence).step_probabilities()
    assert Posterior(scaled).step_probabilities() == pytest.approx(expected, abs=1e-6)


def test_a_state_between_good_and_bad_says_nothing_of_the_side_of_the_culprit() -> None:
    evidence = BisectEvidence(STEPS)
    evidence.learn(Measure(STEPS, 4), differences(0.01, 4, 1e-4))
    before = Posterior(evidence).step_probabilities()
    assert before == pytest.approx(np.full(STEPS, before[0]))
    evidence.learn(Measure(6, 1), differences(0.005, 1, 0))
    after = Posterior(evidence).step_probabilities()
    assert after[:6].sum() == pytest.approx(after[6:].sum(), rel=0.05)


def test_more_boots_of_one_state_cannot_overcome_the_luck_of_its_image() -> None:
    def doubt(blocks: int) -> float:
        evidence = BisectEvidence(STEPS)
        for state, effect in ((STEPS, 0.01), (2, 0.003), (4, -0.003), (10, 0.0125)):
            evidence.learn(Measure(state, 16), differences(effect, 16, 1e-4))
        evidence.learn(Measure(6, blocks), differences(0.008, blocks, 1e-4))
        return 1 - float(Posterior(evidence).step_probabilities()[4:6].sum())

    assert doubt(64) == pytest.approx(doubt(16), rel=0.01)


def test_steps_between_states_with_the_same_code_are_not_suspected() -> None:
    evidence = BisectEvidence(STEPS)
    evidence.learn(Measure(STEPS, 4), differences(0.01, 4, 1e-4))
    evidence.learn(Measure(3, 1), differences(0.0, 1, 0))
    evidence.learn(Measure(6, 1), SameCode(3))
    steps = Posterior(evidence).step_probabilities()
    assert steps[:6] == pytest.approx(np.zeros(6), abs=0.02)
    assert steps[3:6].tolist() == [0, 0, 0]
    assert candidates(Posterior(evidence), 1, ()) == [7, 8, 9, 10, 11]


@given(st.lists(st.tuples(st.floats(-5, 5), st.floats(0.01, 1)), min_size=1, max_size=6), st.floats(0.01, 10))
def test_information_is_between_nothing_and_the_entropy_of_the_levels(
    rows: list[tuple[float, float]], noise: float
) -> None:
    levels, weights = (np.array(column) for column in zip(*rows, strict=True))
    parts = weights / weights.sum()
    bits = information(levels, weights, noise)
    assert 0 <= bits <= float(-(parts * np.log2(parts)).sum()) + 0.02


def test_two_levels_far_apart_are_one_bit_and_equal_ones_are_none() -> None:
    halves = np.array([0.5, 0.5])
    assert information(np.array([0.0, 1.0]), halves, 0.01) == pytest.approx(1.0, abs=1e-6)
    assert information(np.array([1.0, 1.0]), halves, 0.01) == 0.0
    noisy = [information(np.array([0.0, 1.0]), halves, noise) for noise in (0.1, 0.3, 1.0, 3.0)]
    assert noisy == sorted(noisy, reverse=True)


def test_neighbours_of_states_that_fail_are_expected_to_fail() -> None:
    assert buildable_probability(5, ()) == 1.0
    assert buildable_probability(5, (4, 20)) == 0.5
    assert buildable_probability(12, (4, 20)) > 0.8


def test_the_numbers_of_link_orders_may_be_any() -> None:
    evidence, far = BisectEvidence(STEPS), BisectEvidence(STEPS)
    values = (0.01, 0.012, 0.009)
    evidence.learn(Measure(STEPS, 3, 3), Differences(values, 3))
    far.learn(Measure(STEPS, 3, 3), Differences(values, 2**30, places=(0, 2**20, 2**29)))
    assert Posterior(far).luck == Posterior(evidence).luck
