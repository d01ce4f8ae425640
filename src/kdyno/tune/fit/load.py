"""From the words of a user to the load that a kernel is fitted to."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.measure.guest.agent import ALL, catalogue
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.definition import SUFFIX, own_names
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.programs import ProgramsWorkload


class UnknownLoad(UserError):
    message = "{name} is neither a workload nor a test"
    hint = (
        "did you mean {near}? `kdyno workload list` and `kdyno-agent list` show all; a workload of yours is ./NAME.toml"
    )


def load_of(names: Sequence[str]) -> WorkloadSettings:
    """Tests and suites of the agent, workloads by name or file. Raises UnknownLoad and what reading a file raises."""
    tests = catalogue().tests
    known = {ALL, *(test.name for test in tests), *(test.suite for test in tests if test.suite)}
    own = own_names()
    for name in names:
        if name not in known and name not in own and not (name.endswith(SUFFIX) or "/" in name):
            [near] = difflib.get_close_matches(name, [*own, *sorted(known)], n=1, cutoff=0)
            raise UnknownLoad(name=name, near=near)
    chosen = tuple(name for name in names if name in known)
    programs = tuple(name for name in names if name not in known)
    if not programs:
        return LmbenchWorkload(tests=chosen)
    return ProgramsWorkload(use=programs, tests=chosen).located(Path())
