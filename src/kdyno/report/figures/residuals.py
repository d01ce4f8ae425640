"""Residuals, for the eye to judge the assumptions of the analysis of variance by."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist, quantiles

from kdyno.judge.stats.diagnostics.tables import Residual
from kdyno.judge.verdicts.model import Report
from kdyno.report.figures.style import INK, Figure, Part, colours, figure, hover_template, text

FEWEST = 4
"""The fewest residuals for a plot."""
MARGIN = {"l": 56, "r": 10, "t": 8, "b": 42}


def quantile_plot(report: Report, residuals: Sequence[Residual]) -> Figure | None:
    """Return the residuals against normal quantiles: those of a normal distribution lie on the line."""
    if len(residuals) < FEWEST:
        return None
    percents = [residual.percent for residual in residuals]
    ranked = sorted(range(len(residuals)), key=percents.__getitem__)
    normal = NormalDist()
    score_by_place = {place: normal.inv_cdf((rank + 0.5) / len(ranked)) for rank, place in enumerate(ranked)}
    low, _, high = quantiles(percents, n=4, method="inclusive")
    slope = (high - low) / (2 * normal.inv_cdf(0.75))
    ends = [score_by_place[ranked[0]], score_by_place[ranked[-1]]]
    return _residual_figure(
        [
            {**_line(ends, [(low + high) / 2 + slope * end for end in ends]), "name": "normal"},
            *_variant_traces(report, [(score_by_place[place], one) for place, one in enumerate(residuals)]),
        ],
        "normal quantile",
    )


def against_fitted(report: Report, residuals: Sequence[Residual], unit: str) -> Figure | None:
    """Return the residuals against the fitted values: an even band if all variants spread alike."""
    if len(residuals) < FEWEST:
        return None
    return _residual_figure(
        _variant_traces(report, [(residual.fitted, residual) for residual in residuals]), f"fitted, {text(unit)}"
    )


def _residual_figure(traces: list[Part], across: str) -> Figure:
    return figure(
        traces,
        280,
        showlegend=False,
        margin=MARGIN,
        xaxis={"title": {"text": across}, "zeroline": False, "nticks": 6},
        yaxis={"title": {"text": "residual, %"}, "zerolinecolor": INK},
    )


def _variant_traces(report: Report, placed: list[tuple[float, Residual]]) -> list[Part]:
    traces = []
    for name, colour in colours(report).items():
        own = [(x, residual) for x, residual in placed if residual.variant == name]
        traces.append(
            {
                "type": "scatter",
                "name": text(name),
                "mode": "markers",
                "x": [x for x, _ in own],
                "y": [residual.percent for _, residual in own],
                "marker": {"size": 5, "color": colour},
                **hover_template(": %{y:+.3~g} %"),
            }
        )
    return traces


def _line(x: list[float], y: list[float]) -> Part:
    line = {"color": INK, "width": 1.2, "dash": "dash"}
    return {"type": "scatter", "mode": "lines", "x": x, "y": y, "line": line, "hoverinfo": "skip"}
