"""What --fail-on-regression makes of a report."""

from __future__ import annotations

import pytest

from kdyno.cli.exit_codes import asks_for_regression, bisect_status
from kdyno.judge.stats.verdict import Verdict
from kdyno.judge.verdicts.checks import KernelCheck
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.regression import NoSuchBenchmark, find_regression, require_known
from kdyno.store.records import BootRecord
from tests.unit import specimen


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return specimen.report(tmp_path_factory.mktemp("report"))


def judged(whole: RunReport, **verdicts: Verdict | None) -> RunReport:
    """The report with these verdicts on the first variant, and `equivalent` on all else; __ is a dot."""
    by_name = {name.replace("__", "."): verdict for name, verdict in verdicts.items()}
    comparisons = tuple(
        comparison.model_copy(
            update={
                "verdict": by_name.get(comparison.benchmark, "equivalent")
                if comparison.variant == whole.others[0]
                else "equivalent"
            }
        )
        for comparison in whole.comparisons
    )
    boots = tuple(boot for boot in whole.boots if boot.status == "ok")
    return whole.model_copy(update={"comparisons": comparisons, "boots": boots, "checks": ()})


@pytest.mark.parametrize("verdict", ["slower", "more"])
def test_worse_in_what_was_named_is_a_regression(whole: RunReport, verdict: Verdict) -> None:
    report = judged(whole, lat_sig__catch=verdict)
    for names in ([], ["lat_sig.catch"], ["lat_sig"], ["lat_pipe", "lat_sig"]):
        assert find_regression(report, names) == "regression"
    for names in (["lat_pipe"], ["lat_sig.install"], ["lat"], ["lat_sig.cat"]):
        assert find_regression(report, names) == "none"


@pytest.mark.parametrize("verdict", ["faster", "fewer", "equivalent", "undecided", "higher", "lower"])
def test_what_is_not_shown_to_be_worse_is_none(whole: RunReport, verdict: Verdict) -> None:
    for names in ([], ["lat_pipe"]):
        assert find_regression(judged(whole, lat_pipe__roundtrip=verdict), names) == "none"


def test_a_benchmark_that_was_named_and_has_no_verdict_can_not_be_told(whole: RunReport) -> None:
    report = judged(whole, lat_pipe__roundtrip=None, lat_sig__catch="slower")
    assert find_regression(report, ["lat_pipe"]) == "untestable"
    assert find_regression(judged(whole, lat_pipe__roundtrip=None), []) == "none"
    assert find_regression(report, ["lat_pipe", "lat_sig"]) == "regression"


def test_a_variant_that_never_boots_can_not_be_told_and_one_that_boots_once_can(whole: RunReport) -> None:
    report = judged(whole)

    def died(boot: BootRecord) -> BootRecord:
        return boot.model_copy(update={"status": "failed", "reason": "panic"})

    of_one = [boot for boot in report.boots if boot.variant == whole.others[0]]
    for failing, finding in ((of_one, "untestable"), (of_one[1:], "none")):
        boots = tuple(died(boot) if boot in failing else boot for boot in report.boots)
        changed = report.model_copy(update={"boots": boots})
        assert [find_regression(changed, names) for names in ([], ["lat_pipe"])] == [finding, finding]
    worse = judged(whole, lat_pipe__roundtrip="slower").model_copy(update={"boots": tuple(map(died, report.boots))})
    assert find_regression(worse, ["lat_pipe"]) == "regression"


def test_a_kernel_that_fails_a_kunit_suite_is_a_regression_and_tells_nothing_of_a_benchmark(whole: RunReport) -> None:
    """Nothing of it is judged."""
    check = KernelCheck(
        variant=whole.others[0],
        console=None,
        suites=1,
        tests_passed=1,
        tests_failed=0,
        tests_skipped=0,
        failures=(),
        fault="its boot failed",
        warnings=(),
    )
    report = judged(whole, lat_pipe__roundtrip=None).model_copy(update={"checks": (check,)})
    assert (find_regression(report, []), find_regression(report, ["lat_pipe"])) == ("regression", "untestable")


def test_a_name_that_means_no_benchmark_is_refused_with_the_nearest() -> None:
    require_known(["lat_pipe", "lat_sig", "lat_sig.catch"], ["lat_pipe", "lat_sig.catch"])
    for name in ("lat_pip", "lat", "lat_sig.cat", ""):
        with pytest.raises(NoSuchBenchmark, match=f"names {name}, which is not a benchmark"):
            require_known([name], ["lat_pipe", "lat_sig.catch"])
    with pytest.raises(NoSuchBenchmark) as refused:
        require_known(["x"], [f"b{number}" for number in range(12)])
    assert refused.value.advice.endswith("b8, b9 and 2 more")


def test_codes_that_git_bisect_would_misread_are_moved_to_where_it_stops() -> None:
    assert {status: bisect_status(status) for status in (0, 1, 2, 3, 125, 130)} == {
        0: 0,
        1: 129,
        2: 2,
        3: 131,
        125: 125,
        130: 130,
    }
    assert (bisect_status(None), bisect_status("1")) == (0, 129)


def test_the_option_is_found_however_it_is_written_and_no_other_is_taken_for_it() -> None:
    for word in ("--fail-on-regression", "--fail", "--fail-on-regression=x"):
        assert asks_for_regression(["run", "x.toml", word])
    for words in (["run", "x.toml"], ["validate", "--family", "znver4"], ["boot", "--", "sh"], ["runs", "-f"]):
        assert not asks_for_regression(words)
