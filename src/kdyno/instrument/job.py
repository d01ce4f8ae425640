"""The job: what the agent is asked to do in one boot. It travels in the initramfs as /kdyno/job.json."""

from __future__ import annotations

from typing import Final, Literal

from kdyno.frozen import Frozen
from kdyno.measurement import Lane

PROTOCOL: Final = 1
"""Version of the job and of the agent stream; crates/proto has the same number."""


DEFAULT_ITERATIONS: dict[Lane, int] = {"model": 7, "wall": 11}
"""Odd, so that the median of a boot is one of its samples."""


class TestOrder(Frozen):
    """One test to run, and the parameters that differ from its defaults."""

    __test__ = False  # not a pytest class

    name: str
    params: dict[str, int] = {}


class Job(Frozen):
    """What the agent does: run tests, or a command, or give a person a shell."""

    v: Literal[1] = PROTOCOL
    lane: Lane
    icount_shift: int | None = None
    """Model lane: one instruction is 2**icount_shift nanoseconds of the guest's clock."""
    iterations: int
    """Samples per benchmark and boot."""
    tests: tuple[TestOrder, ...] = ()
    command: tuple[str, ...] | None = None
    interactive: bool = False

    def encoded(self) -> bytes:
        return self.model_dump_json(exclude_none=True).encode()
