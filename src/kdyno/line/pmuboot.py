"""One boot of one image with the emulated PMU, for its record: what explanations and profiles start from."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kdyno.errors import InfrastructureError
from kdyno.frozen import Frozen, digest
from kdyno.instrument.agent import test_orders
from kdyno.instrument.job import DEFAULT_ITERATIONS, Job
from kdyno.instrument.pmu import Events, PmuConfig
from kdyno.instrument.stream import AgentReport
from kdyno.kernel.image import Image
from kdyno.kernel.images import content_digest
from kdyno.machine.base import BootEnd, BootOrder
from kdyno.machine.config import QemuConfig
from kdyno.machine.qemu import QemuMachine
from kdyno.state import State, disk_full_is_said
from kdyno.talk import Talk

NAME_DIGITS = 24


class PmuBootFailed(InfrastructureError):
    message = "the boot of image {image} with the emulated PMU {ended}: {reason}"
    hint = "its console is {console}; `kdyno boot {image} --lane model` starts it by hand"


@dataclass(frozen=True)
class PmuRun:
    """What a boot left: its PMU record, and what the numbers of the record's regions stand for."""

    record: Path
    benchmarks: tuple[str, ...]
    """Names by the index of their region."""
    work: dict[str, list[int]]
    """By benchmark: operations, or bytes, of each iteration."""


class _Kept(Frozen):
    """NAME.json beside NAME.kpmu. It is written last, so that the two are whole if it is there and they agree."""

    sha256: str
    benchmarks: tuple[str, ...]
    work: dict[str, list[int]]


def pmu_boot(
    image: Image,
    tests: Sequence[str],
    *,
    seed: int,
    events: Events,
    family: str,
    state: State,
    talk: Talk,
    params: Mapping[str, Mapping[str, int]] | None = None,
    cmdline: tuple[str, ...] = (),
    config: QemuConfig | None = None,
) -> PmuRun:
    """Boot an image once in the model lane and count; the same boot again is read from the state directory.

    `config` is the machine of a run; its lane, accelerator and PMU don't count. Raises PmuBootFailed, which names the
    console, and what machine and agent raise.
    """
    model = {"lane": "model", "accel": "auto", "cpus": 1}
    pmu = PmuConfig(events=events, family=family, clock="instructions")
    machine = QemuMachine((config or QemuConfig()).model_copy(update={**model, "pmu": pmu}))
    machine.require_cpu(image.record.needs, f"image {image.record.key[:12]}")
    job = Job(
        lane="model",
        icount_shift=machine.config.icount_shift,
        iterations=DEFAULT_ITERATIONS["model"],
        tests=test_orders(tests, params or {}),
    )
    decides = {
        "image": image.record.key,
        "cmdline": cmdline,
        "job": job.model_dump(mode="json"),
        "seed": seed,
        "machine": machine.describe().facts,
    }
    name = digest(decides)[:NAME_DIGITS]
    with state.lock(f"pmu-{name}", on_wait=lambda: talk.say("another kdyno does the same boot: waiting for it")):
        if kept := _find(state, name):
            return kept
        talk.say(f"booting image {image.record.key[:12]} with the emulated PMU")
        with tempfile.TemporaryDirectory(prefix="pmu-", dir=state.boots) as scratch:
            order = BootOrder(
                name=f"image {image.record.key[:12]}",
                kernel=image.bzimage,
                vmlinux=image.vmlinux,
                cmdline=cmdline,
                job=job,
                seed=seed,
                directory=Path(scratch),
            )
            return _keep(state, name, image, machine.boot(order))


def _find(state: State, name: str) -> PmuRun | None:
    """What is kept of a boot; None if nothing is, or if it was damaged."""
    record, about = _places(state, name)
    try:
        kept = _Kept.model_validate_json(about.read_bytes())
        sound = content_digest(record) == kept.sha256
    except (OSError, ValidationError):
        return None
    return PmuRun(record, kept.benchmarks, kept.work) if sound else None


def _keep(state: State, name: str, image: Image, end: BootEnd) -> PmuRun:
    if end.status != "ok" or end.pmu is None:
        console = state.pmu / f"{name}.console.log"
        if end.console.exists():
            shutil.copyfile(end.console, console)
        ended = "was lost" if end.status == "lost" else "failed"
        raise PmuBootFailed(image=image.record.key[:12], ended=ended, reason=end.reason, console=console)
    record, about = _places(state, name)
    names = tuple(benchmark.name for benchmark in end.report.benchmarks)
    with disk_full_is_said(state.root), tempfile.TemporaryDirectory(prefix=".", dir=state.pmu) as incoming:
        named, described = Path(incoming, "record"), Path(incoming, "about")
        shutil.copyfile(end.pmu, named)
        kept = _Kept(sha256=content_digest(named), benchmarks=names, work=_work(end.report))
        described.write_text(kept.model_dump_json(), encoding="utf-8")
        about.unlink(missing_ok=True)  # a damaged pair: never one file of each
        named.replace(record)
        described.replace(about)
    return PmuRun(record, kept.benchmarks, kept.work)


def _places(state: State, name: str) -> tuple[Path, Path]:
    return state.pmu / f"{name}.kpmu", state.pmu / f"{name}.json"


def _work(report: AgentReport) -> dict[str, list[int]]:
    work: dict[str, list[int]] = {}
    for sample in sorted(report.samples, key=lambda sample: sample.iteration):
        work.setdefault(sample.benchmark, []).append(sample.work)
    return work
