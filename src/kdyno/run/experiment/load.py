"""What a profile is trained on: from the names that a user gives to one Load."""

from __future__ import annotations

from functools import reduce
from operator import or_
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.measure.guest.job import Load
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.definition import own_names
from kdyno.measure.workload.programs import ProgramsWorkload
from kdyno.run.experiment.file import read_file


class NoTrainingLoad(UserError):
    message = "nothing can be trained on {named}: its workload (`{type}`) has nothing that the emulated PMU counts"
    hint = "name an experiment whose workload has tests, or programs with an [operation]; or name tests"


class OneProgramTwice(UserError):
    message = "`train` has the program {program} twice"
    hint = "leave out one of the files, or give one of the workloads another `name`"


def training_load(train: tuple[str, ...]) -> Load:
    """What a profile is trained on: tests, suites and own workloads by name, and the workloads of experiment files.

    Raises NoTrainingLoad and OneProgramTwice, and what reading an experiment raises.
    """
    loads = [_load_of(name) for name in train]
    programs = [program for load in loads for program in load.programs]
    for program in programs:
        if sum(other.name == program.name for other in programs) > 1:
            raise OneProgramTwice(program=program.name)
    return Load(
        tests=tuple(dict.fromkeys(test for load in loads for test in load.tests)),
        params=reduce(or_, (load.params for load in loads), {}),
        programs=tuple(programs),
        packages=tuple(dict.fromkeys(package for load in loads for package in load.packages)),
        unpack=reduce(or_, (load.unpack for load in loads), {}),
        memory_mb=max((load.memory_mb for load in loads), default=0),
        kconfig=reduce(or_, (load.kconfig for load in loads), {}),
    )


def _load_of(named: str) -> Load:
    workload: WorkloadSettings
    if named.endswith(".toml"):
        workload = read_file(Path(named)).content.workload.located(Path(named).parent)
    elif named in own_names():
        workload = ProgramsWorkload(use=(named,)).located(Path())
    else:
        return Load(tests=(named,))
    load = workload.load()
    if not load.names:
        raise NoTrainingLoad(named=named, type=workload.type)
    return load
