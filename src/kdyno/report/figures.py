"""The plots of the HTML report. Texts from a guest are escaped, because plotly reads some HTML in labels."""

from __future__ import annotations

import html
from typing import Any

import plotly.graph_objects as go  # type: ignore[import-untyped]
from plotly.subplots import make_subplots  # type: ignore[import-untyped]

from kdyno.report import view
from kdyno.report.clean import clean
from kdyno.report.model import RunReport

COLOURS = {"faster": "#1a7f4b", "slower": "#c0362c", "equivalent": "#3b6ea8", "undecided": "#9a7b1c"}
VARIANT_COLOURS = ("#8a8f98", "#3b6ea8", "#d9822b", "#1a7f4b", "#8e5ba6", "#c0362c", "#2a9d9d", "#6b4f3a")
FONT = {"family": "Inter, 'Segoe UI', 'Helvetica Neue', Arial, sans-serif", "size": 12, "color": "#24292f"}
GRID = "#e6e8eb"
COLUMNS = 4
ROW_PIXELS = 22
BOX_PIXELS = 175
CONFIG = {"displaylogo": False, "responsive": True, "modeBarButtons": [["toImage", "zoom2d", "pan2d", "resetScale2d"]]}
"""No button that would send data anywhere."""

Figure = Any
"""plotly has no types."""


def forest(report: RunReport, variant: str, axis: view.Axis) -> Figure:
    """Effects of a variant with their intervals, benchmark by benchmark, the geometric mean last."""
    rows = [row for row in (*view.rows(report, variant), view.mean_row(report, variant)) if row.span]
    figure = go.Figure()
    for verdict, colour in COLOURS.items():
        shown = [(row, row.span) for row in rows if row.verdict == verdict and row.span]
        figure.add_trace(
            go.Scatter(
                name=verdict,
                showlegend=bool(shown),
                x=[100 * span.mid for _, span in shown],
                y=[_text(row.name) for row, _ in shown],
                error_x={
                    "type": "data",
                    "symmetric": False,
                    "array": [100 * (span.high - span.mid) for _, span in shown],
                    "arrayminus": [100 * (span.mid - span.low) for _, span in shown],
                    "thickness": 1.6,
                    "width": 3,
                },
                mode="markers",
                marker={
                    "color": colour,
                    "opacity": 1,
                    "size": [11 if row.name.startswith(view.MEAN) else 8 for row, _ in shown],
                    "symbol": ["diamond" if row.name.startswith(view.MEAN) else "circle" for row, _ in shown],
                },
                hovertext=[_text(row.sentence) for row, _ in shown],
                hoverinfo="text",
            )
        )
    margin = 100 * report.run.margin
    figure.add_vrect(x0=-margin, x1=margin, fillcolor="#3b6ea8", opacity=0.08, line_width=0, layer="below")
    figure.update_layout(
        **_layout(height=110 + ROW_PIXELS * max(len(rows), 2)),
        legend={"orientation": "h", "yanchor": "bottom", "y": 1.0, "x": 0},
        margin={"l": 10, "r": 20, "t": 34, "b": 46},
    )
    figure.update_xaxes(
        range=[100 * axis.low, 100 * axis.high],
        title_text="gain over the baseline, % (right is faster)",
        gridcolor=GRID,
        zerolinecolor="#57606a",
    )
    figure.update_yaxes(
        categoryorder="array",
        categoryarray=[_text(row.name) for row in reversed(rows)],
        range=[-0.7, len(rows) - 0.3],
        automargin=True,
        gridcolor=GRID,
        ticks="",
    )
    return figure


def boxes(report: RunReport) -> Figure:
    """What every boot came to: one small plot for each benchmark, one box for each variant, one dot for each boot."""
    measured = {each.benchmark for each in report.values}
    shown = [benchmark for benchmark in report.benchmarks if benchmark.name in measured]
    lines = max(1, -(-len(shown) // COLUMNS))
    figure = make_subplots(
        rows=lines,
        cols=COLUMNS,
        subplot_titles=[f"{_text(clean(each.name))}, {_text(clean(each.unit))}" for each in shown],
        vertical_spacing=46 / (BOX_PIXELS * lines),
        horizontal_spacing=0.055,
    )
    for place, benchmark in enumerate(shown):
        for number, variant in enumerate(report.run.variants):
            values = [e for e in report.values if e.benchmark == benchmark.name and e.variant == variant.name]
            figure.add_trace(
                go.Box(
                    name=_text(clean(variant.name)),
                    legendgroup=variant.name,
                    showlegend=place == 0,
                    y=[each.value for each in values],
                    text=[f"block {each.block}" for each in values],
                    boxpoints="all",
                    jitter=0.5,
                    pointpos=0,
                    line={"width": 1.2},
                    marker={"size": 3, "color": VARIANT_COLOURS[number % len(VARIANT_COLOURS)]},
                ),
                row=place // COLUMNS + 1,
                col=place % COLUMNS + 1,
            )
    figure.update_layout(
        **_layout(height=90 + BOX_PIXELS * lines),
        legend={"orientation": "h", "yanchor": "bottom", "y": 1 + 34 / (BOX_PIXELS * lines), "x": 0},
        margin={"l": 50, "r": 10, "t": 80, "b": 10},
    )
    figure.update_annotations(font_size=11)
    names = [_text(clean(variant.name)) for variant in report.run.variants]
    figure.update_xaxes(
        showticklabels=False,
        ticks="",
        categoryorder="array",
        categoryarray=names,
        range=[-0.6, len(names) - 0.4],  # a variant keeps its place where another one is missing
    )
    figure.update_yaxes(gridcolor=GRID, nticks=4, tickfont_size=10)
    return figure


def to_div(figure: Figure, name: str) -> str:
    """Return a figure as HTML that needs plotly.js on the page. Its data are escaped for a script element."""
    return str(figure.to_html(full_html=False, include_plotlyjs=False, div_id=name, config=CONFIG))


def _text(said: str) -> str:
    return html.escape(said, quote=False)  # plotly knows &lt; and &amp;, but not &quot;


def _layout(height: int) -> dict[str, Any]:
    return {"template": "none", "font": FONT, "height": height, "paper_bgcolor": "white", "plot_bgcolor": "white"}
