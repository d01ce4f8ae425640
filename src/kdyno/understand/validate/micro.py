"""`kdyno validate --micro`: compares the model with the known cycles of micro-programs.

All programs are assembled into one static program, with the driver of the library loads (data/validate/driver.c). It
runs natively, if this processor is of the family, and under `qemu-x86_64` with the emulated PMU.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

from kdyno.base import process
from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.frozen import Frozen
from kdyno.base.installed import find_program
from kdyno.base.packages import install_advice
from kdyno.base.talk import Advance, Talk
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.host import UnknownCpu, find_family
from kdyno.measure.cycles.measure import QEMU_USER, counting_command, require_user_plugins
from kdyno.measure.cycles.micro_programs import TimedLoop, assembly, programs_known_on
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.guest.pmu import find_plugin
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.understand.validate.library import ProgramBroken, cycles_of

NEEDED_FOR = "validating the model on micro-programs"
FLAGS = ("-O2", "-ffreestanding", "-fno-stack-protector", "-fno-pie", "-w")
LINK_FLAGS = ("-static", "-nostdlib", "-no-pie", "-Wl,--build-id=none")
MARKED_TURNS = 2
"""The first turn warms up caches and predictor, the second counts; both execute the same code."""
TIMES = 50
"""The number of native turns in a pass; the tenth percentile counts."""


class MicroResult(Frozen):
    """One program, in cycles of an iteration."""

    program: str
    group: str
    source: str
    known: float
    native: float | None
    """On this processor, the minimum of all passes; None: it is of another family."""
    modelled: float
    is_close: bool
    """True if the modelled cycles are within the tolerance."""
    known_error: str | None


class MicroReport(Frozen):
    """The outcome of `kdyno validate --micro`."""

    family: str
    model: str
    """The name of the model, with its error on programs."""
    cpu: str | None
    """This processor, if it was timed."""
    results: tuple[MicroResult, ...]
    close: int
    """The number of programs within the tolerance."""
    median_error: float
    """The median of |modelled / known − 1|."""
    median_native_error: float | None
    """The median of |native / known − 1|; None: nothing was timed."""
    known_errors: dict[str, tuple[str, ...]]
    """The programs outside of the tolerance with a known reason, by reason."""
    unexpected: tuple[str, ...]
    """The programs outside of the tolerance without a known reason, or within it despite one."""


def measure_micro_programs(family: Family, talk: Talk, *, passes: int = 3, cpu: Cpu | None = None) -> MicroReport:
    """Assemble, count and time the programs that are known on a family.

    Raises NoKnownCycles, and ProgramMissing and NoUserPlugins without gcc or QEMU.
    """
    known = programs_known_on(family)
    cpu = cpu or read_cpu()
    with tempfile.TemporaryDirectory(prefix="kdyno-") as directory:
        bench = MicroBench([program for program, _ in known.values()], Path(directory))
        with talk.working("counting under QEMU"):
            modelled = bench.count(family)
        native = None
        if is_of_family(cpu, family):
            with talk.working("timing on this CPU") as advance:
                native = bench.time(passes, advance)
    return report_of(family, modelled, native, None if native is None else cpu)


def is_of_family(cpu: Cpu, family: Family) -> bool:
    """Return whether a processor is of a family, so that its cycles are those of the model."""
    try:
        return bool(set(find_family(cpu).march) & set(family.march))
    except UnknownCpu:
        return False


class MicroBench:
    """Builds the programs in a directory, and runs them. Raises ProgramMissing."""

    def __init__(self, programs: Sequence[TimedLoop], directory: Path) -> None:
        compiler = find_program("gcc", NEEDED_FOR, install_advice("gcc"))
        self.programs, self.directory = tuple(programs), directory
        self.executable = directory / "micro-programs"
        source = directory / "micro-programs.s"
        source.write_text(assembly(self.programs), encoding="ascii")
        data = Path(str(files("kdyno"))) / "data" / "validate"
        process.output(
            [compiler, *FLAGS, *LINK_FLAGS, "-I", data, data / "driver.c", source, "-o", self.executable], guarded=True
        )

    def count(self, family: Family) -> dict[str, float]:
        """Return modelled cycles of an iteration, by program. Raises ProgramMissing and NoUserPlugins."""
        plugin = find_plugin()
        find_program(QEMU_USER, NEEDED_FOR, install_advice("qemu-user"))
        out = self.directory / "micro-programs.kpmu"
        command = counting_command(plugin, family, out)
        with require_user_plugins():
            process.output([*command, "-cpu", "max", self.executable, "marked", str(MARKED_TURNS)], guarded=True)
        record = read_pmu_record(out)
        modelled = {}
        for index, program in enumerate(self.programs):
            region = record.regions.get(index)
            if region is None or len(region.iterations) != MARKED_TURNS:
                raise ProgramBroken(program=program.name, why=f"the PMU didn't count {MARKED_TURNS} turns of it")
            events = region.iterations[MARKED_TURNS - 1].sum(axis=0)
            modelled[program.name] = float(cycles(events, record.names, family)) / program.iterations
        return modelled

    def time(self, passes: int, advance: Advance) -> dict[str, float]:
        """Return this processor's cycles of an iteration, by program: the minimum of all passes."""
        native: dict[str, float] = {}
        for number in range(passes):
            for index, program in enumerate(self.programs):
                advance(number * len(self.programs) + index, passes * len(self.programs), program.name)
                lines = process.output([self.executable, "native", str(index), str(TIMES)]).splitlines()
                turns = [[int(ticks) for ticks in line.split()] for line in lines[:-1]]
                taken = cycles_of(turns) / program.iterations
                native[program.name] = min(taken, native.get(program.name, taken))
        return native


def report_of(
    family: Family, modelled: Mapping[str, float], native: Mapping[str, float] | None, cpu: Cpu | None
) -> MicroReport:
    """Return the report on modelled and native cycles by program, of all programs that are known on the family."""
    results = tuple(
        MicroResult(
            program=name,
            group=program.group,
            source=known.source,
            known=known.cycles,
            native=None if native is None else native[name],
            modelled=modelled[name],
            is_close=known.is_met(modelled[name]),
            known_error=known.known_error,
        )
        for name, (program, known) in programs_known_on(family).items()
    )
    known_errors: dict[str, tuple[str, ...]] = {}
    for result in results:
        if result.known_error and not result.is_close:
            known_errors[result.known_error] = (*known_errors.get(result.known_error, ()), result.program)
    return MicroReport(
        family=family.name,
        model=family.caption(),
        cpu=None if cpu is None else cpu.name,
        results=results,
        close=sum(result.is_close for result in results),
        median_error=statistics.median(abs(result.modelled / result.known - 1) for result in results),
        median_native_error=None
        if native is None
        else statistics.median(abs(native[result.program] / result.known - 1) for result in results),
        known_errors=known_errors,
        unexpected=tuple(result.program for result in results if result.is_close == bool(result.known_error)),
    )
