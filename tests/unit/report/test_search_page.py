"""The page and the text of a search in a space of recipes."""

from __future__ import annotations

import pytest

from kdyno.report.figures.search import importance, losses, pareto
from kdyno.report.search_html import render
from kdyno.tune.space.model import FailedRecipe, KnobImportance, SearchResult, TriedRecipe
from kdyno.tune.space.outcome import Measured
from kdyno.tune.space.show import lines

FAST = TriedRecipe(
    name="opt=O3",
    values={"opt": "O3"},
    rung=2,
    measured={"speed": Measured(value=0.03, error=0.001), "text": Measured(value=-0.1)},
    is_on_front=True,
    risks=("cmdline.m=mitigations=off (mitigation)",),
)
SMALL = TriedRecipe(
    name="opt=<Os>",
    values={"opt": "Os"},
    rung=1,
    measured={"speed": Measured(value=-0.2, error=0.001), "text": Measured(value=0.25)},
    is_on_front=True,
)
RESULT = SearchResult(
    name="toy",
    space=4,
    is_exact=True,
    lane="wall",
    sampler="effects",
    objectives=("speed",),
    recipes=(FAST, SMALL),
    failures=(FailedRecipe(name="march=none", stage="build", reason="doesn't build"),),
    left_out=("cmdline.m=mitigations=off (mitigation)",),
    builds=2,
    seconds=100.0,
    knobs=(
        KnobImportance(
            key="opt", share=0.9, low=0.8, high=0.95, choice="opt=O3", loss=0.03, loss_low=0.02, loss_high=0.04
        ),
        KnobImportance(key="march", share=0.1, low=0.0, high=0.3, choice=""),
    ),
    winner="opt=O3",
    claim="opt=O3 was the best in the search; it was not confirmed",
)


def test_the_page_has_the_claim_both_tables_and_what_failed() -> None:
    page = render(RESULT)
    for text in (
        RESULT.claim,
        "Which knob mattered",
        "Speed and size",
        "opt=&lt;Os&gt;",
        "march=none",
        "mitigations=off",
    ):
        assert text in page
    assert "opt=<Os>" not in page


def test_speed_and_size_are_changes_of_the_baselines_in_percent() -> None:
    drawn = pareto(RESULT)
    assert drawn is not None
    front = next(trace for trace in drawn.to_dict()["data"] if trace["name"] == "Pareto front")
    assert list(front["x"]) == pytest.approx([10.52, -22.12], abs=0.01)
    assert list(front["y"]) == pytest.approx([3.05, -18.13], abs=0.01)


def test_without_built_kernels_there_is_no_front() -> None:
    started = FAST.model_copy(update={"measured": {"speed": FAST.measured["speed"]}})
    result = RESULT.model_copy(update={"recipes": (started,), "knobs": ()})
    assert pareto(result) is None
    assert losses(result.knobs) is None
    assert "Speed and size" not in render(result)


def test_the_knob_that_matters_most_is_on_top() -> None:
    [bars] = importance(RESULT.knobs).to_dict()["data"]
    assert list(bars["y"]) == ["march", "opt"]
    assert list(bars["x"]) == pytest.approx([10.0, 90.0])


def test_the_text_names_recipes_that_trade_something_and_what_a_choice_is_worth() -> None:
    text = "\n".join(lines(RESULT, 20))
    assert " yes  * opt=O3" in text
    assert "-3.0 %" in text and "-3.9 to -2.0 %" in text
    assert "left out at the build: march=none: doesn't build" in text
    assert "not tried for its risk: cmdline.m=mitigations=off (mitigation)" in text


def test_only_the_best_recipes_are_listed() -> None:
    assert "... and 1 more" in list(lines(RESULT, 1))
