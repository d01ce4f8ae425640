"""The emulated PMU: what an experiment may say of it, the plugin that QEMU loads, and its counts as samples."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import kdyno
from kdyno.errors import InfrastructureError
from kdyno.frozen import Frozen
from kdyno.store.records import INT64_MAX, Benchmark, Sample

if TYPE_CHECKING:
    from kdyno.cycles.family import Family
    from kdyno.instrument.pmu_record import PmuRecord

Events = Literal["edges", "all"]
Clock = Literal["cycles", "instructions"]

RECORD = "pmu.kpmu"
"""Name of the PMU record in the directory of a boot, and in a recording."""
CYCLE_UNITS = {"instr": "cycles", "B/instr": "B/cycle"}


class PmuConfig(Frozen):
    """The emulated PMU of the model lane: counts of the measured loops alone, and cycles modelled from them."""

    events: Events = "all"
    """`edges`: blocks and branches, cheap; `all`: caches, TLBs and predictor too, which cycles are modelled from."""
    family: str = "zen4"
    """The CPU family whose caches are emulated and whose weights make cycles of events: a name, or `file:PATH`."""
    clock: Clock = "cycles"
    """What a sample is read in: modelled cycles, or instructions of kernel and user code, REP counted once."""


class PluginMissing(InfrastructureError):
    message = "the PMU plugin is not installed with kdyno ({where})"
    hint = "`pip install .` in a kdyno checkout builds and installs it"


class RegionMissing(InfrastructureError):
    message = "the PMU counted nothing for {benchmark}, iteration {iteration}"
    hint = "agent, plugin and kdyno must be of one release: pip install ."


def find_plugin() -> Path:
    """The shared object that QEMU loads: $KDYNO_PMU_PLUGIN, else the one installed in kdyno. Raises PluginMissing.

    A wheel has it as kdyno_pmu.abi3.so; an editable install gives it the suffix of the Python that made it, so that a
    checkout may hold several. The newest is that of the last installation.
    """
    if named := os.environ.get("KDYNO_PMU_PLUGIN"):
        place, plugins = Path(named).absolute(), [Path(named).absolute()]
    else:
        place = Path(kdyno.__file__).parent / "kdyno_pmu.*.so"
        plugins = list(place.parent.glob(place.name))
    existing = [plugin for plugin in plugins if plugin.is_file()]
    if not existing:
        raise PluginMissing(where=place)
    return max(existing, key=lambda plugin: plugin.stat().st_mtime_ns)


def plugin_words(
    plugin: Path, *, out: Path, events: Events, symbols: Path, image: str, geometry: Path | None
) -> tuple[str, ...]:
    """Words of QEMU's command line that load the plugin for a kernel; `image` is the SHA-256 of its vmlinux."""
    options = [f"out={out}", "scope=kernel", f"events={events}", f"symbols={symbols}", f"image={image}"]
    if geometry:
        options.append(f"geometry={geometry}")
    # In QEMU's options a comma begins the next one, and two commas are one.
    return ("-plugin", ",".join(each.replace(",", ",,") for each in (str(plugin), *options)))


def in_units(benchmarks: Sequence[Benchmark], clock: Clock) -> tuple[Benchmark, ...]:
    """Benchmarks as the clock's samples have them; failed boots name theirs in these units too."""
    if clock == "instructions":
        return tuple(benchmarks)
    return tuple(each.model_copy(update={"unit": CYCLE_UNITS.get(each.unit, each.unit)}) for each in benchmarks)


def in_clock(
    samples: Sequence[Sample], benchmarks: Sequence[Benchmark], record: PmuRecord, family: Family, clock: Clock
) -> tuple[Sample, ...]:
    """The samples of a boot, each with what the PMU counted in its region in the place of elapsed guest time. Pure.

    `benchmarks` are in the order of the agent stream, which numbers the regions. A sample is its region's contexts task
    and exception; what interrupts did is left out. `cycles` are modelled by the family's weights;
    `instructions` count a REP string instruction once. Raises RegionMissing.
    """
    import numpy as np

    number = {benchmark.name: index for index, benchmark in enumerate(benchmarks)}
    counts = np.zeros((len(samples), len(record.names)), np.uint64)  # samples x events
    for row, sample in enumerate(samples):
        region = record.regions.get(number[sample.benchmark])
        if region is None or sample.iteration not in region.iterations:
            raise RegionMissing(benchmark=sample.benchmark, iteration=sample.iteration)
        task, exception, _interrupt = region.iterations[sample.iteration]
        counts[row] = task + exception
    if clock == "cycles":
        from kdyno.cycles.predict import cycles

        readings = cycles(counts, record.names, family)
    else:
        both = [column for column, name in enumerate(record.names) if name in ("instructions", "user_instructions")]
        readings = counts[:, both].sum(axis=1).astype(np.float64)
    return tuple(
        sample.model_copy(update={"elapsed": min(max(1, round(reading)), INT64_MAX)})
        for sample, reading in zip(samples, readings.tolist(), strict=True)
    )
