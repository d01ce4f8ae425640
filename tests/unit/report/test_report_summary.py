from __future__ import annotations

from dataclasses import replace

import pytest

from kdyno.judge.stats.verdict import Verdict
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.rows import VerdictRow
from kdyno.report.notes import sentence_lines
from kdyno.report.summary import summary_line, summary_lines
from tests.unit import specimen
from tests.unit.report.test_report_layout import row
from tests.unit.report.test_report_terminal import shown


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return specimen.report(tmp_path_factory.mktemp("summary"))


def mean(effect: str, verdict: Verdict, unit: str = "speed") -> VerdictRow:
    return replace(row("geometric mean (4)", verdict=verdict, unit=unit), is_mean=True, effect=effect)


def line(report: RunReport, *rows: VerdictRow) -> str:
    return summary_line(report, "gcc-12-O3", rows).removeprefix("gcc-12-O3 (these images): ")


def test_there_is_a_line_for_each_variant_but_the_baseline(report: RunReport) -> None:
    assert [text.partition(" ")[0] for text in summary_lines(report)] == ["gcc-12-O3", "clang-19-thinlto"]


def test_counts_come_in_the_order_better_worse_equivalent_undecided(report: RunReport) -> None:
    verdicts: list[Verdict] = ["undecided", "slower", "equivalent", "faster", "undecided", "faster"]
    rows = [row(str(number), verdict=verdict) for number, verdict in enumerate(verdicts)]
    text = line(report, *rows, mean("+2.7 %", "faster"))
    assert text == "2 faster, 1 slower, 1 equivalent, 2 undecided; mean +2.7 %, faster"


def test_the_mean_of_counts_names_its_quantity_and_counts_are_called_better_and_worse(report: RunReport) -> None:
    rows = [row("a", verdict="more"), row("b", verdict="fewer"), row("c", verdict="better")]
    text = line(report, *rows, mean("-0.29 %", "equivalent", "work/instr"))
    assert text == "2 better, 1 worse; mean work/instr -0.29 %, equivalent"


def test_what_has_no_verdict_is_counted_as_not_compared(report: RunReport) -> None:
    rows = [replace(row(name), verdict="", verdict_shown="", effect="") for name in "ab"]
    assert line(report, *rows, row("c")) == "1 faster, 2 not compared"


def test_a_mean_without_a_verdict_is_called_not_judged(report: RunReport) -> None:
    unjudged = replace(mean("+0.38 %", "faster"), verdict="", verdict_shown="")
    assert line(report, row("a"), row("b"), unjudged) == "2 faster; mean +0.38 %, not judged"


def test_one_benchmark_is_named_with_its_effect(report: RunReport) -> None:
    assert line(report, row("lat_pipe")) == "lat_pipe -9.0 %, faster"


def skewed(name: str) -> VerdictRow:
    return replace(row(name), caution="the differences are skewed")


def caution(one: VerdictRow) -> str:
    return one.caution


def test_a_sentence_on_rows_of_several_variants_is_said_once() -> None:
    tables = {"O3": [skewed("a"), row("b")], "Os": [skewed("a"), skewed("b")]}
    assert sentence_lines(tables, caution) == ["the differences are skewed:", "  O3: a", "  Os: a, b"]


def test_a_sentence_on_the_same_rows_of_all_variants_names_no_variant() -> None:
    assert sentence_lines({"O3": [skewed("a")], "Os": [skewed("a")]}, caution) == ["a: the differences are skewed"]
    assert sentence_lines({"O3": [skewed("a")]}, caution) == ["a: the differences are skewed"]


def test_a_sentence_on_one_of_several_variants_names_it() -> None:
    assert sentence_lines({"O3": [row("a")], "Os": [skewed("a")]}, caution) == ["Os, a: the differences are skewed"]


def test_a_sentence_on_all_rows_of_a_table_names_none_of_them() -> None:
    rows = [skewed(name) for name in "abcdef"]
    own_mean = replace(mean("0 %", "equivalent"), caution="the differences are skewed")
    assert sentence_lines({"O3": rows}, caution) == ["all 6 benchmarks: the differences are skewed"]
    assert sentence_lines({"O3": [*rows, own_mean]}, caution) == [
        "all 6 benchmarks and their mean: the differences are skewed"
    ]


def test_rows_without_a_sentence_have_no_line() -> None:
    assert sentence_lines({"O3": [row("a")]}, caution) == []


def test_a_report_on_a_narrow_page_has_all_rows_and_says_what_is_left_out(report: RunReport) -> None:
    lines = shown(report, 60)
    rows = [text for text in lines if text.startswith(("lat_", "bw_"))]
    assert len(set(rows)) == len(rows) == 2 * 35
    assert max(map(len, lines)) <= 60
    assert "no space for baseline, bars, sees" in " ".join(" ".join(lines).split())
    assert "bars: gains" not in "\n".join(lines)
    assert "sees: the" not in "\n".join(lines)
