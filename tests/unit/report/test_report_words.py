"""What is printed of one effect agrees with itself: the sign, the word, the colour, and the side of the line."""

from __future__ import annotations

import io
import json
import math
import re
from dataclasses import dataclass

import numpy as np
import pytest
from rich.console import Console

from kdyno.base.measurement import AnyBenchmark, Direction, Quantity
from kdyno.base.terminal import STYLES
from kdyno.judge.stats.compare import judge
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.judge.stats.verdict import Scope
from kdyno.judge.verdicts.model import BootValue, FileReport
from kdyno.judge.verdicts.rows import mean_row, rows_of
from kdyno.report import view
from kdyno.report.figures.forest import forest
from kdyno.report.figures.style import COLOURS, to_json
from kdyno.report.html import render as render_html
from kdyno.report.terminal import render

NOISE = np.exp(np.random.default_rng(37).normal(0, 0.001, 8))
GREEN, RED, NEUTRAL = "green", "red", "magenta"


@dataclass(frozen=True)
class Measured:
    """A benchmark, and what the variant's value is over the baseline's."""

    name: str
    unit: str
    direction: Direction | None
    quantity: Quantity
    ratio: float


def reported(*measured: Measured, scope: Scope = "images") -> FileReport:
    observations = [
        Observations(
            benchmark=one.name,
            unit=one.unit,
            direction=one.direction,
            description="",
            quantity=one.quantity,
            groups={
                "old": ReplicateSample(100 * NOISE, blocks=np.arange(8)),
                "new": ReplicateSample(100 * one.ratio * NOISE[::-1], blocks=np.arange(8)),
            },
        )
        for one in measured
    ]
    judgement = judge(observations, ("old", "new"), "old", margin=0.01, alpha=0.05, scope=scope)
    return FileReport(
        title="x",
        measured="x",
        baseline="old",
        variants=("old", "new"),
        margin=0.01,
        alpha=0.05,
        confidence=0.95,
        correction="holm",
        notices=(),
        benchmarks=tuple(
            AnyBenchmark(name=one.name, test=one.name, unit=one.unit, direction=one.direction, description="")
            for one in measured
        ),
        comparisons=judgement.comparisons,
        geometric_means=judgement.geometric_means,
        values=(BootValue(variant="old", benchmark=measured[0].name, block=0, order=0, layout=None, value=1.0),),
        analyses=(),
        files=(),
        sha256=(),
        read_as="x",
        columns={},
    )


def printed(report: FileReport, width: int = 110) -> str:
    out = io.StringIO()
    render(report, Console(file=out, width=width))
    return out.getvalue()


def lower(name: str, ratio: float) -> Measured:
    return Measured(name, "ms", "lower", "speed", ratio)


TABLE: list[tuple[str, Direction | None, Quantity, float, str, str]] = [
    # unit, which is better, kind, ratio, and then: the verdict, its colour
    ("ns", "lower", "speed", 0.9, "faster", GREEN),
    ("ns", "lower", "speed", 1.1, "slower", RED),
    ("ns", None, "speed", 0.9, "lower", NEUTRAL),
    ("ns", None, "speed", 1.1, "higher", NEUTRAL),
    ("cycles", "lower", "speed", 0.9, "faster", GREEN),
    ("cycles", "lower", "speed", 1.1, "slower", RED),
    ("B/cycle", "higher", "speed", 0.9, "slower", RED),
    ("B/cycle", "higher", "speed", 1.1, "faster", GREEN),
    ("instr", "lower", "count", 0.9, "fewer", GREEN),
    ("instr", "lower", "count", 1.1, "more", RED),
    ("B/instr", "higher", "count", 0.9, "worse", RED),
    ("B/instr", "higher", "count", 1.1, "better", GREEN),
    ("misses", None, "count", 0.9, "lower", NEUTRAL),
    ("misses", None, "count", 1.1, "higher", NEUTRAL),
    ("MB/s", "higher", "speed", 0.9, "slower", RED),
    ("MB/s", "higher", "speed", 1.1, "faster", GREEN),
    ("MB/s", None, "speed", 0.9, "lower", NEUTRAL),
    ("MB/s", None, "speed", 1.1, "higher", NEUTRAL),
]
GROWS = {"more", "higher", "better"}
"""Words that a `-` would contradict; `better` is said of work per count alone."""
SHRINKS = {"fewer", "lower", "worse"}
PAGE_COLOURS = {GREEN: "#17713f", RED: "#b32d23", NEUTRAL: "#7f3692"}


@pytest.mark.parametrize(("unit", "direction", "quantity", "ratio", "word", "colour"), TABLE)
def test_sign_word_colour_and_side_of_an_effect_agree(
    unit: str, direction: Direction | None, quantity: Quantity, ratio: float, word: str, colour: str
) -> None:
    report = reported(Measured("b", unit, direction, quantity, ratio))
    [row] = rows_of(report, "new")
    assert row.verdict == word
    assert row.effect == f"{'+' if ratio > 1 else '-'}10.0 %"  # of the value, in its unit
    assert not (word in GROWS and row.effect.startswith("-"))
    assert not (word in SHRINKS and row.effect.startswith("+"))
    assert (STYLES[word], COLOURS[word]) == (colour, PAGE_COLOURS[colour])
    assert row.span
    right = {GREEN: True, RED: False, NEUTRAL: ratio > 1}[colour]
    assert (row.span.mid > 0) == right
    assert word == (view.sides(report).right if right else view.sides(report).left)
    assert f"10.0 % {'higher' if ratio > 1 else 'lower'}" in row.sentence and f": {word};" in row.sentence


@pytest.mark.parametrize(
    ("unit", "direction", "quantity", "words"),
    [
        ("ns", "lower", "speed", ("slower", "faster")),
        ("MB/s", "higher", "speed", ("slower", "faster")),
        ("instr", "lower", "count", ("worse", "better")),
        ("B/instr", "higher", "count", ("worse", "better")),
    ],
)
@pytest.mark.parametrize("better", [True, False])
def test_the_mean_grows_where_the_variant_is_better_and_its_word_says_so(
    unit: str, direction: Direction, quantity: Quantity, words: tuple[str, str], better: bool
) -> None:
    ratio = 0.9 if better == (direction == "lower") else 1.1
    mean = mean_row(reported(*(Measured(name, unit, direction, quantity, ratio) for name in "ab")), "new")
    assert mean and mean.span
    assert mean.verdict == words[better]
    assert (mean.effect[0] == "+") == better == (mean.span.mid > 0)


def test_a_page_of_several_kinds_calls_its_sides_better_and_worse() -> None:
    counts = [Measured("a", "instr", "lower", "count", 0.9), Measured("b", "B/instr", "higher", "count", 1.1)]
    assert view.sides(reported(counts[0])) == view.SideNames("more", "fewer")
    assert view.sides(reported(*counts)) == view.SideNames("worse", "better")
    assert view.sides(reported(lower("c", 0.5), counts[0])) == view.SideNames("worse", "better")


def test_effects_and_their_mean_lie_on_one_scale_of_speed() -> None:
    report = reported(*(lower(name, 10.0) for name in "abc"))
    mean = mean_row(report, "new")
    assert mean and mean.span
    for row in rows_of(report, "new"):
        assert row.span
        assert row.span.mid == pytest.approx(mean.span.mid) == pytest.approx(-math.log(10))
    up, down = (reported(lower("a", ratio), lower("b", ratio)) for ratio in (2.0, 0.5))
    spans = [row.span for report in (up, down) for row in rows_of(report, "new")]
    assert {round(abs(span.mid), 9) for span in spans if span} == {round(math.log(2), 9)}


@pytest.mark.parametrize("ratio", [1.02, 1.726, 10.0, 1e6, 1e-6])
def test_no_gain_is_below_minus_100_percent(ratio: float) -> None:
    report = reported(lower("a", ratio), lower("b", ratio), lower("c", 1.0))
    text = printed(report)
    assert min(float(number) for number in re.findall(r"-[\d.]+(?:e[+-]\d+)?(?= %| to)", text)) >= -100
    rows = view.plotted_rows(report, "new")
    axis = view.axis([row.span for row in rows if row.span], report.margin)
    drawn = json.loads(to_json(forest(report, "new", axis)))["layout"]["xaxis"]
    assert all(not name.startswith("-") or float(name) > -100 for name in drawn["ticktext"])
    assert all(axis.low <= place <= axis.high for place in drawn["tickvals"])


@pytest.mark.parametrize(
    ("low", "high", "names"),
    [
        (-0.05, 0.03, ["-4", "-3", "-2", "-1", "0", "+1", "+2", "+3"]),
        (-0.0016, 0.0016, ["-0.15", "-0.1", "-0.05", "0", "+0.05", "+0.1", "+0.15"]),
        (-0.6, 0.015, ["-45", "-40", "-35", "-30", "-25", "-20", "-15", "-10", "-5", "0"]),
        (-2.5, 0.015, ["-80", "-60", "-40", "-20", "0"]),
        (-12.0, 7.0, ["÷100,000", "÷10,000", "÷1,000", "÷100", "÷10", "0", "×10", "×100", "×1,000"]),
    ],
)
def test_an_axis_has_ticks_at_even_percents_or_at_factors(low: float, high: float, names: list[str]) -> None:
    shown = [name for _, name in view.ticks(view.Axis(low, high))]
    assert shown == names


def test_effects_of_a_few_percent_are_drawn_where_they_were() -> None:
    [row] = rows_of(reported(lower("a", 0.97)), "new")
    assert row.span and row.span.mid == pytest.approx(0.03, abs=0.0006)


def test_there_is_no_geometric_mean_of_one_benchmark() -> None:
    one, two = reported(lower("a", 2.0)), reported(lower("a", 2.0), lower("b", 2.0))
    assert mean_row(one, "new") is None
    assert "geometric mean" not in printed(one)
    assert "geometric mean (2)" in printed(two)
    body = render_html(one).rpartition("<body>")[2]
    assert "geometric mean (" not in body
    assert '<b class="big slower">+100.0 %</b>' in body


def test_what_all_verdicts_are_about_is_said_above_the_rows() -> None:
    for scope in ("images", "boots", "rounds"):
        text = printed(reported(*(lower(name, 2.0) for name in "abcdefgh"), scope=scope))
        assert text.count(f"(these {scope})") == 2
        assert text.startswith(f"new (these {scope}): 8 slower; mean -50.0 %, slower\n")
        assert f"new against old (these {scope})" in text
        assert f"these {scope}: {view.SCOPES[scope]}" in " ".join(text.split())
    assert "these" not in printed(reported(*(lower(name, 2.0) for name in "abcdefgh"), scope="kernels"))


def test_rows_that_differ_in_what_they_are_about_say_it_themselves() -> None:
    report = reported(*(lower(name, 2.0) for name in "abcdefgh"))
    first, *others = report.comparisons
    mixed = report.model_copy(update={"comparisons": (first.model_copy(update={"scope": "boots"}), *others)})
    text = printed(mixed, 120)
    assert "new against old\n" in text
    summary, rows = text.split("\n", 1)
    assert summary == "new: 1 slower (these boots), 7 slower (these images); mean -50.0 %, slower (these images)"
    assert rows.count("slower (these boots)") == 1
    assert rows.count("slower (these images)") == 8  # seven benchmarks and their mean
