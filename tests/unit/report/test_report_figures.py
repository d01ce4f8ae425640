"""The plots: what they show, not how it looks."""

from __future__ import annotations

import hashlib
import json
import math
import re
import tomllib

import pytest
from plotly.offline import get_plotlyjs  # type: ignore[import-untyped]

from kdyno.judge.stats.diagnostics.tables import Residual
from kdyno.judge.stats.planning.power import PowerPoint
from kdyno.judge.verdicts.model import BootValue, FileReport
from kdyno.report import packing, page
from kdyno.report.figures import boxes, margin, order, power, residuals, style
from kdyno.report.figures.style import COLOURS, MOST_POINTS, THEMED, Figure, Part, thin, to_json
from tests.unit import foreign_specimen as specimen


@pytest.fixture(scope="module")
def report() -> FileReport:
    return specimen.values(layouts=3)


def parts(figure: Figure) -> list[Part]:
    data: list[Part] = json.loads(to_json(figure))["data"]
    return data


def value(variant: str, place: int | None, amount: float) -> BootValue:
    return BootValue(variant=variant, benchmark="pipe", block=place, order=place, layout=None, value=amount)


def test_one_margin_is_one_whatever_the_margin_is() -> None:
    for limit in (0.001, 0.01, 0.05):
        assert math.sinh(margin.place(math.log1p(limit), math.log1p(limit))) == pytest.approx(1)
        assert math.sinh(margin.place(-math.log1p(limit), math.log1p(limit))) == pytest.approx(-1)


def test_intervals_against_the_margin_are_sorted_by_effect() -> None:
    figure = margin.against_margin(specimen.summaries(), "x86-64-v3")
    rows = json.loads(to_json(figure))["layout"]["yaxis"]["ticktext"]
    assert list(reversed(rows)) == ["i7-4790K", "Ryzen 5950X", "N100"]  # the mean of summaries has no interval


def test_without_a_margin_there_is_no_plot_against_it(report: FileReport) -> None:
    assert margin.against_margin(report.model_copy(update={"margin": 0.0}), "tuned") is None


def test_residuals_are_off_the_mean_of_their_own_variant() -> None:
    values = [value("a", 0, 99.0), value("a", 2, 101.0), value("b", 1, 990.0), value("b", 3, 1010.0)]
    shown = order.points(values)
    assert [point.order for point in shown] == [0, 1, 2, 3]
    assert [round(point.residual, 2) for point in shown] == [-1.0, -1.0, 1.0, 1.0]


def test_a_drift_of_one_percent_in_a_hundred_boots_is_called_that(report: FileReport) -> None:
    values = [value("stock", place, 100 * math.exp(0.0001 * place)) for place in range(40)]
    figure = order.order(report, order.points(values), {})
    title = json.loads(to_json(figure))["layout"]["xaxis"]["title"]["text"]
    assert title == "order of measuring (line: +1 % per 100)"


def test_without_an_order_there_is_no_drift_to_show(report: FileReport) -> None:
    assert order.order(report, order.points([value("stock", None, 1.0)] * 9), {}) is None


def test_disturbed_boots_are_ringed_with_their_cause(report: FileReport) -> None:
    shown = order.points([value for value in report.values if value.benchmark == "pipe"])
    *_, ring, _line = parts(order.order(report, shown, {("tuned", 4): "steal <b>3 %</b>"}))
    assert ring["hovertext"] == ["steal &lt;b&gt;3 %&lt;/b&gt;"]
    assert len(ring["x"]) == 1


def test_the_median_over_all_benchmarks_has_one_point_for_each_boot() -> None:
    report = specimen.values()
    assert len(order.median_residuals(report)) == len(report.values) == 20


def test_each_layout_has_its_symbol(report: FileReport) -> None:
    figure = boxes.boxes(report, report.benchmarks[0], boxes.group_values(report))
    symbols = {symbol for part in parts(figure) if part["mode"] == "markers" for symbol in part["marker"]["symbol"]}
    assert symbols == {"circle", "square", "diamond"}


def test_whiskers_end_at_the_last_value_within_reach(report: FileReport) -> None:
    values = {("pipe", "stock"): [value("stock", place, number) for place, number in enumerate([1.0, 2, 3, 4, 5, 60])]}
    [box, dots] = parts(boxes.boxes(report, report.benchmarks[0], values))
    ends = [y for y in box["y"] if y is not None]
    assert (min(ends), max(ends)) == (1.0, 5.0)
    assert (box["type"], box["mode"]) == ("scatter", "lines")
    assert len(dots["y"]) == 6


def test_a_verdict_has_one_colour_in_plots_and_in_the_style_of_light_pages() -> None:
    light = (packing.TEMPLATES / "style.css").read_text(encoding="utf-8").partition("@media")[0]
    for colour in {*COLOURS.values()}:
        assert f"{THEMED[colour]}: {colour}" in light


def test_the_page_has_the_plotly_that_the_figures_are_made_for() -> None:
    bundle = (packing.TEMPLATES / page.PLOTLY).read_text(encoding="utf-8")
    versions = [re.search(r"plotly\.js .*?v([\d.]+)", text[:200]) for text in (bundle, get_plotlyjs())]
    assert all(versions)
    assert len({version[1] for version in versions if version}) == 1, "docs/extending.md#the-plots-of-a-page"


def test_the_plotly_of_the_page_is_the_one_whose_origin_is_on_record() -> None:
    bundle = (packing.TEMPLATES / page.PLOTLY).read_bytes()
    origin = tomllib.loads((packing.TEMPLATES / "plotly-basic.toml").read_text(encoding="utf-8"))
    assert hashlib.sha256(bundle).hexdigest() == origin["sha256"], "tools/update-scripts"
    assert f"plotly.js (basic - minified) v{origin['version']}\n".encode() in bundle[:200]
    assert origin["url"].endswith(f"/{origin['package']}-{origin['version']}.tgz")
    licence = (packing.TEMPLATES / "plotly-basic.LICENSE").read_text(encoding="utf-8")
    assert licence.startswith(f"{origin['licence']} License")


def test_a_million_points_become_a_few_hundred_from_all_over() -> None:
    taken = thin(range(1_000_000))
    assert len(taken) <= MOST_POINTS
    assert taken[-1] > 990_000


def test_normal_residuals_lie_on_the_line_of_the_quantile_plot(report: FileReport) -> None:
    from statistics import NormalDist

    quantiles = [NormalDist(0, 2).inv_cdf((rank + 0.5) / 40) for rank in range(40)]
    left = [Residual(variant="stock", order=None, fitted=100.0, percent=quantile) for quantile in quantiles]
    line, dots, _ = parts(residuals.quantile_plot(report, left))
    slope = (line["y"][1] - line["y"][0]) / (line["x"][1] - line["x"][0])
    assert slope == pytest.approx(2, rel=0.05)
    assert dots["y"] == pytest.approx([2 * x for x in dots["x"]], rel=0.005, abs=0.02)


def test_effects_that_no_run_of_two_replicates_could_miss_are_not_drawn(report: FileReport) -> None:
    [curve] = report.analyses[0].power
    absurd = curve.model_copy(update={"detectable": (PowerPoint(n=2, effect=1e200, power=0.8), *curve.detectable)})
    figure = power.detectable(report, [absurd])
    [dots] = parts(figure)
    assert max(dots["y"]) <= 1000
    assert len(dots["y"]) == sum(point.effect <= 10 for point in curve.detectable)
    assert len(json.loads(to_json(figure))["layout"]["yaxis"]["tickvals"]) < 30


def test_numbers_have_three_digits_or_as_many_as_the_axis_tells_apart() -> None:
    values = [27334.0001, 27334.5678]
    trace = {"type": "scatter", "x": [0.123456, 1000.123456], "y": values, "error_y": {"array": [0.0123456]}}
    [shown] = json.loads(to_json(style.figure([trace], 100)))["data"]
    assert shown["x"] == [0.123, 1000]
    assert shown["y"] == [27334, 27334.568]
    assert shown["error_y"]["array"] == [0.0123]


def test_power_reaches_eighty_percent_at_the_detectable_effect(report: FileReport) -> None:
    [curve] = report.analyses[0].power
    [dots] = parts(power.power(report, report.analyses[0].power))
    at = dict(zip(dots["x"], dots["y"], strict=True))
    [detectable] = [point.effect for point in curve.detectable if point.n == curve.n]
    assert at[min(at, key=lambda x: abs(x - 100 * detectable))] == pytest.approx(80, abs=0.5)


def test_nothing_in_a_figure_ends_a_script_element() -> None:
    hostile = specimen.values().model_dump_json().replace('"tuned"', '"</script><script>alert(1)</script>"')
    again = FileReport.model_validate_json(hostile)
    text = to_json(boxes.boxes(again, again.benchmarks[0], boxes.group_values(again)))
    assert "<" not in text
    assert "&lt;/script&gt;" in json.loads(text)["data"][-1]["name"]
