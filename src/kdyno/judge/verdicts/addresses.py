"""Tells whether a kernel's instruction counts depend on the addresses that the linker chose: by the kernel's own
statement, in the streams of its boots.

Against indirect target selection (CVE-2024-28956) Linux sends the returns in the lower half of a cache line through a
thunk, an instruction more each, and leaves those in the upper half alone. So a patch makes functions dearer that it
doesn't touch. Linux takes every guest with a CPU of Intel's for affected, unless a parameter on its command line says
otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.errors import KdynoError
from kdyno.measure.guest.stream_records import HelloRecord, RecordReader, StreamFault
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import BootRecord

ALIGNED = "aligned"
"""The words of the kernel: `Mitigation: Aligned branch/return thunks`."""


def aligning(boots: Sequence[BootRecord], artefacts: Artefacts) -> tuple[str, ...]:
    """Return the variants whose kernels align returns, by the first of each one's boots that has its stream.

    A stream that is gone or damaged is ignored, and so is one of an agent that didn't ask yet.
    """
    hellos: dict[str, HelloRecord] = {}
    for boot in boots:
        if boot.status == "ok" and boot.stream and boot.variant not in hellos and (hello := _hello(boot, artefacts)):
            hellos[boot.variant] = hello
    return tuple(name for name, hello in hellos.items() if ALIGNED in (hello.indirect_target_selection or "").lower())


def _hello(boot: BootRecord, artefacts: Artefacts) -> HelloRecord | None:
    assert boot.stream is not None
    try:
        with artefacts.get(boot.stream).open("rb") as file:
            first = next(RecordReader(file).ready(), None)
    except (KdynoError, OSError, StreamFault):
        return None
    return first if isinstance(first, HelloRecord) else None
