"""Compares the model with the processor on functions of a kernel's lib/ in user space.

Each function is compiled with several sets of options. The same programs are timed natively, and counted under
`qemu-x86_64` with the emulated PMU. The compared value is the ratio of two sets' cycles. docs/cycle-model.md,
"Calibration", describes how cycles of a processor are measured with a counter of fixed frequency.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.base.installed import find_program
from kdyno.base.packages import install_advice
from kdyno.base.state import State
from kdyno.base.talk import Advance, Talk
from kdyno.kernel.source import fetch
from kdyno.kernel.toolchain import installed
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.measure import QEMU_USER, counting_command, require_user_plugins
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.guest.pmu import find_plugin
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.understand.validate.library_build import (
    UNITS,
    LibraryUnit,
    NothingToCompile,
    OptionSet,
    Workshop,
    all_loads,
    compilers,
    default_sets,
)

BEAT = 3000
"""The number of additions in the chains before and after a turn, each a cycle. BEAT of data/clock.h."""
TURNS = 12
"""The number of marked turns of a load. The first WARM_UPS warm caches and predictor, as earlier turns do natively."""
WARM_UPS = 4
NEEDED_FOR = "comparing model and processor on a kernel's functions"

Load = tuple[str, int]
"""The name of a unit, and the index of a load in its program."""


class SetsDisagree(InfrastructureError):
    message = "{load} gives different results with {one} and with {other}, so that its figures are invalid"
    hint = "report it with the versions of the compilers: a compiler, the tree or a load of kdyno has a mistake"


class ProgramBroken(InfrastructureError):
    message = "{program} did not run as expected: {why}"
    hint = "run it by hand to see its output: PROGRAM native 0 10"


@dataclass(frozen=True, eq=False)
class LibraryMeasurements:
    """The measurements of L loads with S option sets."""

    loads: tuple[str, ...]
    sets: tuple[str, ...]
    native: NDArray[np.float64]
    """Cycles of the processor, of shape (passes, L, S)."""
    modelled: NDArray[np.float64]
    """Cycles of the model, of shape (L, S)."""
    instructions: NDArray[np.float64]
    """Instructions, of shape (L, S)."""


@dataclass(frozen=True)
class Library:
    """The measurements of a library with their source, family and flags."""

    measured: LibraryMeasurements
    source: str
    """The origin and version of the tree: `linux-source-6.12 6.12.95-1 (6.12.95)`."""
    family: Family
    flags: dict[str, tuple[str, ...]]
    """By option set, all flags of the compiler that affect code."""
    notes: tuple[str, ...]
    """The omitted parts with their reasons."""


def measure_library(
    spec: str,
    family: Family,
    state: State,
    talk: Talk,
    *,
    sets: Sequence[OptionSet] | None = None,
    units: Sequence[LibraryUnit] = UNITS,
    times: int = 50,
    passes: int = 7,
) -> Library:
    """Compile, count and time; `times` runs in each of `passes` (2 at least), in which the option sets take turns.

    Raises the errors of `fetch` for a missing source, ProgramMissing and NoUserPlugins without QEMU,
    NoMakefileFlags, TooFewSets, NothingToCompile, and SetsDisagree where results differ.
    """
    plugin = find_plugin()
    find_program(QEMU_USER, NEEDED_FOR, install_advice("qemu-user"))
    source = fetch(spec, state, talk.say)
    with state.scratch("library") as scratch:
        usable, left_out = compilers(sets or default_sets(installed()), source.tree, scratch, state)
        workshop = Workshop(source.tree, usable, scratch)
        programs, lacking = _build_programs(workshop, units, talk)
        if not programs:
            raise NothingToCompile(tree=source.tree, why="; ".join(lacking))
        bench = LibraryBench(programs, family, plugin, scratch)
        with talk.working("counting under QEMU") as advance:
            model_counts = bench.count(advance)
        with talk.working("timing on this CPU") as advance:
            native = bench.time(times, passes, advance)
        return Library(
            measured=LibraryMeasurements(bench.names, bench.sets, native, *model_counts),
            source=f"{source.identity.origin} ({source.identity.version})",
            family=family,
            flags={compiler.options.name: compiler.flags for compiler in usable},
            notes=(*left_out, *lacking),
        )


def _build_programs(
    workshop: Workshop, units: Sequence[LibraryUnit], talk: Talk
) -> tuple[dict[str, dict[str, Path]], tuple[str, ...]]:
    """Build the programs by unit and option set; return them, and a note for each unit without programs."""
    programs_by_unit, lacking = dict[str, dict[str, Path]](), list[str]()
    with talk.working("compiling") as advance:
        for number, unit in enumerate(units):
            advance(number, len(units), unit.name)
            programs = workshop.programs(unit)
            if isinstance(programs, str):
                lacking.append(f"{unit.name}: left out: {programs}")
            else:
                programs_by_unit[unit.name] = programs
    return programs_by_unit, tuple(lacking)


class LibraryBench:
    """Runs the programs natively and under QEMU, and compares their results."""

    def __init__(self, made: Mapping[str, Mapping[str, Path]], family: Family, plugin: Path, scratch: Path) -> None:
        self.made, self.family, self.plugin, self.scratch = made, family, plugin, scratch
        by_unit = all_loads(made)
        self.loads: tuple[Load, ...] = tuple((unit, place) for unit in made for place in range(len(by_unit[unit])))
        self.names = tuple(by_unit[unit][place] for unit, place in self.loads)
        self.sets = tuple(next(iter(made.values())))
        self.digests = dict[Load, tuple[str, int]]()
        """The first result of each load: where it was computed, and its digest."""

    def time(self, times: int, passes: int, advance: Advance) -> NDArray[np.float64]:
        """Return native cycles of shape (passes, L, S). Sets take turns, and each pass begins with another one."""
        native = np.empty((passes, len(self.loads), len(self.sets)))
        for number in range(passes):
            for row, load in enumerate(self.loads):
                advance(number * len(self.loads) + row, passes * len(self.loads), self.names[row])
                for turn in range(len(self.sets)):
                    column = (turn + number) % len(self.sets)
                    native[number, row, column] = self._time_load(load, self.sets[column], times)
        return native

    def _time_load(self, load: Load, options: str, times: int) -> float:
        program = self.made[load[0]][options]
        turns = process.output([program, "native", str(load[1]), str(times)], guarded=False).split("\n")[:-1]
        self._agree(load, f"{options}, natively,", int(turns[-1]))
        return cycles_of([[int(number) for number in turn.split()] for turn in turns[:-1]])

    def count(self, advance: Advance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return modelled cycles and instructions of one turn, each of shape (L, S)."""
        modelled = np.empty((len(self.loads), len(self.sets)))
        instructions = np.empty_like(modelled)
        for number, (unit, programs) in enumerate(self.made.items()):
            advance(number, len(self.made), unit)
            for column, (options, program) in enumerate(programs.items()):
                record = self._count_unit(unit, options, program)
                for row, (_, place) in ((row, load) for row, load in enumerate(self.loads) if load[0] == unit):
                    events = warm_iterations(record, place, self.names[row])
                    modelled[row, column] = float(cycles(events, record.names, self.family))
                    instructions[row, column] = events[record.names.index("instructions")]
        return modelled, instructions

    def _count_unit(self, unit: str, options: str, program: Path) -> PmuRecord:
        out = self.scratch / "library.kpmu"
        command: list[str | Path] = [
            *counting_command(self.plugin, self.family, out),
            "-cpu",
            "max",
            program,
            "marked",
            str(TURNS),
        ]
        with require_user_plugins():
            digests = process.output(command, guarded=True)
        for place, digest in enumerate(digests.split()):
            self._agree((unit, place), f"{options} under QEMU", int(digest))
        return read_pmu_record(out)

    def _agree(self, load: Load, run_text: str, digest: int) -> None:
        """Raise SetsDisagree unless a load gives the same result with all option sets, natively and under QEMU."""
        first_run, known_digest = self.digests.setdefault(load, (run_text, digest))
        if digest != known_digest:
            name = self.names[self.loads.index(load)]
            raise SetsDisagree(load=name, one=run_text, other=first_run)


def cycles_of(turns: Sequence[Sequence[int]]) -> float:
    """Return the processor cycles of a turn, from turns of (ticks, ticks of BEAT additions before, after). Pure.

    It is the tenth percentile of many turns. Noise nearly always lengthens a turn. If it lengthens the additions
    instead, the turn seems too short. crates/probe/src/run.rs does the same.
    """
    rows = np.array(turns, np.float64)
    lengths = np.sort(rows[:, 0] * BEAT / np.minimum(rows[:, 1], rows[:, 2]))
    return float(lengths[len(lengths) // 10])


def warm_iterations(record: PmuRecord, place: int, name: str) -> NDArray[np.float64]:
    """Return the events of one turn, of shape (E,): the mean of the turns after the warm-ups. Raises ProgramBroken."""
    region = record.regions.get(place)
    iterations = region.iterations if region else {}
    warm = [turn for turn in sorted(iterations) if turn >= WARM_UPS]
    if len(warm) != TURNS - WARM_UPS:
        raise ProgramBroken(program=name, why=f"the PMU counted {len(warm)} of {TURNS - WARM_UPS} turns")
    return np.asarray(np.mean([iterations[turn].sum(axis=0, dtype=np.float64) for turn in warm], axis=0))
