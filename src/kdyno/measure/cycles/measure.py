"""The programs of kdyno-probe: their times on this host, and the emulated PMU's counts of them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.installed import find_program
from kdyno.base.mistakes import first_fault
from kdyno.base.packages import install_advice
from kdyno.base.process import ToolFailed, failure, output, spawn
from kdyno.base.talk import Advance, Talk
from kdyno.measure.cycles.evaluate import Role
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.probe import MarkedProgram, ProbeProgram, ProgramList, TimedProgram
from kdyno.measure.guest.pmu import find_plugin
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record

QEMU_USER = "qemu-x86_64"
Row = TypeVar("Row", bound=ProbeProgram)


class NoUserPlugins(InfrastructureError):
    message = "{tool} of this host was built without plugins: nothing counts what programs do under it"
    hint = (
        "Debian 12's qemu-user supports plugins, Debian 13's does not; or build QEMU with --enable-plugins, "
        "without --static"
    )


class ProbeBroken(InfrastructureError):
    message = "kdyno-probe and kdyno don't understand each other: {why}"
    hint = "they must be of one release: pip install ."


@dataclass(frozen=True)
class FittedProgram:
    """A program of the probe; its index in the list is its benchmark's in the PMU record."""

    name: str
    kind: str
    role: Role


@dataclass(frozen=True, eq=False)
class FitInput:
    """The data that a fit starts from: P programs, E events."""

    programs: tuple[FittedProgram, ...]
    names: tuple[str, ...]
    """Names of the events."""
    counts: NDArray[np.uint64]
    """[P, E]"""
    passes: NDArray[np.float64]
    """Native cycles of the processor, [number of passes, P]."""

    @property
    def native(self) -> NDArray[np.float64]:
        """Return cycles[P]: the least of all passes."""
        return np.asarray(self.passes.min(axis=0))

    @property
    def spread(self) -> NDArray[np.float64]:
        """Return the ratio of the slowest pass to the fastest, less 1, [P]: 0 means no spread."""
        return np.asarray(self.passes.max(axis=0) / self.native - 1)


def find_probe() -> Path:
    """Return the probe's binary. Raise ProgramMissing."""
    return find_program("kdyno-probe", "a calibration")


def measure(family: Family, *, times: int, passes: int, talk: Talk) -> FitInput:
    """Count every program under the family's hardware, and time it natively, `times` times in each of `passes`."""
    probe, plugin = find_probe(), find_plugin()
    find_program(QEMU_USER, "a calibration", install_advice("qemu-user"))
    programs = _programs(probe)
    with talk.working("counting under QEMU") as advance, tempfile.TemporaryDirectory(prefix="kdyno-") as directory:
        record = _count_programs(probe, plugin, programs, family, Path(directory) / "pmu.kpmu", advance)
    with talk.working("timing on this CPU") as advance:
        rounds = [_time_programs(probe, programs, times, number, passes, advance) for number in range(passes)]
    return FitInput(programs, record.names, last_iterations(record, programs), np.array(rounds, np.float64))


def _programs(probe: Path) -> tuple[FittedProgram, ...]:
    try:
        listed = ProgramList.model_validate_json(output([probe, "list", "--json"]))
    except ValidationError as error:
        raise ProbeBroken(why=f"its list has no programs ({first_fault(error)})") from None
    return tuple(FittedProgram(entry.program, entry.kind, entry.role) for entry in listed.programs)


def _time_programs(
    probe: Path, programs: Sequence[FittedProgram], times: int, number: int, passes: int, advance: Advance
) -> list[float]:
    """Return native cycles of each program, in one pass."""
    cycles = {}
    for row in _rows([probe, "run", "all", "--times", str(times)], TimedProgram):
        cycles[row.program] = row.cycles
        advance(number * len(programs) + len(cycles), passes * len(programs), row.program)
    lacking = [program.name for program in programs if cycles.get(program.name, 0) <= 0]
    if lacking:
        raise ProbeBroken(why=f"there is no time for {lacking[0]}")
    return [cycles[program.name] for program in programs]


def _count_programs(
    probe: Path, plugin: Path, programs: Sequence[FittedProgram], family: Family, record: Path, advance: Advance
) -> PmuRecord:
    with require_user_plugins():
        rows = _rows([*counting_command(plugin, family, record), probe, "run", "all", "--marked"], MarkedProgram)
        for number, row in enumerate(rows, 1):
            advance(number, len(programs), row.program)
    return read_pmu_record(record)


def counting_command(plugin: Path, family: Family, record: Path) -> tuple[str, ...]:
    """Return the words before a program of this host that write its events to `record`, with the family's hardware."""
    options = (plugin, f"out={record}", "scope=user", "events=all", f"geometry={family.path}")
    # In QEMU's options a comma begins the next one, and two commas are one.
    return (QEMU_USER, "-plugin", ",".join(str(option).replace(",", ",,") for option in options))


@contextmanager
def require_user_plugins() -> Iterator[None]:
    """Raise NoUserPlugins, in place of ToolFailed, if QEMU refuses the plugin of a `counting_command`."""
    try:
        yield
    except ToolFailed as error:
        if "unknown option 'plugin'" in str(error):
            raise NoUserPlugins(tool=QEMU_USER) from error
        raise


def _rows(command: Sequence[str | Path], row: type[Row]) -> Iterator[Row]:
    """Run the probe and yield each line of JSON as it comes. Raise ToolFailed if the run fails."""
    with tempfile.TemporaryFile() as errors:
        with spawn(command, stdout=-1, stderr=errors) as child:
            assert child.stdout is not None
            for line in child.stdout:
                try:
                    yield row.model_validate_json(line)
                except ValidationError as error:
                    raise ProbeBroken(why=f"it says {line[:80]!r} ({first_fault(error)})") from None
            status = child.wait()
        if status != 0:
            errors.seek(0)
            raise failure(command, status, errors.read().decode(errors="replace"))


def last_iterations(record: PmuRecord, programs: Sequence[FittedProgram]) -> NDArray[np.uint64]:
    """Return counts[P, E] of each program's last iteration, which the earlier ones warmed up. Pure."""
    rows = []
    for index, program in enumerate(programs):
        region = record.regions.get(index)
        if region is None or not region.iterations:
            raise ProbeBroken(why=f"the PMU counted nothing for {program.name}")
        rows.append(region.iterations[max(region.iterations)].sum(axis=0))
    return np.array(rows, np.uint64)
