"""The workloads that there are: a new one is a file with its class, and a row here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Union

from pydantic import Discriminator, Tag

from kdyno.workload.base import WorkloadSettings
from kdyno.workload.command import CommandWorkload
from kdyno.workload.lmbench import LmbenchWorkload

WORKLOADS: dict[str, type[WorkloadSettings]] = {"lmbench": LmbenchWorkload, "command": CommandWorkload}
"""By `type` in [workload]; the first is meant where none is named."""


def _type_of(workload: Any) -> str:
    """The type that a workload names; the first if it names none."""
    first = next(iter(WORKLOADS))
    return str(workload.get("type", first) if isinstance(workload, dict) else getattr(workload, "type", first))


if TYPE_CHECKING:
    WorkloadConfig = WorkloadSettings
else:
    WorkloadConfig = Annotated[
        Union[tuple(Annotated[settings, Tag(name)] for name, settings in WORKLOADS.items())],  # noqa: UP007
        Discriminator(_type_of),
    ]
