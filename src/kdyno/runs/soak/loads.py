"""The workloads that a soak runs side by side: those of kdyno, or those that the user names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from kdyno.base.errors import UserError
from kdyno.base.lanes import TIMED_LANE
from kdyno.measure.guest.job import Program
from kdyno.measure.workload.definition import Definition, Value, definition
from kdyno.measure.workload.named import assigned
from kdyno.measure.workload.needs import Needs
from kdyno.measure.workload.programs import WorkloadOfOtherLane

LANE = TIMED_LANE.name
DEFAULT_LOADS = (
    "build files=5",
    "fio",
    "hackbench",
    "hackbench mode=inet",
    "nginx timeout=60s",
    "perf-bench options=--loop=5000",
    "pgbench transactions=100",
    "redis requests=5000",
    "stress-ng stressor=pipe",
    "stress-ng stressor=fork operations=200",
    "stress-ng stressor=mmap operations=1",
    "sysbench events=20",
)
"""The loads share neither ports nor files. Rounds are short, so that each load has many rounds on an emulator, too."""


class LoadUnclear(UserError):
    message = "--use expects a workload and NAME=VALUE for its parameters, got {words}"
    hint = 'choose one of `kdyno workload list`; an example is --use "stress-ng stressor=fork"'


class LoadTwice(UserError):
    message = "{name} cannot run twice at once: both would use the same files and ports"
    hint = 'give one of them other parameters: --use "nginx port=8200"'


@dataclass(frozen=True)
class SoakLoad:
    """One workload of a soak, with the parameters that differ from its defaults."""

    name: str
    """The name as the user wrote it: `stress-ng stressor=fork`."""
    workload: Definition
    values: Mapping[str, Value]

    def program(self, side_by_side: int = 1) -> Program:
        """Return the program that the agent repeats beside other loads. Raises NoSuchParameter.

        A step that shares the machine with `side_by_side` loads may take as many times longer.
        """
        alone = self.workload.program(self.values, LANE)
        seconds = (alone.seconds or 0) * side_by_side or None
        return alone.model_copy(update={"name": self.name, "seconds": seconds, "measured": None})


def loads_of(named: Sequence[str]) -> tuple[SoakLoad, ...]:
    """Return the named loads, or the default ones.

    Raises LoadUnclear, LoadTwice, WorkloadOfOtherLane, NotAnAssignment and what reading a workload raises.
    """
    loads = tuple(_load(words) for words in named or DEFAULT_LOADS)
    names = [load.name for load in loads]
    for name in names:
        if names.count(name) > 1:
            raise LoadTwice(name=name)
    return loads


def needs(loads: Sequence[SoakLoad]) -> Needs:
    """Return what all loads together need of a guest: packages, Kconfig, and the memory of each."""
    return reduce(Needs.at_once, (load.workload for load in loads), Needs()).of_programs()


def _load(words: str) -> SoakLoad:
    name, *assignments = words.split()[:50] or [""]
    if not name or "=" in name:
        raise LoadUnclear(words=repr(words))
    workload = definition(name)
    values = assigned(assignments, workload)
    if LANE not in workload.lanes:
        raise WorkloadOfOtherLane(
            name=workload.name, lane=LANE, lanes=" and ".join(workload.lanes), first=workload.lanes[0]
        )
    load = SoakLoad(" ".join([workload.name, *assignments]), workload, values)
    load.program()
    return load
