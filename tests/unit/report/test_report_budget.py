"""Budgets in the HTML report: stacked bars, and a table."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.measure.cycles.budget import budget
from kdyno.report.figures.budget import bars
from kdyno.report.html import render
from kdyno.understand.explain.budgets import with_budgets
from tests.unit.explain_specimen import pair
from tests.unit.report.test_report_html import Page, figures_of
from tests.unit.understand.test_explain_command import BASELINE, BENCHMARK, VARIANT, Lab


def test_bars_add_up_and_variants_stand_side_by_side() -> None:
    budgets = [
        budget(benchmark, variant, "op", {"instructions": 30.0 + 10 * place, "stall_fetch": 10.0, "calls": 5.0}, {})
        for benchmark in ("lat_pipe", "lat_unix")
        for place, variant in enumerate(("gcc-O2", "gcc-O3"))
    ]
    [drawn] = bars(budgets)
    figure = json.loads(drawn.to_json())
    assert {trace["xaxis"] for trace in figure["data"]} == {"x", "x2"}
    for axis in ("x", "x2"):
        stacked = [trace["x"] for trace in figure["data"] if trace["xaxis"] == axis]
        assert [sum(of_benchmark) for of_benchmark in zip(*stacked, strict=True)] == pytest.approx([100, 100])
    assert figure["layout"]["barmode"] == "stack"
    hovers = [text for trace in figure["data"] if trace["name"] == "fetch" for text in trace["hovertext"]]
    assert hovers[0] == "lat_pipe, gcc-O2: fetch 22.2 %, 10 of 45 cycles/op<br>stall_fetch 10"


def test_more_than_four_variants_make_several_plots_each_with_the_baseline() -> None:
    budgets = [budget("lat_pipe", f"v{number}", "op", {"instructions": 1.0}, {}) for number in range(6)]
    titles = [
        [axis["title"]["text"] for name, axis in drawn.to_dict()["layout"].items() if name.startswith("xaxis")]
        for drawn in bars(budgets)
    ]
    assert [[title.partition(",")[0] for title in of_plot] for of_plot in titles] == [
        ["v0", "v1", "v2", "v3"],
        ["v0", "v4", "v5"],
    ]


def test_the_page_shows_the_budgets_as_bars_and_as_a_table(tmp_path: Path) -> None:
    before, after = pair()
    lab = Lab(tmp_path, {BASELINE: before, VARIANT: after})
    page = render(with_budgets(lab.report, lab.artefacts), lab.artefacts)
    section = page[page.index("<h2>Where the cycles go</h2>") :]
    assert "Cycles are modelled, znver4" in section
    assert [figure["layout"]["barmode"] for figure in figures_of(Page(page)) if "barmode" in figure["layout"]] == [
        "stack"
    ]
    assert f"<td>{BENCHMARK}</td>" in section
    assert "<h2>Where the cycles go</h2>" not in render(lab.report, lab.artefacts)
