"""The tables behind a verdict, as rows of text."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from kdyno.judge.verdicts.model import FileReport
from kdyno.report.grids import grids, sentences
from kdyno.report.tables import NotAnalysed, render_analysis
from kdyno.report.terminal import render
from tests.unit import foreign_specimen as specimen


@pytest.fixture(scope="module")
def summaries() -> FileReport:
    return specimen.summaries()


@pytest.fixture(scope="module")
def values() -> FileReport:
    return specimen.values()


def shown(report: FileReport, benchmark: str | None = None) -> str:
    out = io.StringIO()
    render_analysis(report, Console(file=out, width=140), benchmark)
    return out.getvalue()


def test_effects_come_first_and_p_values_last_in_every_table(values: FileReport) -> None:
    for grid in grids(values, values.analyses[0]):
        titles = [title for title in grid.columns if title == "p" or title.startswith("p ")]
        assert tuple(titles) == grid.columns[len(grid.columns) - len(titles) :]


def test_the_published_machines_have_their_analysis_of_variance_and_all_pairs(summaries: FileReport) -> None:
    [ryzen] = [analysis for analysis in summaries.analyses if analysis.benchmark == "Ryzen 5950X"]
    by_title = {grid.title: grid for grid in grids(summaries, ryzen)}
    one_way = by_title["Analysis of variance"].rows[0]
    assert one_way[:2] == ("one-way", "variant")
    assert one_way[3] == "2"
    assert one_way[-1] == "< 0.0001"
    tukey = by_title["All pairs: Tukey HSD"]
    [pair] = [row for row in tukey.rows if set(row[0].split(" / ")) == {"x86-64-v3", "Zen 3"}]
    assert float(pair[-2]) < 1  # 9.6524 was published
    assert float(pair[-1]) > 0.8


def test_columns_that_summaries_cannot_fill_are_left_out(summaries: FileReport) -> None:
    by_title = {grid.title: grid for grid in grids(summaries, summaries.analyses[0])}
    assert by_title["Values"].columns == ("variant", "n", "mean, s", "sd", "sd, % of mean")
    assert "by bootstrap" not in by_title["Against generic"].columns
    assert all(len(row) == len(grid.columns) for grid in by_title.values() for row in grid.rows)


def test_each_variant_has_its_sentence(values: FileReport) -> None:
    [sentence] = sentences(values, "pipe")
    assert sentence.startswith("tuned: pipe latency ")
    assert "could have seen" in sentence


def test_blocked_values_have_a_blocked_analysis_and_their_assumptions(values: FileReport) -> None:
    text = shown(values, "pipe")
    for words in ("with blocks", "Shapiro-Wilk W", "Brown-Forsythe F", "trend over the order", "by bootstrap"):
        assert words in text


def test_a_benchmark_that_is_not_there_is_named_with_its_nearest(values: FileReport) -> None:
    with pytest.raises(NotAnalysed, match="unknown benchmark pipes") as raised:
        render_analysis(values, Console(file=io.StringIO()), "pipes")
    assert raised.value.advice == "did you mean pipe?"


def test_a_file_is_printed_without_the_tables_behind_its_verdicts(summaries: FileReport) -> None:
    out = io.StringIO()
    render(summaries, Console(file=out, width=120))
    lines = out.getvalue().splitlines()
    assert lines[0] == "x86-64-v3: 3 equivalent; mean +0.38 %, not judged"
    assert lines[1] == "Zen 3: 1 equivalent, 2 not compared"
    assert "a summary table: mean, standard deviation and n, in seconds" in lines
    assert "compiler_patch.csv: a summary table" in lines
    assert "note: nothing says how many boots these values come from" in lines
    assert "Analysis of variance" not in out.getvalue()
    assert max(map(len, lines)) <= 120


def test_hostile_names_do_not_steer_the_terminal(values: FileReport) -> None:
    text = values.model_dump_json().replace('"pipe"', '"pi[red]pe\\u001b[2J"').replace('"tuned"', '"tu\\u001b[31mned"')
    hostile = shown(FileReport.model_validate_json(text))
    assert "\x1b" not in hostile
    assert "pi[red]pe" in hostile
