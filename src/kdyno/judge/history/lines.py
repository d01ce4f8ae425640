"""From the values of all runs to axes, lines and points. Pure.

On one axis is what may be compared: one lane, machine, agent, CPU family and workload; one seed where samples repeat;
one host where it changes samples. The machine's facts name its agent and family.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy import special

from kdyno.base.frozen import digest
from kdyno.base.lanes import LANES
from kdyno.base.machine_facts import recorded_pmu_clock
from kdyno.base.measurement import Benchmark
from kdyno.base.text import clean
from kdyno.judge.history.divisive import WINDOW
from kdyno.judge.history.model import HistoryAxis, HistoryBenchmark, HistoryKernel, HistoryLine, HistoryPoint
from kdyno.store import plain_json
from kdyno.store.series import BootPlaceFacts, BuiltFrom, RunFacts, SeriesRows, VariantFacts, by_boot

COVERAGE = 0.95
TITLE_FACTS = ("type", "platform", "accel", "cpu", "cpus")
"""The facts of a machine that its title names."""
DIGITS = 12
NUMBERS = re.compile(r"\d{1,9}")
CANDIDATE = re.compile(r"-rc(\d{1,4})")
DISTANCE = re.compile(r"-(\d{1,9})-g[0-9a-f]{7,40}$")
"""The end of `git describe`: the commits since the tag."""
UNSET: tuple[Any, ...] = (None, False, "none", [], {})
"""The values of settings that a recipe leaves alone."""
SOURCE_KEYS = ("source", "image")


_clean = lru_cache(maxsize=1 << 16)(clean)


@dataclass
class _Reading:
    """The values of one kernel by one recipe, in one benchmark."""

    logs: list[float] = field(default_factory=list)
    seeds: list[int] = field(default_factory=list)
    layouts: list[int] = field(default_factory=list)
    boots: set[int] = field(default_factory=set)
    variant: VariantFacts | None = None
    newest: RunFacts | None = None


LineKey = tuple[str, str]
"""The name of a variant, and the digest of its recipe."""
BenchmarkKey = tuple[str, str, str, str]
"""Name, test, unit, direction: the same name with another meaning is another benchmark."""


@dataclass
class AxisReadings:
    """What is on one axis, before it has points."""

    runs: list[RunFacts] = field(default_factory=list)
    first_runs: dict[str, RunFacts] = field(default_factory=dict)
    sources: dict[str, BuiltFrom] = field(default_factory=dict)
    """By the identity of a kernel."""
    readings: dict[BenchmarkKey, dict[LineKey, dict[str, _Reading]]] = field(default_factory=dict)
    settings: dict[LineKey, dict[str, Any]] = field(default_factory=dict)
    descriptions: dict[BenchmarkKey, str] = field(default_factory=dict)

    def by_seed(self, benchmark: BenchmarkKey, line: LineKey, identity: str) -> dict[int, float]:
        """Return the logarithms of the values by seed; the mean where a seed was booted several times."""
        reading = self.readings[benchmark][line][identity]
        logs = defaultdict(list)
        for seed, log in zip(reading.seeds, reading.logs, strict=True):
            logs[seed].append(log)
        return {seed: sum(values) / len(values) for seed, values in logs.items()}


def read_axes(rows: SeriesRows) -> tuple[dict[str, AxisReadings], int]:
    """Return the readings by the id of their axis, and the number of runs without a kernel of a known source."""
    variants = {(variant.run, variant.name): variant for variant in rows.variants}
    of_boot = by_boot(rows.values)
    keys = {number: _benchmark_key(benchmark) for number, benchmark in rows.benchmarks.items()}
    axis_by_run = {run.id: _axis_id(run) for run in rows.runs.values()}
    axes: dict[str, AxisReadings] = defaultdict(AxisReadings)
    settings_of: dict[tuple[str, str], tuple[LineKey, dict[str, Any]]] = {}
    placed: dict[str, set[str]] = defaultdict(set)
    for place in rows.places:
        run, variant = rows.runs.get(place.run), variants.get((place.run, place.variant))
        if run is None or variant is None or not variant.images:
            continue
        identity = _identity(variant.images[0])
        axis = axes[axis_by_run[run.id]]
        placed[axis_by_run[run.id]].add(run.id)
        if (run.id, variant.name) not in settings_of:
            settings_of[run.id, variant.name] = _line(variant)
        line, settings = settings_of[run.id, variant.name]
        axis.settings.setdefault(line, settings)
        axis.sources.setdefault(identity, variant.images[0])
        axis.first_runs.setdefault(identity, run)
        if run.created < axis.first_runs[identity].created:
            axis.first_runs[identity] = run
        for number, log in of_boot.get(place.boot, ()):
            axis.descriptions[keys[number]] = rows.benchmarks[number].description
            _add(axis, keys[number], line, identity, place, log, run, variant)
    for key, ids in placed.items():
        axes[key].runs = [rows.runs[run_id] for run_id in ids]
    return dict(axes), len(rows.runs) - sum(len(ids) for ids in placed.values())


def _add(
    axis: AxisReadings,
    benchmark: BenchmarkKey,
    line: LineKey,
    identity: str,
    place: BootPlaceFacts,
    log: float,
    run: RunFacts,
    variant: VariantFacts,
) -> None:
    by_line = axis.readings.setdefault(benchmark, {})
    reading = by_line.setdefault(line, {}).setdefault(identity, _Reading())
    if reading.newest is None or run.created >= reading.newest.created:
        reading.newest, reading.variant = run, variant
    if place.boot not in reading.boots:  # runs share boots
        reading.boots.add(place.boot)
        reading.logs.append(log)
        reading.seeds.append(place.seed)
        reading.layouts.append(place.layout_index)


def make_axis(key: str, readings: AxisReadings) -> HistoryAxis:
    """Return an axis with its lines."""
    newest = max(readings.runs, key=lambda run: run.created)
    lane = LANES[newest.lane]
    kernels = sort_kernels(
        HistoryKernel(
            identity=clean(identity),
            version=clean(built.source.version),
            origin=clean(built.source.origin),
            spec=clean(built.source.spec),
            first_run=readings.first_runs[identity].created,
        )
        for identity, built in readings.sources.items()
    )
    place_by_identity = {kernel.identity: place for place, kernel in enumerate(kernels)}
    names = line_names(readings.settings)
    return HistoryAxis(
        id=key,
        lane=newest.lane,
        is_exact=lane.is_repeatable,
        margin=max(run.margin for run in readings.runs),
        machine=newest.machine,
        host=newest.host if lane.is_disturbed_by_host else None,
        title=_title(newest),
        runs=len(readings.runs),
        newest=newest.created,
        kernels=tuple(kernels),
        benchmarks=tuple(
            HistoryBenchmark(
                name=clean(benchmark[0]),
                test=clean(benchmark[1]),
                unit=clean(benchmark[2]),
                direction="lower" if benchmark[3] == "lower" else "higher",
                description=clean(readings.descriptions[benchmark]),
                lines=tuple(
                    HistoryLine(
                        recipe=names[line],
                        settings=readings.settings[line],
                        variant=clean(line[0]),
                        points=tuple(
                            sorted(
                                (
                                    _point(place_by_identity[clean(name)], reading)
                                    for name, reading in by_kernel.items()
                                ),
                                key=lambda point: point.kernel,
                            )
                        ),
                    )
                    for line, by_kernel in by_line.items()
                ),
            )
            for benchmark, by_line in readings.readings.items()
        ),
        left_out=0 if lane.is_repeatable else max(0, len(kernels) - WINDOW),
    )


def sort_kernels(kernels: Iterable[HistoryKernel]) -> list[HistoryKernel]:
    """Return kernels in the order of the axis: by version, by the commits since the tag, by their first run."""
    return sorted(kernels, key=_order)


def line_names(settings: Iterable[LineKey]) -> dict[LineKey, str]:
    """Return a name for each line: that of the variant, with a digest where several recipes have it."""
    lines = list(settings)
    counts: dict[str, int] = defaultdict(int)
    for name, _ in lines:
        counts[name] += 1
    return {line: clean(line[0]) if counts[line[0]] == 1 else f"{clean(line[0])} ({line[1][:6]})" for line in lines}


def _order(kernel: HistoryKernel) -> tuple[tuple[int, ...], float, int, Any, str]:
    head, _, _ = kernel.version.partition("-")
    candidate, distance = CANDIDATE.search(kernel.version), DISTANCE.search(kernel.origin)
    return (
        tuple(map(int, NUMBERS.findall(head)[:5])),
        int(candidate[1]) if candidate else float("inf"),
        int(distance[1]) if distance else 0,
        kernel.first_run,
        kernel.identity,
    )


def _point(kernel: int, reading: _Reading) -> HistoryPoint:
    assert reading.newest is not None and reading.variant is not None
    built = reading.variant.images[0]
    logs = np.array(reading.logs)
    layouts = np.array(reading.layouts)
    if len(set(reading.layouts)) > 1:  # the layout is the unit, as in verdicts
        logs = np.array([logs[layouts == layout].mean() for layout in np.unique(layouts)])
    middle, half = float(logs.mean()), _half_width(logs)
    return HistoryPoint(
        kernel=kernel,
        value=float(np.exp(middle)),
        low=None if half is None else float(np.exp(middle - half)),
        high=None if half is None else float(np.exp(middle + half)),
        boots=len(reading.boots),
        run=_clean(reading.newest.id),
        compiler=_clean(built.toolchain.banner),
        config=_clean(f"{built.base} {built.config_sha256[:DIGITS]}"),
    )


def _half_width(logs: np.ndarray[Any, np.dtype[np.float64]]) -> float | None:
    """Return half of the interval of a mean; None for one value."""
    if len(logs) < 2:
        return None
    return float(special.stdtrit(len(logs) - 1, (1 + COVERAGE) / 2) * logs.std(ddof=1) / np.sqrt(len(logs)))


def _axis_id(run: RunFacts) -> str:
    lane = LANES[run.lane]
    facts = {
        "lane": run.lane,
        "machine": run.machine,
        "workload": _workload(run),
        "seed": run.seed if lane.is_repeatable else None,
        "host": run.host if lane.is_disturbed_by_host else None,
    }
    return digest(facts)[:DIGITS]


def _workload(run: RunFacts) -> object:
    try:
        experiment = plain_json.parse(run.experiment)
    except ValueError:
        return None
    return experiment.get("workload") if isinstance(experiment, dict) else None


def _title(run: RunFacts) -> str:
    facts: Mapping[str, Any] = run.machine
    words = [
        f"{name} {facts[name]}" if name == "cpus" else str(facts[name]).partition(",")[0]  # QEMU's CPU has its flags
        for name in TITLE_FACTS
        if facts.get(name)
    ]
    words += filter(None, [recorded_pmu_clock(facts)])
    host = run.host.get("cpu") if LANES[run.lane].is_disturbed_by_host else None
    return clean(", ".join([f"{run.lane}: {' '.join(words) or 'machine'}", *([str(host)] if host else [])]))


def _identity(built: BuiltFrom) -> str:
    patches = f" + {digest(list(built.patches))[:DIGITS]}" if built.patches else ""
    return f"{built.source.identity}{patches}"


def _line(variant: VariantFacts) -> tuple[LineKey, dict[str, Any]]:
    settings = {name: value for name, value in variant.recipe.items() if name not in SOURCE_KEYS and value not in UNSET}
    return (variant.name, digest(settings)), settings


def _benchmark_key(benchmark: Benchmark) -> BenchmarkKey:
    return benchmark.name, benchmark.test, benchmark.unit, benchmark.direction
