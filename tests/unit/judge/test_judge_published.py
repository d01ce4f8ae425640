"""The published tables of three machines: five of nine Qs follow from the means printed beside them."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.libqsturng import psturng  # type: ignore[import-untyped]

from kdyno.base.arrays import Values
from kdyno.judge.stats.checks.published import Printed, PrintedGroup, Recomputed, check_pair, group_of, summary_errors
from kdyno.judge.stats.diagnostics import anova
from kdyno.judge.stats.diagnostics.analysis import analyse
from kdyno.judge.stats.diagnostics.groups import groups_of
from kdyno.judge.stats.observations import Summary
from tests.unit.judge_data import STATISTICS, observed

PUBLISHED = {
    "5950X": {"generic": ("79.800", "0.1076"), "v3": ("79.456", "0.0772"), "Zen 3": ("79.440", "0.0912")},
    "i7-4790K": {"generic": ("344.280", "0.6455"), "v3": ("342.035", "0.4971"), "Haswell": ("342.189", "0.2415")},
    "N100": {"generic": ("589.457", "0.1596"), "v3": ("589.217", "0.1382"), "Alder Lake": ("588.797", "0.1532")},
}
TABLES = {
    machine: {name: PrintedGroup(Printed(mean), Printed(sd), 12) for name, (mean, sd) in groups.items()}
    for machine, groups in PUBLISHED.items()
}
PAIRS = [(machine, pair) for machine, groups in TABLES.items() for pair in combinations(groups, 2)]


def q_of(machine: str, pair: tuple[str, str]) -> Recomputed:
    """What the published means give."""
    own = check_pair(pair, "0", means=TABLES[machine]).from_means
    assert own is not None
    return own


def summaries(machine: str) -> dict[str, Summary]:
    return {name: Summary(float(mean), float(sd), 12) for name, (mean, sd) in PUBLISHED[machine].items()}


def test_the_one_wrong_q_is_flagged() -> None:
    check = check_pair(("v3", "Zen 3"), "9.6524", "0.8999947", means=TABLES["5950X"])
    assert not check.q_follows
    assert check.p_follows is False
    assert q_of("5950X", ("v3", "Zen 3")).q == pytest.approx(0.597, abs=1e-3)
    assert check.sentence == (
        "v3 against Zen 3: Q 9.6524 does not follow from the means and sds, which give 0.597 (0.5594 to 0.6347 with "
        "rounding); p 0.8999947 is not that of Q 9.6524, but of Q 0.597"
    )


def test_five_of_the_nine_published_qs_follow_from_their_means_and_all_but_one_p_from_its_q() -> None:
    checks = {
        (machine, pair): check_pair(pair, q, p, means=TABLES[machine])
        for (machine, pair), (q, p) in zip(PAIRS, STATISTICS, strict=True)
    }
    wrong = {key for key, check in checks.items() if not check.q_follows}
    assert wrong == {("5950X", ("v3", "Zen 3")), *(key for key in PAIRS if key[0] == "i7-4790K")}
    assert [key for key, check in checks.items() if not check.p_follows] == [("5950X", ("v3", "Zen 3"))]


def twelve(mean: float, sd: float) -> Values:
    """Twelve values with exactly this mean and standard deviation."""
    steps = np.arange(12) - 5.5
    return np.asarray(mean + sd * steps / np.std(steps, ddof=1))


def test_values_come_to_their_mean_and_sd_as_exactly_as_they_were_rounded() -> None:
    exact = group_of(twelve(344.113, 0.328))
    assert exact.mean.ends == pytest.approx((344.113, 344.113), rel=1e-12)
    assert exact.sd.ends == pytest.approx((0.328, 0.328), rel=1e-9)
    rounded = group_of(np.round(twelve(344.113, 0.328), 1), 0.1)
    assert rounded.mean.ends[0] <= 344.113 <= rounded.mean.ends[1]
    assert rounded.sd.ends[0] <= 0.328 <= rounded.sd.ends[1]
    assert group_of(np.array([5.0])).n == 1


@pytest.mark.parametrize(
    ("mean", "sd", "n", "says"),
    [
        ("344.113", "0.328", 12, ""),
        ("344.11", "0.33", 12, ""),
        ("344.112", "0.3279", 12, ""),  # cut, or rounded twice
        ("344.280", "0.6455", 12, "mean 344.280 (sd 0.6455) is not that of the values, 344.113 (0.3280)"),
        ("344.280", "0.328", 12, "mean 344.280 is not that of the values, 344.113"),
        ("344.113", "0.6455", 12, "sd 0.6455 is not that of the values, 0.3280"),
        ("344.113", "0.09469", 12, "sd 0.09469 is not that of the values, 0.32800, but their standard error"),
        (
            "344.113",
            "0.31404",
            12,
            "sd 0.31404 is not that of the values, 0.32800, but with n instead of n - 1 in the denominator",
        ),
        ("344.113", "0.328", 10, "n 10 is not the number of values, 12"),
        ("3.4e2", "0.328", 12, ""),
    ],
)
def test_a_printed_summary_is_held_against_the_values(mean: str, sd: str, n: int, says: str) -> None:
    assert summary_errors(PrintedGroup(Printed(mean), Printed(sd), n), group_of(twelve(344.113, 0.328))) == says


I7 = {
    "generic": group_of(twelve(344.113, 0.328)),
    "v3": group_of(twelve(341.8689, 0.22402)),
    "Haswell": group_of(twelve(342.189, 0.2415)),
}
"""The published values' means and sds; those of v3 as the three published Qs and the other two imply."""


@pytest.mark.parametrize(("pair", "q"), [(("generic", "v3"), "28.965"), (("v3", "Haswell"), "4.132")])
def test_with_the_values_the_summary_is_found_to_be_wrong_and_not_the_statistic(pair: tuple[str, str], q: str) -> None:
    check = check_pair(pair, q, means=TABLES["i7-4790K"], values=I7)
    assert check.from_means is not None
    assert check.from_values is not None
    assert (check.from_means.follows, check.from_values.follows) == (False, True)
    assert f"Q {q} follows from the values, not from the means and sds, which give" in check.sentence
    assert check.sentence.endswith("with rounding): the summary is wrong, not the statistic")
    alone = check_pair(pair, q, values=I7)
    assert alone.sentence == f"{pair[0]} against {pair[1]}: follows from the values"


def test_with_the_values_the_statistic_is_found_to_be_wrong_and_not_the_summary() -> None:
    values = {name: group_of(twelve(group.mean.value, group.sd.value)) for name, group in TABLES["5950X"].items()}
    check = check_pair(("v3", "Zen 3"), "9.6524", means=TABLES["5950X"], values=values)
    assert not check.q_follows
    assert check.sentence.endswith("nor from the values, which give 0.597033: the statistic is wrong")
    alone = check_pair(("v3", "Zen 3"), "9.6524", values=values)
    assert "Q 9.6524 does not follow from the values, which give 0.597033" in alone.sentence


def test_a_statistic_made_from_a_wrong_summary_is_told_from_one_of_other_values() -> None:
    table = TABLES["i7-4790K"]
    made = check_pair(("generic", "v3"), "15.851", means=table, values=I7)
    assert "Q 15.851 follows from the means and sds, not from the values, which give 28.96" in made.sentence
    assert made.sentence.endswith(": it was made from a wrong summary")
    neither = check_pair(("generic", "v3"), "7.5", means=table, values=I7)
    assert neither.sentence.endswith(": neither it nor the summary matches these values")
    both = check_pair(("v3", "Haswell"), "1.1", means=table, values=dict(table))
    assert both.sentence == "v3 against Haswell: follows from the means and sds and the values"


def test_a_q_that_belongs_to_another_pair_of_the_table_is_traced_to_it() -> None:
    q = q_of("5950X", ("generic", "v3")).q
    check = check_pair(("v3", "Zen 3"), f"{q:.4f}", means=TABLES["5950X"])
    assert check.resembles == "generic against v3"
    assert "; it would fit generic against v3" in check.sentence


@pytest.mark.parametrize(("machine", "pair"), PAIRS)
@pytest.mark.parametrize("digits", [2, 4])
def test_what_follows_is_not_flagged_whoever_computed_it(machine: str, pair: tuple[str, str], digits: int) -> None:
    table = {name: (float(mean), float(sd)) for name, (mean, sd) in PUBLISHED[machine].items()}
    variance = np.mean([sd**2 for _, sd in table.values()])
    q = abs(table[pair[0]][0] - table[pair[1]][0]) / np.sqrt(variance / 12)
    exact, interpolated = stats.studentized_range.sf(q, 3, 33), float(np.ravel(psturng(q, 3, 33))[0])
    for p in (f"{exact:.{digits}f}", f"{exact:.3g}", f"{interpolated:.7f}"):
        checked = check_pair(pair, f"{q:.{digits}f}", p, means=TABLES[machine])
        assert (checked.q_follows, checked.p_follows, checked.resembles) == (True, True, "")
        assert checked.sentence.endswith("follows from the means and sds")


@pytest.mark.parametrize(("machine", "pair"), PAIRS)
def test_the_q_of_any_other_row_is_flagged(machine: str, pair: tuple[str, str]) -> None:
    own = q_of(machine, pair)
    for other_machine, other in PAIRS:
        q = q_of(other_machine, other).q
        if not own.low <= q <= own.high:
            assert not check_pair(pair, f"{q:.4f}", means=TABLES[machine]).q_follows


def test_a_p_that_is_not_that_of_its_q_is_flagged_though_the_q_is_right() -> None:
    checked = check_pair(("generic", "v3"), "5.5205", "0.02", means=TABLES["N100"])
    assert (checked.q_follows, checked.p_follows) == (True, False)
    assert "p 0.02 is not that of Q 5.5205" in checked.sentence


def test_a_printed_number_stands_for_all_that_round_to_it() -> None:
    assert Printed("79.800").ends == pytest.approx((79.7995, 79.8005))
    assert Printed("12").ends == (11.5, 12.5)
    assert Printed("1.2e-3").ends == pytest.approx((0.00115, 0.00125))
    assert Printed("-0.5").ends == pytest.approx((-0.55, -0.45))


@pytest.mark.parametrize("machine", PUBLISHED)
def test_variance_and_pairs_are_recomputed_from_the_published_summaries(machine: str) -> None:
    analysis = analyse(observed(summaries(machine)), "generic", 0.05, 0.01)
    assert analysis.one_way == anova.one_way(groups_of(observed(summaries(machine))))
    f, p = analysis.one_way.rows[0].f, analysis.one_way.rows[0].p
    means = [summary.mean for summary in summaries(machine).values()]
    variance = np.mean([summary.sd**2 for summary in summaries(machine).values()])
    assert f is not None
    assert f == pytest.approx(12 * np.var(means, ddof=1) / variance)
    assert p == pytest.approx(stats.f.sf(f, 2, 33))
    tukey = next(table for table in analysis.pairs if table.method == "tukey")
    assert len(tukey.tests) == 3
    for test in tukey.tests:
        assert test.statistic == pytest.approx(q_of(machine, (test.first, test.second)).q)
    alike = {"5950X": "tukey", "i7-4790K": "games-howell", "N100": "tukey"}
    assert analysis.pairs[0].method == alike[machine]
