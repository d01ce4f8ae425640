"""The history of a store: its axes, and the kernels at which benchmarks change. Pure.

Where samples repeat, any difference beyond the margin between two kernels that follow each other is a change: the same
seeds are compared. Elsewhere divisive.py finds changes of the level.
"""

from __future__ import annotations

import re
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kdyno.base.frozen import digest
from kdyno.base.lanes import DEFAULT_LANE
from kdyno.base.text import clean
from kdyno.boot.registry import kind_named
from kdyno.judge.history import divisive
from kdyno.judge.history.lines import AxisReadings, BenchmarkKey, LineKey, make_axis, read_axes
from kdyno.judge.history.model import (
    AxisSummary,
    ChangedBenchmark,
    History,
    HistoryAxis,
    HistoryBenchmark,
    HistoryChange,
    HistoryKernel,
    HistoryLine,
    HistoryReport,
)
from kdyno.store import plain_json
from kdyno.store.series import RunFacts, SeriesRows

SHORT = 12
"""Digits of a commit in a command, and of the digest that names a change."""
REPOSITORY = re.compile(r"git:([^#]+)(?:#.*)?")
MOST_NAMED = 8
"""Benchmarks that a command names; with more, it measures their tests."""
SCALARS = ("toolchain", "opt", "march", "mtune", "lto")
"""Settings of a recipe that a command line has as KEY=VALUE."""


@dataclass(frozen=True)
class _Step:
    """One benchmark of one line changes between two kernels of its axis."""

    before: int
    after: int
    benchmark: HistoryBenchmark
    line: HistoryLine
    levels: tuple[float, float]
    ratio: float

    @property
    def is_worse(self) -> bool:
        return (self.ratio > 1) == (self.benchmark.direction == "lower")


def history(rows: SeriesRows) -> History:
    """Return the history of a store."""
    readings, without_source = read_axes(rows)
    axes = sorted(
        (make_axis(key, found) for key, found in readings.items()),
        key=lambda axis: (axis.newest, axis.id),
        reverse=True,
    )
    changes = [change for axis in axes for change in _changes(axis, readings[axis.id])]
    changes.sort(key=lambda change: (change.after.first_run, change.axis), reverse=True)
    report = HistoryReport(
        runs=len(rows.runs),
        without_source=without_source,
        false_alarm_rate=divisive.FALSE_ALARMS,
        axes=tuple(map(_summary, axes)),
        changes=tuple(changes),
    )
    return History(report, tuple(axes))


def _summary(axis: HistoryAxis) -> AxisSummary:
    return AxisSummary(
        id=axis.id,
        lane=axis.lane,
        title=axis.title,
        machine=axis.machine,
        host=axis.host,
        runs=axis.runs,
        newest=axis.newest,
        kernels=len(axis.kernels),
        benchmarks=len(axis.benchmarks),
        recipes=len({line.recipe for benchmark in axis.benchmarks for line in benchmark.lines}),
    )


def _changes(axis: HistoryAxis, readings: AxisReadings) -> Iterator[HistoryChange]:
    """Yield the changes of an axis, those at one place together."""
    steps = _exact_steps(axis, readings) if axis.is_exact else _noisy_steps(axis)
    by_place: dict[tuple[int, int], list[_Step]] = defaultdict(list)
    for step in steps:
        by_place[step.before, step.after].append(step)
    for (before, after), own in by_place.items():
        own.sort(key=lambda step: -abs(np.log(step.ratio)))
        yield _change(axis, readings, axis.kernels[before], axis.kernels[after], own)


def _exact_steps(axis: HistoryAxis, readings: AxisReadings) -> Iterator[_Step]:
    edge = np.log1p(axis.margin)
    identities = _identities(readings)
    for benchmark, key in zip(axis.benchmarks, readings.readings, strict=True):
        for line, line_key in zip(benchmark.lines, readings.readings[key], strict=True):
            for one, two in zip(line.points, line.points[1:], strict=False):
                ratio = _paired_ratio(
                    readings, key, line_key, *(identities[axis.kernels[point.kernel].identity] for point in (one, two))
                )
                if ratio is not None and abs(ratio) > edge:
                    yield _Step(one.kernel, two.kernel, benchmark, line, (one.value, two.value), float(np.exp(ratio)))


def _identities(readings: AxisReadings) -> dict[str, str]:
    """Return the identities as they were read, by those that are shown."""
    return {clean(identity): identity for identity in readings.sources}


def _paired_ratio(
    readings: AxisReadings, benchmark: BenchmarkKey, line: LineKey, before: str, after: str
) -> float | None:
    """Return the mean of the log ratios over the seeds that both kernels met; None without one."""
    ours, theirs = (readings.by_seed(benchmark, line, identity) for identity in (before, after))
    common = ours.keys() & theirs.keys()
    return float(np.mean([theirs[seed] - ours[seed] for seed in common])) if common else None


def _noisy_steps(axis: HistoryAxis) -> Iterator[_Step]:
    first = axis.left_out
    lines = [(benchmark, line) for benchmark in axis.benchmarks for line in benchmark.lines]
    shown = [[point for point in line.points if point.kernel >= first] for _, line in lines]
    series = [
        (np.array([point.kernel - first for point in points]), np.log([point.value for point in points]))
        for points in shown
    ]
    long_enough = [one for one in series if len(one[0]) >= 2 * divisive.FEWEST]
    if not long_enough:
        return
    limit = divisive.threshold(long_enough, len(axis.kernels) - first)
    for (benchmark, line), points, (_, logs) in zip(lines, shown, series, strict=True):
        splits = divisive.change_points(logs, limit)
        for split, start, end in zip(splits, [0, *splits], [*splits[1:], len(logs)], strict=False):
            before, after = float(logs[start:split].mean()), float(logs[split:end].mean())
            if abs(after - before) > np.log1p(axis.margin):
                levels = float(np.exp(before)), float(np.exp(after))
                kernels = points[split - 1].kernel, points[split].kernel
                yield _Step(*kernels, benchmark, line, levels, float(np.exp(after - before)))


def _change(
    axis: HistoryAxis, readings: AxisReadings, before: HistoryKernel, after: HistoryKernel, steps: Sequence[_Step]
) -> HistoryChange:
    worse = sum(step.is_worse for step in steps)
    points = [
        {point.kernel: point for point in steps[0].line.points}[place] for place in (steps[0].before, steps[0].after)
    ]
    run = next(run for run in readings.runs if clean(run.id) == points[1].run)
    return HistoryChange(
        id=digest([axis.id, before.identity, after.identity])[:SHORT],
        axis=axis.id,
        lane=axis.lane,
        title=axis.title,
        is_exact=axis.is_exact,
        before=before,
        after=after,
        benchmarks=tuple(
            ChangedBenchmark(
                benchmark=step.benchmark.name,
                recipe=step.line.recipe,
                unit=step.benchmark.unit,
                before=step.levels[0],
                after=step.levels[1],
                ratio=step.ratio,
                is_worse=step.is_worse,
            )
            for step in steps
        ),
        worse=worse,
        better=len(steps) - worse,
        also_differs=tuple(
            f"{name}: {old} → {new}"
            for name, old, new in (
                ("compiler", points[0].compiler, points[1].compiler),
                ("configuration", points[0].config, points[1].config),
            )
            if old != new
        ),
        run_before=points[0].run,
        run_after=points[1].run,
        bisect=_bisect(before, after, steps, run),
        explain=_explain(before, after, steps, run, (points[0].run, points[1].run)),
    )


def _repository(before: HistoryKernel, after: HistoryKernel) -> str | None:
    """Return the directory of the repository that has both commits, as runs name it; None if there is none."""
    found = REPOSITORY.fullmatch(after.spec)
    return found[1] if found and before.commit and after.commit else None


def _bisect(before: HistoryKernel, after: HistoryKernel, steps: Sequence[_Step], run: RunFacts) -> str:
    repository = _repository(before, after)
    if repository is None or before.commit is None or after.commit is None:
        return ""
    line = steps[0].line
    own = [step for step in steps if step.line.recipe == line.recipe and step.is_worse == steps[0].is_worse]
    names = list(dict.fromkeys(step.benchmark.name for step in own))
    recipe = ",".join(f"{key}={value}" for key, value in _scalars(line.settings).items())
    words = ["kdyno", "bisect", f"{repository}#{before.commit[:SHORT]}..{after.commit[:SHORT]}", *_tests(own)]
    words += ["--benchmark", ",".join(names)] if len(names) <= MOST_NAMED else []
    words += ["--recipe", recipe] if recipe else []
    words += _options(run)
    words += [] if steps[0].is_worse else ["--better"]
    others = [key for key in line.settings if key not in SCALARS]
    return shlex.join(words) + (f"  # the recipe has more: {', '.join(map(clean, others))}" if others else "")


def _explain(
    before: HistoryKernel, after: HistoryKernel, steps: Sequence[_Step], run: RunFacts, runs: tuple[str, str]
) -> str:
    """Return the commands that measure both kernels in one run and explain the largest change; without a repository,
    the one that compares the two runs.
    """
    repository = _repository(before, after)
    if repository is None or before.commit is None or after.commit is None:
        return shlex.join(["kdyno", "compare", *(name[:SHORT] for name in runs)])
    scalars = _scalars(steps[0].line.settings)
    recipe = "".join(f",{key}={value}" for key, value in scalars.items())
    sides = [f"git:{repository}#{commit[:SHORT]}{recipe}" for commit in (before.commit, after.commit)]
    name = "+".join([after.commit[:SHORT], *(f"{key}-{value}" for key, value in scalars.items())])
    first = shlex.join(["kdyno", "ab", *sides, *_tests(steps[:1]), *_options(run)])
    return f"{first} && {shlex.join(['kdyno', 'explain', 'latest', name, steps[0].benchmark.name])}"


def _tests(steps: Sequence[_Step]) -> list[str]:
    return ["-t", ",".join(dict.fromkeys(step.benchmark.test for step in steps))]


def _scalars(settings: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(settings[key]) for key in SCALARS if isinstance(settings.get(key), str) and settings[key]}


def _options(run: RunFacts) -> list[str]:
    """Return the options that make a command's kernels those of a run: configuration, machine, lane."""
    try:
        experiment = plain_json.parse(run.experiment)
    except ValueError:
        experiment = None
    config = experiment.get("config") if isinstance(experiment, dict) else None
    machine = run.machine.get("type")
    return [
        *(["--config", clean(config)] if isinstance(config, str) and config != "dyno" else []),
        *(["--machine", clean(machine)] if isinstance(machine, str) and machine != kind_named({}) else []),
        *(["--lane", run.lane] if run.lane != DEFAULT_LANE.name else []),
    ]
