"""The values that go in and out of a fleet's queue."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, Literal, get_args

from pydantic import Field

from kdyno.base.frozen import Frozen

Kind = Literal["build", "boot-model", "boot-wall"]
"""The kinds of slots, and of tasks: a task takes a slot of its kind."""
KINDS: tuple[Kind, ...] = get_args(Kind)
TaskName = tuple[str, int]
"""A key and an attempt."""


class Task(Frozen):
    """A build or a boot that is to be carried out once."""

    key: str
    attempt: int = 0
    run: str
    """The run that it is for; tickets of a run carry out its tasks."""
    kind: Kind
    subject: str
    """What is quarantined if its tasks end workers: an image, or a recipe to build."""
    block: str | None = None
    """In the wall lane: the block that stays on one host."""
    position: int = 0
    spec: dict[str, Any]

    @property
    def name(self) -> TaskName:
        return (self.key, self.attempt)


class Offer(Frozen):
    """What a worker offers."""

    slots: dict[Kind, Annotated[int, Field(ge=0)]]
    kvm: bool
    family: str
    """The CPU family by CPUID, as compilers call it; empty: unknown."""
    cpu: str
    memory_mb: int
    disk_mb: int
    toolchains: tuple[str, ...]
    """Each compiler with its version."""
    machines: tuple[str, ...]
    """The kinds of machines that it opens."""


@dataclass(frozen=True)
class Worker:
    """A worker on record."""

    id: str
    """Another one for each start."""
    name: str
    host: str
    offer: Offer
    package: str
    """Version and digest of its kdyno."""


@dataclass(frozen=True)
class HostCheck:
    """What came of the last A/A of a host: one kernel under two names in the wall lane."""

    passed: bool
    detail: str
    """What differed, or over how much nothing did, for people."""
    checked: datetime


@dataclass(frozen=True)
class TaskClaim:
    """The right to carry out a task. Its fence shows whether it still holds."""

    task: Task
    fence: int

    @property
    def token(self) -> tuple[str, int, int]:
        return (self.task.key, self.task.attempt, self.fence)


@dataclass(frozen=True)
class WaitingTask:
    """A task that a worker could claim now."""

    key: str
    host: str | None
    """The host that has begun its block; None: any may claim it."""
    refused_by: frozenset[str]
    """The names of the workers that refused it."""

    def is_for(self, worker: Worker) -> bool:
        """Return whether this worker may claim it."""
        return self.host in (None, worker.host) and worker.name not in self.refused_by


@dataclass(frozen=True)
class EndedTask:
    """A task that has ended."""

    key: str
    attempt: int
    host: str
    result: dict[str, Any] | None
    """None: it is quarantined."""
    reason: str = ""
    """Why it is quarantined."""
