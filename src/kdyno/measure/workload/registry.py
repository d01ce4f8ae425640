"""The workloads that there are: a new one is a file with its class, and a row here."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kdyno.base.frozen import one_of
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.command import CommandWorkload
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.needs import Runner
from kdyno.measure.workload.paths import PathsWorkload
from kdyno.measure.workload.programs import ProgramsWorkload

WORKLOADS: dict[str, type[WorkloadSettings]] = {
    "lmbench": LmbenchWorkload,
    "command": CommandWorkload,
    "programs": ProgramsWorkload,
    "paths": PathsWorkload,
}
"""By `type` in [workload]; the first is the default, and for each runner the first of its own."""


def default_workload(runner: Runner = "agent") -> WorkloadSettings:
    """Return the workload that is meant where none is named."""
    return next(kind for kind in WORKLOADS.values() if kind.runner == runner).model_validate({})


if TYPE_CHECKING:
    WorkloadConfig = WorkloadSettings
else:
    WorkloadConfig = one_of(WORKLOADS)
