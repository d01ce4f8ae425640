"""A boot for one file that it leaves: its PMU record, or what an instrumented kernel counted."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kdyno.errors import InfrastructureError, KdynoError
from kdyno.line.boot_once import Wanted, boot_once
from kdyno.machine.base import Machine
from kdyno.measurement import Benchmark
from kdyno.state import State
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import Boot
from kdyno.store.store import Store
from kdyno.talk import Talk
from kdyno.workload.base import WorkloadSettings

Kind = Literal["pmu", "counters"]
"""A field of Boot."""


class BootForFileFailed(InfrastructureError):
    message = "the boot of {name} {ended}: {reason}"
    hint = "its console is {console}; `kdyno boot {image} --lane model` starts it by hand"


def boot_for_file(
    machine: Machine,
    wanted: Wanted,
    kind: Kind,
    *,
    state: State,
    store: Store,
    talk: Talk,
    workload: WorkloadSettings | None = None,
) -> tuple[Path, Boot, list[Benchmark]]:
    """The file of this boot, the boot, and what it describes; one that is on record with its file isn't done again.

    One that failed is tried again: perhaps the host was too slow for it. `workload` is what reads its samples, where
    the agent doesn't say them. Raises BootForFileFailed, which names the console, and what machine and store raise.
    """
    artefacts = Artefacts(state.artefacts)

    def is_there(boot: Boot) -> bool:
        try:
            return bool(boot.status == "ok" and (digest := getattr(boot, kind)) and artefacts.get(digest))
        except KdynoError:
            return False

    boot, benchmarks = boot_once(machine, wanted, is_there, state=state, store=store, talk=talk, workload=workload)
    if boot.status != "ok" or getattr(boot, kind) is None:
        console = artefacts.get(boot.console) if boot.console else "empty"
        ended = "was lost" if boot.status == "lost" else "failed"
        image = wanted.image.record.key[:12] if wanted.image else "KERNEL"
        raise BootForFileFailed(name=wanted.name, image=image, ended=ended, reason=boot.reason, console=console)
    return artefacts.get(getattr(boot, kind)), boot, benchmarks
