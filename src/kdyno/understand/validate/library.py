"""Does the model rank kernel code as the processor does? Asked of functions of a kernel's lib/, run in user space.

Each function is compiled with several sets of options, timed natively and counted under `qemu-x86_64` with the emulated
PMU: the same programs, to the byte. What counts is the ratio of two sets' cycles. For how a processor's cycles are
measured beside a counter of fixed frequency see docs/cycle-model.md, "Calibration".
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
from kdyno.base.packages import way_to_install
from kdyno.base.state import State
from kdyno.base.talk import Advance, Talk
from kdyno.kernel.source import fetch
from kdyno.kernel.toolchain import installed
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.measure import QEMU_USER, NoUserPlugins
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
"""Additions in the chain that a turn stands between; a cycle each. BEAT of data/validate/driver.c."""
TURNS = 12
"""Marked turns of a load; the first WARM_UPS warm caches and predictor up, as turns before them do natively."""
WARM_UPS = 4
NEEDED_FOR = "comparing model and processor on a kernel's functions"

Load = tuple[str, int]
"""A unit's name, and a load's place in its program."""


class SetsDisagree(InfrastructureError):
    message = "{load} gives another result with {one} than with {other}: no figure of it means anything"
    hint = "a compiler, the tree or kdyno's loads are broken; please report it with the compilers' versions"


class ProgramBroken(InfrastructureError):
    message = "{program} was not run as it should be: {why}"
    hint = "run it by hand to see more: PROGRAM native 0 10"


@dataclass(frozen=True, eq=False)
class LibraryMeasurements:
    """L loads by S option sets."""

    loads: tuple[str, ...]
    sets: tuple[str, ...]
    native: NDArray[np.float64]
    """Cycles of the processor, [number of passes, L, S]."""
    modelled: NDArray[np.float64]
    """Cycles of the model, [L, S]."""
    instructions: NDArray[np.float64]
    """[L, S]"""


@dataclass(frozen=True)
class Library:
    """What was measured, and of what."""

    measured: LibraryMeasurements
    source: str
    """The tree, as it names itself: `linux-source-6.12 6.12.95-1 (6.12.95)`."""
    family: Family
    flags: dict[str, tuple[str, ...]]
    """By option set: all flags of the compiler that decide about code."""
    notes: tuple[str, ...]
    """What was left out, and why."""


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

    Raises the errors of `fetch` for a source that isn't there, ProgramMissing and NoUserPlugins without QEMU,
    NoMakefileFlags, TooFewSets, NothingToCompile, and SetsDisagree where results differ.
    """
    plugin = find_plugin()
    find_program(QEMU_USER, NEEDED_FOR, way_to_install("qemu-user"))
    source = fetch(spec, state, talk.say)
    with state.scratch("library") as scratch:
        usable, left_out = compilers(sets or default_sets(installed()), source.tree, scratch, state)
        workshop = Workshop(source.tree, usable, scratch)
        made, lacking = _made(workshop, units, talk)
        if not made:
            raise NothingToCompile(tree=source.tree, why="; ".join(lacking))
        bench = LibraryBench(made, family, plugin, scratch)
        with talk.working("counting under QEMU") as advance:
            counted = bench.count(advance)
        with talk.working("timing on this CPU") as advance:
            native = bench.time(times, passes, advance)
        return Library(
            measured=LibraryMeasurements(bench.names, bench.sets, native, *counted),
            source=f"{source.identity.origin} ({source.identity.version})",
            family=family,
            flags={compiler.options.name: compiler.flags for compiler in usable},
            notes=(*left_out, *lacking),
        )


def _made(
    workshop: Workshop, units: Sequence[LibraryUnit], talk: Talk
) -> tuple[dict[str, dict[str, Path]], tuple[str, ...]]:
    """Programs by unit and option set, and a note for each unit that has none."""
    made, lacking = dict[str, dict[str, Path]](), list[str]()
    with talk.working("compiling") as advance:
        for done, unit in enumerate(units):
            advance(done, len(units), unit.name)
            programs = workshop.programs(unit)
            if isinstance(programs, str):
                lacking.append(f"{unit.name}: left out: {programs}")
            else:
                made[unit.name] = programs
    return made, tuple(lacking)


class LibraryBench:
    """Runs the programs, natively and under QEMU, and compares what they came to."""

    def __init__(self, made: Mapping[str, Mapping[str, Path]], family: Family, plugin: Path, scratch: Path) -> None:
        self.made, self.family, self.plugin, self.scratch = made, family, plugin, scratch
        by_unit = all_loads(made)
        self.loads: tuple[Load, ...] = tuple((unit, place) for unit in made for place in range(len(by_unit[unit])))
        self.names = tuple(by_unit[unit][place] for unit, place in self.loads)
        self.sets = tuple(next(iter(made.values())))
        self.digests = dict[Load, tuple[str, int]]()
        """Of what each load came to first, and where that was."""

    def time(self, times: int, passes: int, advance: Advance) -> NDArray[np.float64]:
        """Native cycles [passes, L, S]; sets take turns, and begin with another one in each pass."""
        native = np.empty((passes, len(self.loads), len(self.sets)))
        for number in range(passes):
            for row, load in enumerate(self.loads):
                advance(number * len(self.loads) + row, passes * len(self.loads), self.names[row])
                for turn in range(len(self.sets)):
                    column = (turn + number) % len(self.sets)
                    native[number, row, column] = self._timed(load, self.sets[column], times)
        return native

    def _timed(self, load: Load, options: str, times: int) -> float:
        program = self.made[load[0]][options]
        turns = process.output([program, "native", str(load[1]), str(times)], guarded=False).split("\n")[:-1]
        self._agree(load, f"{options}, natively,", int(turns[-1]))
        return cycles_of([[int(number) for number in turn.split()] for turn in turns[:-1]])

    def count(self, advance: Advance) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Modelled cycles and instructions, each [L, S], of one turn."""
        modelled = np.empty((len(self.loads), len(self.sets)))
        instructions = np.empty_like(modelled)
        for done, (unit, programs) in enumerate(self.made.items()):
            advance(done, len(self.made), unit)
            for column, (options, program) in enumerate(programs.items()):
                record = self._counted(unit, options, program)
                for row, (_, place) in ((row, load) for row, load in enumerate(self.loads) if load[0] == unit):
                    events = warm_iterations(record, place, self.names[row])
                    modelled[row, column] = float(cycles(events, record.names, self.family))
                    instructions[row, column] = events[record.names.index("instructions")]
        return modelled, instructions

    def _counted(self, unit: str, options: str, program: Path) -> PmuRecord:
        out = self.scratch / "library.kpmu"
        asked = (self.plugin, f"out={out}", "scope=user", "events=all", f"geometry={self.family.path}")
        # In QEMU's options a comma begins the next one, and two commas are one.
        words = ",".join(str(option).replace(",", ",,") for option in asked)
        try:
            command = (QEMU_USER, "-cpu", "max", "-plugin", words, program, "marked", str(TURNS))
            digests = process.output(command, guarded=True)
        except process.ToolFailed as error:
            if "unknown option 'plugin'" in str(error):
                raise NoUserPlugins(tool=QEMU_USER) from error
            raise
        for place, digest in enumerate(digests.split()):
            self._agree((unit, place), f"{options} under QEMU", int(digest))
        return read_pmu_record(out)

    def _agree(self, load: Load, where: str, digest: int) -> None:
        """Raise SetsDisagree unless a load comes to the same with every set of options, natively and under QEMU."""
        first, known = self.digests.setdefault(load, (where, digest))
        if digest != known:
            name = self.names[self.loads.index(load)]
            raise SetsDisagree(load=name, one=where, other=first)


def cycles_of(turns: Sequence[Sequence[int]]) -> float:
    """Cycles of the processor that a turn takes, of turns of (ticks, ticks of BEAT additions before, after). Pure.

    Of many turns the tenth percentile: noise nearly always lengthens one, but where it lengthens the additions
    instead, the turn seems too short. As crates/probe/src/run.rs.
    """
    rows = np.array(turns, np.float64)
    lengths = np.sort(rows[:, 0] * BEAT / np.minimum(rows[:, 1], rows[:, 2]))
    return float(lengths[len(lengths) // 10])


def warm_iterations(record: PmuRecord, place: int, name: str) -> NDArray[np.float64]:
    """Events[E] of one turn: the mean of those that come after the warm-ups. Raises ProgramBroken."""
    region = record.regions.get(place)
    counted = region.iterations if region else {}
    warm = [turn for turn in sorted(counted) if turn >= WARM_UPS]
    if len(warm) != TURNS - WARM_UPS:
        raise ProgramBroken(program=name, why=f"the PMU counted {len(warm)} of {TURNS - WARM_UPS} turns")
    return np.asarray(np.mean([counted[turn].sum(axis=0, dtype=np.float64) for turn in warm], axis=0))
