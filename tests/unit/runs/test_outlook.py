"""What a run, a build and a plan say about what is ahead of them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment, JudgeConfig
from kdyno.runs.experiment.plan import plan_boots
from kdyno.runs.forecast import BuildForecast, Forecast
from kdyno.runs.outlook import build_time, builds_ahead, run_ahead, span, total_time

GUESSED = BuildForecast("plain", "a", "build", "", 385.0, "a guess: 730 files to compile on 2 cores", guess=True)
MEASURED = BuildForecast("fast", "b", "build", "", 241.9, "measured: the only build of dyno by gcc here")
UNKNOWN = BuildForecast("odd", "c", "build", "", None, "unknown: only configuring tells how much make:odd compiles")
LINKED = BuildForecast("plain, layout 2", "d", "link", "", 10.0, "a guess: what a link takes", guess=True)
CACHED = BuildForecast("plain", "a", "cached", "built before")
SHARED = BuildForecast("off", "a", "shared", "")


def experiment(*, looks: int = 1) -> Experiment:
    return Experiment(
        name="x",
        source="s",
        baseline="plain",
        variants=dict.fromkeys(("plain", "fast"), Recipe()),
        blocks=12,
        judge=JudgeConfig(looks=looks),
    )


def ahead(*builds: BuildForecast, done: int = 0, boot_guess: bool = False) -> Forecast:
    return Forecast(
        run="run",
        builds=builds,
        boots=tuple(plan_boots(experiment())[done:]),
        boots_done=done,
        boot_seconds=6.0,
        boot_seconds_from="",
        boot_guess=boot_guess,
        side_by_side=2,
    )


def test_a_run_says_what_it_will_do_and_that_the_time_is_a_guess() -> None:
    assert run_ahead(ahead(GUESSED, GUESSED, SHARED, boot_guess=True), experiment(), 34) == [
        "to do: build 2 kernels, boot 24 times (12 blocks of 2 variants), measure 34 benchmarks",
        "time: about 14 min, a guess: no such build or boot is on record here yet",
    ]


def test_a_run_that_goes_on_says_what_is_left_of_it() -> None:
    assert run_ahead(ahead(CACHED, MEASURED, done=3), experiment(), 1) == [
        "to do: build 1 kernel, boot 21 times (12 blocks of 2 variants, 3 on record), measure 1 benchmark",
        "time: about 5 min, by what was measured here",
    ]


def test_a_run_with_layouts_says_how_many_are_linked_and_one_with_looks_that_it_may_end_early() -> None:
    to_do, time = run_ahead(ahead(MEASURED, LINKED), experiment(looks=4), 34)
    assert to_do.startswith("to do: build 1 kernel, link 1 more layout, boot at most 24 times (")
    assert time == "time: about 5 min, a guess: no such link is on record here yet"


def test_a_time_that_nobody_knows_is_said_to_be_unknown_and_that_of_the_boots_beside_it() -> None:
    assert total_time(ahead(GUESSED, UNKNOWN)) == (
        "unknown: only configuring tells how much make:odd compiles; about 72 s of boots come after that"
    )


def test_builds_that_ccache_helps_are_said_to_take_less_than_that() -> None:
    helped = replace(MEASURED, cached_objects=True)
    assert total_time(ahead(helped)).startswith("about 5 min, by what was measured here; builds take less")
    assert total_time(ahead(CACHED, replace(GUESSED, cached_objects=True))).endswith("where ccache has their objects")


def test_where_all_is_done_no_time_is_left() -> None:
    assert total_time(ahead(CACHED, done=24)) == "none: all of it is done"


def test_a_build_says_what_it_builds_and_how_long_each_takes() -> None:
    assert builds_ahead([GUESSED, LINKED, UNKNOWN, SHARED]) == [
        "to do: build plain, about 6 min (a guess: 730 files to compile on 2 cores)",
        "to do: build odd, unknown: only configuring tells how much make:odd compiles",
        "to do: link 1 more layout",
    ]
    assert builds_ahead([CACHED]) == []
    assert build_time(MEASURED) == "about 4 min (measured: the only build of dyno by gcc here)"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.4, "about 0 s"), (89, "about 89 s"), (90, "about 2 min"), (90_000, "about 1,500 min")]
)
def test_times_are_rounded_as_people_do(seconds: float, text: str) -> None:
    assert span(seconds) == text
