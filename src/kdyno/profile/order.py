"""Making an order of functions for a vmlinux from recorded sequences of blocks: the file of the knob `order`."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.installed import find_program
from kdyno.base.process import attempt
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.kernel.vmlinux.checks import require_same
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.profile.order_job import PAGE, Answer, OrderSearch, job, read_answer
from kdyno.profile.order_start import start_order
from kdyno.profile.order_units import ALIGN, Text, text_of_vmlinux

BINARY = "kdyno-layout"
MOVES = 150_000
"""The number of steps of a search; it is constant, so that every host finds the same order."""
SEED = 1


class NoTrace(UserError):
    message = "the record {record} has no sequence of blocks, which the search for an order requires"
    hint = "record it with --events trace"


class NothingToOrder(UserError):
    message = "no function that ran in {record} can be moved"
    hint = "record a workload that runs C code of the kernel: assembly code and .init.text cannot be moved"


class SearchFailed(InfrastructureError):
    message = "kdyno-layout failed: {why}"
    hint = "run `pip install .` in a checkout of kdyno to rebuild it"


def find_layout() -> Path:
    """Return the path of the search program. Raises ProgramMissing."""
    return find_program(BINARY, "an order")


def order(records: Sequence[Path], image: Image, settings: ProfileSettings) -> bytes:
    """Return the order for the objects of `image`; `records` were made with events=trace. See order_for."""
    return order_for(records, image.vmlinux, settings)


def order_for(paths: Sequence[Path], vmlinux: Path, settings: ProfileSettings) -> bytes:
    """Return the lines of the order.

    Raises NoTrace, NothingToOrder, OtherVmlinux, NoLineTables, SearchFailed, and what reading records and families
    raises.
    """
    records = [_read_trace(path, vmlinux) for path in paths]
    text = text_of_vmlinux(vmlinux)
    start = start_order(records, text)
    if not start:
        raise NothingToOrder(record=paths[0])
    families = [load_family(name) for name in settings.families]
    search = OrderSearch(MOVES, SEED, settings.guard)
    answer = _search(job(records, text, families, [start], search))
    predicted = [
        f"{family.name} {_gain(before, now):+.1f} %"
        for family, before, now in zip(families, answer.recorded, answer.best, strict=True)
    ]
    return "".join(f"{line}\n" for line in _lines(answer, text, len(start), ", ".join(predicted))).encode()


def _read_trace(path: Path, vmlinux: Path) -> PmuRecord:
    record = read_pmu_record(path)
    require_same(record, path, vmlinux)
    if not any(region.trace is not None and len(region.trace.steps) for region in record.regions.values()):
        raise NoTrace(record=path)
    return record


def _search(data: bytes) -> Answer:
    program = find_layout()
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        path = Path(scratch) / "job"
        path.write_bytes(data)
        done = attempt([program, path], guarded=True)
    if done.returncode != 0:
        raise SearchFailed(why=done.stderr.strip()[-300:] or f"exit status {done.returncode}")
    return read_answer(done.stdout)


def _gain(before: NDArray[np.float64], now: NDArray[np.float64]) -> float:
    """Return the gain of the geometric mean of speeds, in percent."""
    return 100 * float(np.exp(np.mean(np.log(before / now))) - 1)


def _lines(answer: Answer, text: Text, executed: int, predicted: str) -> Iterator[str]:
    yield f"# {executed} functions that ran, and others between them; predicted speed: {predicted}"
    yield f"#: align {PAGE}"
    behind: int | None = 0
    for index, at in answer.units:
        unit = text.units[index]
        # A unit without alignment directly follows the unit before it, unless its address is given.
        if at is not None and (at != behind or unit.align < ALIGN):
            yield f"#: at {at}"
        yield unit.name
        behind = None if at is None else -(-(at + unit.end - unit.start) // ALIGN) * ALIGN
    if answer.end is not None:
        yield f"#: at {answer.end}"
