"""Analysis of variance, comparisons of pairs and what they assume: against scipy, statsmodels and the definitions."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pytest
import statsmodels.api as sm  # type: ignore[import-untyped]
import statsmodels.formula.api as smf  # type: ignore[import-untyped]
from scipy import stats

from kdyno.base.arrays import Values
from kdyno.judge.stats.diagnostics import anova, many_to_one, reml, studentized
from kdyno.judge.stats.diagnostics.analysis import analyse
from kdyno.judge.stats.diagnostics.blocks import block_values
from kdyno.judge.stats.diagnostics.groups import groups_of, pool_noise
from kdyno.judge.stats.diagnostics.pairwise import dunnett, games_howell, tukey
from kdyno.judge.stats.diagnostics.tables import Analysis, AnovaTable, PairTable
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary
from tests.unit.judge_data import apart, noisy, observed, sample
from tests.unit.judge_data import in_blocks as complete


def analysed(benchmark: Observations) -> Analysis:
    analysis = analyse(benchmark, "base", 0.05, 0.01)
    json.loads(json.dumps(analysis.model_dump(mode="json"), allow_nan=False))
    return analysis


def ragged() -> Observations:
    random = np.random.default_rng(1)
    sizes = {"base": 12, "v": 10, "w": 14}
    return apart({name: random.lognormal(0.02 * i, 0.03, n) for i, (name, n) in enumerate(sizes.items())})


def with_a_hole() -> Observations:
    full = noisy(2, 0.01, 0.02)
    groups = {name: group for name, group in full.groups.items() if isinstance(group, ReplicateSample)}
    kept = np.arange(12) != 4
    v1 = groups["v1"]
    assert v1.blocks is not None
    assert v1.order is not None
    return observed({**groups, "v1": ReplicateSample(v1.values[kept], v1.blocks[kept], v1.order[kept])})


def logs(benchmark: Observations) -> list[Values]:
    return [np.log(group.values) for group in benchmark.groups.values() if isinstance(group, ReplicateSample)]


def row(table: AnovaTable | None, source: str) -> tuple[float | None, ...]:
    assert table
    [of_source] = (row for row in table.rows if row.source == source)
    return of_source.df, of_source.sum_of_squares, of_source.f, of_source.p


def test_one_way_is_the_f_test_of_scipy() -> None:
    expected = stats.f_oneway(*logs(ragged()))
    df, _, f, p = row(anova.one_way(groups_of(ragged())), "variant")
    assert (df, f, p) == pytest.approx((2, expected.statistic, expected.pvalue))


def test_welch_does_without_equal_spreads() -> None:
    expected = stats.f_oneway(*logs(ragged()), equal_var=False)
    _, _, f, p = row(anova.welch(groups_of(ragged())), "variant")
    assert (f, p) == pytest.approx((expected.statistic, expected.pvalue))


@pytest.mark.parametrize("benchmark", [noisy(3, 0.01, 0.02), with_a_hole()], ids=["complete", "with a hole"])
def test_the_blocked_table_is_that_of_statsmodels_with_sums_of_type_two(benchmark: Observations) -> None:
    rows = [
        (name, block, float(np.log(value)))
        for name, group in benchmark.groups.items()
        if isinstance(group, ReplicateSample) and group.blocks is not None
        for block, value in zip(group.blocks, group.values, strict=True)
    ]
    fit = smf.ols("y ~ v + C(b)", pd.DataFrame(rows, columns=["v", "b", "y"])).fit()
    expected = sm.stats.anova_lm(fit, typ=2)
    table = block_values(benchmark)
    assert table
    blocked = anova.blocked_anova(table)
    for source, name in (("variant", "v"), ("block", "C(b)")):
        want = expected.loc[name]
        assert row(blocked, source) == pytest.approx((want["df"], want["sum_sq"], want["F"], want["PR(>F)"]))
    assert row(blocked, "residual")[:2] == pytest.approx(tuple(expected.loc["Residual"][["df", "sum_sq"]]))


def test_blocks_take_out_what_they_share() -> None:
    analysis = analysed(noisy(4, 0.015, 0.0))
    p_blocked, p_one_way = row(analysis.blocked, "variant")[3], row(analysis.one_way, "variant")[3]
    assert p_blocked is not None
    assert p_one_way is not None
    assert p_blocked < 0.01 < p_one_way
    assert analysis.blocked
    assert analysis.blocked.omega_squared
    assert analysis.one_way.omega_squared is not None
    assert analysis.blocked.omega_squared > analysis.one_way.omega_squared


def test_all_pairs_are_those_of_scipy() -> None:
    groups = groups_of(ragged())
    noise = pool_noise(groups)
    assert noise
    _same(tukey(groups, "log", 0.05, noise), stats.tukey_hsd(*logs(ragged())))
    _same(games_howell(groups, "log", 0.05), stats.tukey_hsd(*logs(ragged()), equal_var=False))


def _same(table: PairTable, expected: Any) -> None:
    indices = {"base": 0, "v": 1, "w": 2}
    interval = expected.confidence_interval(0.95)
    for test in table.tests:
        at = indices[test.first], indices[test.second]
        assert test.p == pytest.approx(expected.pvalue[at], abs=1e-9)
        assert (test.low, test.high) == pytest.approx((interval.low[at], interval.high[at]), abs=1e-6)
        assert test.ratio == pytest.approx(np.exp(test.difference))


def test_dunnett_against_the_baseline_is_that_of_scipy() -> None:
    base, v, w = logs(ragged())
    expected = stats.dunnett(v, w, control=base, rng=np.random.default_rng(1))
    interval = expected.confidence_interval(0.95)
    result = dunnett(groups_of(ragged()), "base", "log", 0.05)
    assert result
    assert [test.statistic for test in result.tests] == pytest.approx(expected.statistic)
    assert [test.p for test in result.tests] == pytest.approx(expected.pvalue, abs=5e-4)
    assert [test.low for test in result.tests] == pytest.approx(interval.low, abs=5e-4)


@pytest.mark.parametrize(("q", "k", "df"), [(3.5, 3, 33), (0.6, 3, 33), (12, 3, 18.2), (3, 4, 2), (3, 8, 1000)])
def test_the_studentized_range_is_that_of_scipy(q: float, k: int, df: float) -> None:
    assert studentized.tail(q, k, df) == pytest.approx(stats.studentized_range.sf(q, k, df), abs=1e-6)


@pytest.mark.parametrize("k", [2, 3, 12, 20])
@pytest.mark.parametrize("df", [1.0, 2.7, 21.4, 1e4])
def test_the_studentized_range_is_its_double_integral(k: int, df: float) -> None:
    """The integral that a spline stands for: over the spread, and for each over the smallest of the means."""
    for q in (0.0, 0.3, 2.1, 3.63, 7.7, 40.0):
        spreads, weights = studentized.errors(df)
        smallest = 9 * studentized.MEANS[0]
        density = 9 * studentized.MEANS[1] * stats.norm.pdf(smallest)
        inside = stats.norm.cdf(smallest + q * spreads[:, None]) - stats.norm.cdf(smallest)
        integral = float(weights @ (1 - k * inside ** (k - 1) @ density))
        assert studentized.tail(q, k, df) == pytest.approx(min(1.0, max(0.0, integral)), abs=1e-12)


def test_the_table_that_fits_the_spreads_comes_first() -> None:
    alike = analysed(noisy(5, 0.01, 0.02)).pairs
    assert [table.method for table in alike] == ["tukey", "games-howell"]
    assert "alike; within blocks" in alike[0].reason
    random = np.random.default_rng(6)
    wild = apart({"base": random.lognormal(0, 0.01, 9), "v": random.lognormal(0, 0.05, 9), "w": [1.0, 1.01, 0.99]})
    unlike = analysed(wild).pairs
    assert [table.method for table in unlike] == ["games-howell", "tukey"]
    assert "not alike" in unlike[0].reason


@pytest.mark.parametrize(("k", "control", "df"), [(2, 12, 33), (7, 12, 77), (3, 40, 5), (5, 12, 1)])
def test_dunnetts_chance_is_that_of_the_multivariate_t(k: int, control: int, df: int) -> None:
    sizes = tuple(12 - i for i in range(k))
    loads = np.sqrt([n / (n + control) for n in sizes])
    shape = np.outer(loads, loads)
    np.fill_diagonal(shape, 1.0)
    for t in (0.5, 2.5, 6.0):
        ends = np.full(k, t)
        inside = stats.multivariate_t.cdf(ends, shape=shape, df=df, lower_limit=-ends, random_state=1, maxpts=100_000)
        assert many_to_one.tail(t, sizes, control, df) == pytest.approx(1 - inside, abs=3e-4)


@pytest.mark.parametrize("k", [1, 2, 40, 300])
def test_dunnetts_quantile_is_exceeded_by_none_in_95_of_a_hundred_runs(k: int) -> None:
    t = many_to_one.quantile(0.95, (12,) * k, 12, 12 * k)
    random = np.random.default_rng(12)
    spread = np.sqrt(random.chisquare(12 * k, 20_000) / (12 * k))
    control = random.normal(0, 1, 20_000)
    largest = np.max([np.abs(random.normal(0, 1, 20_000) - control) for _ in range(k)], axis=0)
    assert np.mean(largest / (2**0.5 * spread) < t) == pytest.approx(0.95, abs=0.005)


def test_more_than_twenty_variants_are_all_compared_with_the_baseline_and_the_table_of_pairs_says_why_it_is_none() -> (
    None
):
    analysis = analysed(noisy(13, *[0.0] * 24, 0.03))
    assert analysis.dunnett
    assert [test.first for test in analysis.dunnett.tests] == [f"v{i}" for i in range(1, 26)]
    last = analysis.dunnett.tests[-1]
    assert last.low < np.log(1.03) < last.high
    assert last.p < 0.001
    [pairs] = analysis.pairs
    assert (pairs.tests, pairs.reason) == (
        (),
        "not made: 26 variants are 325 pairs; it is made for up to 20 variants",
    )


def test_two_variants_have_no_table_of_pairs() -> None:
    assert analysed(noisy(7, 0.01)).pairs == ()


def test_a_drift_over_the_run_is_seen() -> None:
    random = np.random.default_rng(8)
    drifting = {
        name: 100 * np.exp(0.002 * (3 * np.arange(20) + i) + random.normal(0, 0.002, 20))
        for i, name in enumerate(("base", "v", "w"))
    }
    result = analysed(complete(drifting)).assumptions
    assert result
    assert result.drift == pytest.approx(np.expm1(0.2), abs=0.02)
    assert result.drift_p is not None
    assert result.drift_p < 1e-6
    assert result.autocorrelation is not None
    assert result.autocorrelation > 0.5
    assert len(result.residuals) == 60
    quiet = analysed(noisy(9, 0.0, blocks=40)).assumptions
    assert quiet
    assert quiet.drift_p is not None
    assert quiet.drift_p > 0.01


def test_the_mixed_model_is_fitted_where_boots_are_missing_and_finds_the_effects() -> None:
    assert analysed(noisy(2, 0.01, 0.02)).mixed is None
    result = analysed(with_a_hole()).mixed
    assert result
    assert result.converged
    one, two = result.effects
    assert (one.variant, two.variant) == ("v1", "v2")
    assert one.low < 1.01 < one.high
    assert two.low < 1.02 < two.high


def test_the_mixed_models_effects_and_errors_are_those_of_statsmodels_and_its_intervals_those_of_t() -> None:
    benchmark = with_a_hole()
    table = block_values(benchmark)
    assert table
    frame = pd.DataFrame({"y": 1000 * table.logs, "v": table.variants, "b": table.blocks})
    expected = smf.mixedlm("y ~ C(v)", frame, groups="b").fit(reml=True)
    result = analysed(benchmark).mixed
    assert result
    # 35 values less 12 blocks and 2 effects
    reach = stats.t.ppf(0.975, 21)
    for place, effect in enumerate(result.effects, 1):
        assert 1000 * np.log(effect.ratio) == pytest.approx(expected.fe_params.iloc[place], rel=1e-3)
        error = np.log(effect.high / effect.low) / 2 / reach
        assert 1000 * error == pytest.approx(expected.bse_fe.iloc[place], rel=1e-2)
        assert effect.p == pytest.approx(2 * stats.t.sf(abs(np.log(effect.ratio)) / error, 21))


def test_blocks_that_explain_nothing_leave_the_fit_of_least_squares() -> None:
    values = np.array([1.0, 3.0, 2.0, 2.0, 3.0, 1.0, 2.0])
    variants, blocks = np.array([0, 1, 0, 1, 0, 1, 0]), np.array([0, 0, 1, 1, 2, 2, 3])
    design = np.column_stack([np.ones(7), variants]).astype(float)
    fit = reml.fit_reml(values, design, [blocks])
    least = sm.OLS(values, design).fit()
    assert fit.converged
    assert fit.effects == pytest.approx(least.params)
    assert fit.errors == pytest.approx(least.bse)


def test_a_run_without_a_value_too_many_has_no_mixed_model_and_says_why() -> None:
    result = analysed(observed({"base": sample([1.0, 1.1], [0, 1]), "v": sample([1.2], [0])})).mixed
    assert result
    assert (result.effects, result.reason) == ((), "too few values: variants and blocks explain all of them")


def test_layouts_widen_the_mixed_model() -> None:
    random = np.random.default_rng(10)
    labels = np.arange(16) % 4
    shifts = {name: random.normal(0, 0.02, 4)[labels] for name in ("base", "v")}
    groups = {
        name: sample(100 * np.exp(shift + random.normal(0, 0.002, 16)), range(16), labels.tolist())
        for name, shift in shifts.items()
    }
    kept = np.arange(16) != 3
    v = groups["v"]
    assert v.blocks is not None
    groups["v"] = ReplicateSample(v.values[kept], v.blocks[kept], None, labels[kept])
    without = {name: ReplicateSample(group.values, group.blocks) for name, group in groups.items()}
    wide, narrow = (analysed(observed(groups_)).mixed for groups_ in (groups, without))
    assert wide
    assert narrow
    assert wide.effects[0].high - wide.effects[0].low > 1.5 * (narrow.effects[0].high - narrow.effects[0].low)


def test_with_layouts_the_tables_have_layouts_for_replicates() -> None:
    groups = {
        name: sample(random.lognormal(0, 0.02, 12), range(12), [0, 1, 2] * 4)
        for name, random in ((name, np.random.default_rng(i)) for i, name in enumerate(("base", "v", "w")))
    }
    analysis = analysed(observed(groups))
    assert row(analysis.one_way, "residual")[0] == 6
    assert row(analysis.blocked, "residual")[0] == 4
    assert [group.n for group in analysis.groups] == [12, 12, 12]


def test_summaries_make_the_tables_that_their_values_make() -> None:
    random = np.random.default_rng(11)
    values = {name: random.normal(100 + i, 1, 12) for i, name in enumerate(("base", "v", "w"))}
    analysis = analysed(
        observed({name: Summary(float(value.mean()), float(value.std(ddof=1)), 12) for name, value in values.items()})
    )
    expected = stats.f_oneway(*values.values())
    assert row(analysis.one_way, "variant")[2:] == pytest.approx((expected.statistic, expected.pvalue))
    assert (analysis.scale, analysis.assumptions, analysis.blocked, analysis.mixed) == ("raw", None, None, None)
    tukeys = stats.tukey_hsd(*values.values())
    assert analysis.pairs[0].tests[0].p == pytest.approx(tukeys.pvalue[0, 1], abs=1e-9)
    assert len(analysis.power) == 2


@pytest.mark.parametrize(
    ("benchmark", "reason"),
    [
        (observed({}), "fewer than two variants"),
        (apart({"base": [1.0, 2.0]}), "fewer than two variants"),
        (apart({"base": [1.0], "v": [2.0], "w": [3.0]}), "single values: no spread known"),
        (complete({"base": [5.0] * 4, "v": [5.0] * 4, "w": [6.0] * 4}), "all values of each variant agree"),
        (complete({"base": [5.0], "v": [6.0]}), "single values"),
    ],
)
def test_data_without_noise_leave_tables_out_and_say_why(benchmark: Observations, reason: str) -> None:
    analysis = analysed(benchmark)
    assert analysis.reason.startswith(reason)
    assert (analysis.one_way.rows, analysis.pairs, analysis.power) == ((), (), ())


@pytest.mark.parametrize(
    "benchmark",
    [
        complete({"base": [5.0, 6.0], "v": [5.0, 6.0], "w": [5.0, 6.0]}),
        complete({"base": [5.0, 5.0, 5.0], "v": [5.0, 5.0, 6.0], "w": [5.0, 5.0, 5.0]}),
        observed({"base": sample([1.0, 2.0], [0, 1]), "v": sample([1.0, 2.0], [2, 3])}),
        observed({"base": sample([1.0, 2.0], [0, 1]), "v": sample([1.5], [1])}),
        apart({"base": [1.0, 1.0, 1.0], "v": [1.0, 1.1, 1.2], "w": [2.0]}),
        observed({"base": Summary(5, 0, 12), "v": Summary(6, 0, 12), "w": Summary(6, 0.1, 2)}),
        complete({"base": [1e-300, 1e300, 1.0], "v": [1e300, 1e-300, 1.0], "w": [1.0, 1.0, 1.0]}),
    ],
)
def test_odd_data_give_tables_without_infinities(benchmark: Observations) -> None:
    assert analysed(benchmark).one_way.kind == "one-way"
