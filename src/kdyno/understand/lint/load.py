"""The load under which a kernel is checked: how often each of its instructions was executed in a PMU record."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from kdyno.base.errors import UserError
from kdyno.kernel.vmlinux.checks import require_same
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.profile.balance import TOTAL, weights
from kdyno.profile.select import sum_contexts
from kdyno.understand.coverage.executions import count_steps

PER = 1_000_000
"""Executions are per so many instructions."""


class LoadOfOneKernel(UserError):
    message = "--profile is about one kernel, and {number} files are checked"
    hint = "name the image or the vmlinux that the record was made with, alone"


class NothingExecuted(UserError):
    message = "record {path} has no instruction of a kernel within the measured loops"
    hint = "make a record of a kernel with `kdyno profile record`"


def load_steps(path: Path, files: Sequence[str]) -> list[tuple[int, float]]:
    """Return a step function: from each address on, the executions of an instruction per million instructions.

    All benchmarks of the record have the same weight; interrupts are left out. Raises LoadOfOneKernel, NothingExecuted,
    OtherVmlinux, RecordOfNoImage, NotAVmlinux, and what reading the record raises.
    """
    record = read_pmu_record(path)
    if len(files) != 1:
        raise LoadOfOneKernel(number=len(files))
    require_same(record, path, Path(files[0]))
    [by_region] = weights([record])
    if not by_region:
        raise NothingExecuted(path=path)
    parts = [(sum_contexts([record.regions[index]]).blocks, weight) for index, weight in by_region.items()]
    blocks = np.concatenate([part for part, _ in parts])
    counts = np.concatenate([np.rint(part["count"] * weight).astype(np.int64) for part, weight in parts])
    starts, executions = count_steps(blocks, counts)
    return list(zip(starts.tolist(), (executions * (PER / TOTAL)).tolist(), strict=True))
