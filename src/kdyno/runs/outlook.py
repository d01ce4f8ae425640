"""A forecast in words: the last lines of `kdyno plan`, and the first of `kdyno run` and `kdyno build`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.text import format_count
from kdyno.base.watched import Ahead
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.forecast import BuildForecast, Forecast

LESS = "builds take less, even far less, where ccache has their objects"
"""A note on estimates: the content of ccache is known only during a build."""


def span(seconds: float) -> str:
    """Return a time in seconds, rounded, in words."""
    return f"about {seconds / 60:,.0f} min" if seconds >= 90 else f"about {seconds:.0f} s"


def build_time(build: BuildForecast) -> str:
    """Return the time of one build and its basis, in words."""
    return build.seconds_from if build.seconds is None else f"{span(build.seconds)} ({build.seconds_from})"


def total_time(ahead: Forecast) -> str:
    """Return the total time in words, and whether it was measured here or is a guess."""
    if ahead.seconds is None:
        (reason, *_) = (build.seconds_from for build in ahead.builds if build.seconds is None)
        return f"{reason}; {span(ahead.seconds_of_boots)} of boots come after that"
    if not ahead.seconds:
        return "none: all of it is done"
    less = f"; {LESS}" if any(build.cached_objects for build in ahead.builds) else ""
    if not ahead.guessed:
        return f"{span(ahead.seconds)}, by what was measured here{less}"
    return f"{span(ahead.seconds)}, a guess: no such {' or '.join(ahead.guessed)} is on record here yet{less}"


def run_ahead(ahead: Forecast, experiment: Experiment, benchmarks: int) -> list[str]:
    """Return the lines with the steps of a run that are not on record, and their time."""
    kernels, layouts = _to_build(ahead.builds)
    builds = [f"build {format_count(len(kernels), 'kernel')}"] if kernels else []
    links = [f"link {format_count(layouts, 'more layout')}"] if layouts else []
    design = f"{format_count(experiment.blocks, 'block')} of {format_count(len(experiment.variants), 'variant')}"
    recorded = f", {ahead.boots_done:,} on record" if ahead.boots_done else ""
    most = "at most " if experiment.judge.looks > 1 else ""
    boots = f"boot {most}{format_count(len(ahead.boots), 'time')} ({design}{recorded})"
    training = [_training(ahead.training_boots)] if ahead.training_boots else []
    checks = [f"boot {format_count(ahead.check_boots, 'time')} for KUnit"] if ahead.check_boots else []
    steps = [*training, *builds, *links, *checks, boots, f"measure {format_count(benchmarks, 'benchmark')}"]
    return [f"to do: {', '.join(steps)}", f"time: {total_time(ahead)}"]


def ahead_of(ahead: Forecast, name: str) -> Ahead:
    """Return the steps and times of a run as figures, for the progress display."""
    kernels, layouts = _to_build(ahead.builds)
    boots = len(ahead.boots) * ahead.boot_seconds / ahead.side_by_side
    return Ahead(
        title=f"run {ahead.run} {name}",
        images=len(kernels) + layouts,
        boots=len(ahead.boots),
        boots_before=ahead.boots_done,
        seconds_before_boots=None if ahead.seconds is None else ahead.seconds - boots,
        seconds_of_a_boot=ahead.boot_seconds / ahead.side_by_side,
    )


def builds_ahead(builds: Sequence[BuildForecast]) -> list[str]:
    """Return the lines with the builds and their times; empty if all images exist."""
    kernels, layouts = _to_build(builds)
    links = [f"to do: link {format_count(layouts, 'more layout')}"] if layouts else []
    return [*(f"to do: build {kernel.variant}, {build_time(kernel)}" for kernel in kernels), *links]


def training_ahead(boots: int) -> list[str]:
    """Return a line with the number of boots for training; empty if all are on record."""
    return [f"to do: {_training(boots)}"] if boots else []


def _training(boots: int) -> str:
    return f"boot {format_count(boots, 'time')} to train"


def _to_build(builds: Sequence[BuildForecast]) -> tuple[list[BuildForecast], int]:
    """Return the builds that are compiled, and the number of layouts that are only linked."""
    kernels = [build for build in builds if build.decision == "build"]
    return kernels, sum(build.decision == "link" for build in builds)
