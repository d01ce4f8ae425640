"""Recording: one boot of an image under the emulated PMU, kept as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.files import require_writable
from kdyno.instrument.pmu_record import PmuRecord, read_pmu_record, with_benchmarks
from kdyno.kernel.image import Image
from kdyno.state import State
from kdyno.talk import Talk

if TYPE_CHECKING:
    from kdyno.instrument.job import Load
    from kdyno.instrument.pmu import Events
    from kdyno.store.store import Store


def record_image(
    image: Image,
    load: Load,
    out: Path,
    *,
    seed: int,
    events: Events,
    family: str,
    state: State,
    store: Store,
    talk: Talk,
    cmdline: tuple[str, ...] = (),
) -> PmuRecord:
    """Boot the image once under the emulated PMU, unless that was done before, and write the record to `out`."""
    from kdyno.line.pmuboot import pmu_boot

    require_writable(out)
    run = pmu_boot(
        image,
        load,
        seed=seed,
        events=events,
        family=family,
        state=state,
        store=store,
        talk=talk,
        cmdline=cmdline,
    )
    with_benchmarks(run.record, run.benchmarks, out)
    return read_pmu_record(out)
