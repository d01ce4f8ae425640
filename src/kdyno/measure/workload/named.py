"""What a user means by the name of a load, the same for all verbs and for `train` of a profile.

A load is a test or a suite of the agent, one of kdyno's own workloads, a workload file, or an experiment file, whose
workload is meant. Behind a workload may stand values of its parameters: `nginx port=8200`.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_
from pathlib import Path

from pydantic import ValidationError

from kdyno.base.errors import UserError
from kdyno.base.mistakes import problems
from kdyno.measure.guest.agent import ALL, catalogue
from kdyno.measure.paths.table import ALL as ALL_PATHS
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.definition import (
    PROBLEMS_SHOWN,
    Definition,
    Value,
    WorkloadUnfit,
    as_parameter,
    is_experiment,
    is_file,
    own_names,
    read,
)
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.needs import Load, Needs
from kdyno.measure.workload.paths import PathsWorkload
from kdyno.measure.workload.programs import ProgramsWorkload, renamed
from kdyno.measure.workload.registry import WORKLOADS

PATHS = "paths"
"""The load that a kernel runs on itself; a name of a path or of a group may follow a colon."""


class UnknownLoad(UserError):
    message = "{name} is neither a workload nor a test"
    hint = (
        "did you mean {near}? `kdyno workload list` and `kdyno-agent list` show all; a workload of yours is ./NAME.toml"
    )


class ExperimentBesideOthers(UserError):
    message = "{path} is an experiment file, whose workload can't be joined with other loads here"
    hint = "name it alone; or name tests, and the workloads that it uses"


class NotAnAssignment(UserError):
    message = "{word} is not NAME=VALUE, which sets a parameter of a workload"
    hint = "`kdyno workload show NAME` prints the parameters of a workload"


class NoTrainingLoad(UserError):
    message = "nothing can be trained on {named}: its workload (`{type}`) has nothing that the emulated PMU counts"
    hint = "train on tests, on a workload of yours with an [operation], or on one of {trainable}"


class PathsBesideOthers(UserError):
    message = "`train` has {paths} beside {others}: paths are run by a kernel that is a process, the others by a guest"
    hint = "train on one kind; `paths` are all paths, `paths:GROUP` those of a group"


class OneProgramTwice(UserError):
    message = "`train` has the program {program} twice"
    hint = "leave out one of the files, or give one of the workloads another `name`"


def workload_named(name: str) -> WorkloadSettings | None:
    """What a workload, or a workload or experiment file, means; None for any other name, as those of tests.

    Raises WorkloadUnfit and what workloads raise when they are located.
    """
    if is_file(name) and not renamed(name)[0]:
        written, path = read(name)
        if is_experiment(written):
            return _of_experiment(written, path)
    elif not is_file(name) and renamed(name)[1] not in own_names():
        return None
    return ProgramsWorkload(use=(name,)).located(Path())


def _of_experiment(written: Mapping[str, object], path: str) -> WorkloadSettings:
    table = written.get("workload", {})
    kind = str(table.get("type", next(iter(WORKLOADS)))) if isinstance(table, dict) else ""
    if kind not in WORKLOADS:
        raise WorkloadUnfit(path=path, why=f"[workload] has no `type` that there is: {', '.join(WORKLOADS)}")
    try:
        settings = WORKLOADS[kind].model_validate(table)
    except ValidationError as error:
        why = "; ".join(problems(error, WORKLOADS[kind], table)[:PROBLEMS_SHOWN])
        raise WorkloadUnfit(path=path, why=f"[workload]: {why}") from None
    return settings.located(Path(path).parent)


def load_named(names: Sequence[str]) -> WorkloadSettings:
    """All these loads as one workload. Raises UnknownLoad, ExperimentBesideOthers, and what reading a file raises."""
    workloads = {name: workload_named(name) for name in names}
    tests = tuple(name for name in names if workloads[name] is None)
    _require_known(tests)
    programs = tuple(name for name in names if workloads[name] is not None)
    if not programs:
        return LmbenchWorkload(tests=tests)
    if len(names) == 1 and (only := workloads[names[0]]):
        return only
    for name in programs:
        if is_file(name) and not renamed(name)[0] and is_experiment(read(name)[0]):
            raise ExperimentBesideOthers(path=name)
    return ProgramsWorkload(use=programs, tests=tests).located(Path())


def _require_known(tests: Iterable[str]) -> None:
    known = {ALL, *(name for test in catalogue().tests for name in (test.name, test.suite) if name)}
    for name in tests:
        if name not in known:
            [near] = difflib.get_close_matches(name, [*own_names(), *sorted(known)], n=1, cutoff=0)
            raise UnknownLoad(name=name, near=near)


def training_load(names: tuple[str, ...]) -> Load:
    """What is counted of all these loads. Tests keep their names, and those of suites: the agent is not asked.

    Raises NoTrainingLoad, PathsBesideOthers, UnknownPath, OneProgramTwice, and what reading a file raises.
    """
    if path_names := [name for name in names if _is_of_paths(name)]:
        if others := [name for name in names if name not in path_names]:
            raise PathsBesideOthers(paths=", ".join(path_names), others=", ".join(others))
        return PathsWorkload(tests=tuple(name.partition(":")[2] or ALL_PATHS for name in path_names)).load()
    loads = [_counted(name) for name in names]
    programs = [program for load in loads for program in load.programs]
    for program in programs:
        if sum(other.name == program.name for other in programs) > 1:
            raise OneProgramTwice(program=program.name)
    return Load(
        tests=tuple(dict.fromkeys(test for load in loads for test in load.tests)),
        params=reduce(or_, (load.params for load in loads), {}),
        programs=tuple(programs),
        **dict(reduce(or_, loads, Needs())),
    )


def _is_of_paths(name: str) -> bool:
    """Return whether a load is `paths`, or `paths:NAME` for a path or a group."""
    return name.partition(":")[0] == PATHS


def _counted(name: str) -> Load:
    workload = workload_named(name)
    if workload is None:
        return Load(tests=(name,))
    load = workload.load()
    if not load.names:
        trainable = [own for own in own_names() if ProgramsWorkload(use=(own,)).located(Path()).load().names]
        raise NoTrainingLoad(named=name, type=workload.type, trainable=", ".join(trainable))
    return load


def workload_of(definition: Definition, values: Mapping[str, Value]) -> WorkloadSettings:
    """Return the workload that is this program, with values of its parameters."""
    parameters = {definition.name: dict(values)}
    return ProgramsWorkload(use=(definition.name,), parameters=parameters, definitions=(definition,))


def assigned(words: Iterable[str], workload: Definition) -> dict[str, Value]:
    """The parameters that are set by words NAME=VALUE. Raises NotAnAssignment."""
    values: dict[str, Value] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not (name and equals):
            raise NotAnAssignment(word=repr(word))
        values[name] = as_parameter(value, workload.parameters.get(name))
    return values
