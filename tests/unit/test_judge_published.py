"""The published tables of three machines: one of their nine comparisons holds a Q from another row."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.libqsturng import psturng  # type: ignore[import-untyped]

from kdyno.judge.checks.published import Printed, PrintedGroup, check_pair
from kdyno.judge.diagnostics import anova
from kdyno.judge.diagnostics.analysis import analyse
from kdyno.judge.diagnostics.groups import groups_of
from kdyno.judge.observations import Summary
from tests.unit.judge_data import observed

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


def summaries(machine: str) -> dict[str, Summary]:
    return {name: Summary(float(mean), float(sd), 12) for name, (mean, sd) in PUBLISHED[machine].items()}


def test_the_one_wrong_q_is_flagged() -> None:
    check = check_pair(TABLES["5950X"], ("v3", "Zen 3"), "9.6524", "0.8999947")
    assert not check.q_follows
    assert check.p_follows is False
    assert check.q == pytest.approx(0.597, abs=1e-3)
    assert check.sentence == (
        "v3 against Zen 3: Q 9.6524 does not follow from the means and sds, which give 0.597 (0.5594 to 0.6347 with "
        "rounding); p 0.8999947 is not that of Q 9.6524"
    )


def test_a_q_that_belongs_to_another_pair_of_the_table_is_traced_to_it() -> None:
    q = check_pair(TABLES["5950X"], ("generic", "v3"), "0").q
    check = check_pair(TABLES["5950X"], ("v3", "Zen 3"), f"{q:.4f}")
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
        found = check_pair(TABLES[machine], pair, f"{q:.{digits}f}", p)
        assert (found.q_follows, found.p_follows, found.resembles) == (True, True, "")
        assert found.sentence.endswith("follows from the means and sds")


@pytest.mark.parametrize(("machine", "pair"), PAIRS)
def test_the_q_of_any_other_row_is_flagged(machine: str, pair: tuple[str, str]) -> None:
    own = check_pair(TABLES[machine], pair, "0")
    for other_machine, other in PAIRS:
        q = check_pair(TABLES[other_machine], other, "0").q
        if not own.q_low <= q <= own.q_high:
            assert not check_pair(TABLES[machine], pair, f"{q:.4f}").q_follows


def test_a_p_that_is_not_that_of_its_q_is_flagged_though_the_q_is_right() -> None:
    found = check_pair(TABLES["N100"], ("generic", "v3"), "5.5205", "0.02")
    assert (found.q_follows, found.p_follows) == (True, False)
    assert "p 0.02 is not that of Q 5.5205" in found.sentence


def test_a_printed_number_stands_for_all_that_round_to_it() -> None:
    assert Printed("79.800").ends == pytest.approx((79.7995, 79.8005))
    assert Printed("12").ends == (11.5, 12.5)
    assert Printed("1.2e-3").ends == pytest.approx((0.00115, 0.00125))
    assert Printed("-0.5").ends == pytest.approx((-0.55, -0.45))


@pytest.mark.parametrize("machine", PUBLISHED)
def test_variance_and_pairs_are_recomputed_from_the_published_summaries(machine: str) -> None:
    found = analyse(observed(summaries(machine)), "generic", 0.05, 0.01)
    assert found.one_way == anova.one_way(groups_of(observed(summaries(machine))))
    f, p = found.one_way.rows[0].f, found.one_way.rows[0].p
    means = [each.mean for each in summaries(machine).values()]
    variance = np.mean([each.sd**2 for each in summaries(machine).values()])
    assert f is not None
    assert f == pytest.approx(12 * np.var(means, ddof=1) / variance)
    assert p == pytest.approx(stats.f.sf(f, 2, 33))
    tukey = next(table for table in found.pairs if table.method == "tukey")
    assert len(tukey.tests) == 3
    for each in tukey.tests:
        assert each.statistic == pytest.approx(check_pair(TABLES[machine], (each.first, each.second), "0").q)
    alike = {"5950X": "tukey", "i7-4790K": "games-howell", "N100": "tukey"}
    assert found.pairs[0].method == alike[machine]
