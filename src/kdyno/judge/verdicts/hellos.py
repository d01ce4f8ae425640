"""What agents say of a kernel before they measure it, in the first record of a boot's stream.

Against indirect target selection (CVE-2024-28956) Linux sends the returns in the lower half of a cache line through a
thunk, an instruction more each, and leaves those in the upper half alone. So a patch makes functions dearer that it
doesn't touch. Linux takes every guest with a CPU of Intel's for affected, unless a parameter on its command line says
otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kdyno.base.errors import KdynoError
from kdyno.measure.guest.stream_records import HelloRecord, RecordReader, StreamFault
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord

ALIGNED = "aligned"
"""The words of the kernel: `Mitigation: Aligned branch/return thunks`."""


def read_hellos(boots: Sequence[BootRecord], artefacts: Artefacts) -> dict[str, HelloRecord]:
    """Return what was said of each variant in the first of its boots that has its stream.

    A stream that is gone or damaged is ignored.
    """
    hellos: dict[str, HelloRecord] = {}
    for boot in boots:
        if boot.status == "ok" and boot.stream and boot.variant not in hellos and (hello := _hello(boot, artefacts)):
            hellos[boot.variant] = hello
    return hellos


def find_aligning(hellos: Mapping[str, HelloRecord]) -> tuple[str, ...]:
    """Return the variants whose kernels align returns, so that their instruction counts depend on addresses."""
    return tuple(name for name, hello in hellos.items() if ALIGNED in (hello.indirect_target_selection or "").lower())


def find_busy(hellos: Mapping[str, HelloRecord]) -> dict[str, int]:
    """Return the variants whose guests were not at rest when the benchmarks began, and the number of tasks that ran
    beside the agent.
    """
    return {name: hello.busy_tasks for name, hello in hellos.items() if hello.busy_tasks}


def _hello(boot: BootRecord, artefacts: Artefacts) -> HelloRecord | None:
    assert boot.stream is not None
    try:
        with artefacts.get(boot.stream).open("rb") as file:
            first = next(RecordReader(file).ready(), None)
    except (KdynoError, OSError, StreamFault):
        return None
    return first if isinstance(first, HelloRecord) else None
