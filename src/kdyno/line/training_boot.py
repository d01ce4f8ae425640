"""One boot for training: with the emulated PMU, or of a kernel that counts by itself."""

from __future__ import annotations

import shutil
from pathlib import Path

from kdyno.errors import UserError
from kdyno.instrument.job import Counters, Job, Load
from kdyno.instrument.pmu import Events, PmuConfig
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Training
from kdyno.line.boot_file import boot_for_file
from kdyno.line.boot_once import Wanted
from kdyno.line.pmuboot import pmu_job, pmu_machine
from kdyno.line.record import record_image
from kdyno.machine.base import Description, Machine
from kdyno.machine.qemu_config import QemuConfig
from kdyno.machine.registry import open_machine
from kdyno.state import State
from kdyno.store.store import Store
from kdyno.talk import Talk

FAMILY = PmuConfig().family
"""The CPU family that is modelled in training: the same for all, so that an input doesn't hang on who is judged."""

MORE = 10
"""Times as many iterations where the kernel counts: what surrounds a benchmark's loop is counted, too."""


class CountsNoPrograms(UserError):
    message = "use = [\"pgo\"] can't be trained on programs ({programs}): counters are read after the agent's own tests"
    hint = "train on tests (`general`), or take autofdo, which the emulated PMU counts for"


def training_machine(counts: Events | Counters, load: Load, state: State, talk: Talk) -> Machine:
    """In the model lane, so that the same boot always counts the same. Raises CountsNoPrograms."""
    if isinstance(counts, str):
        return pmu_machine(counts, FAMILY, load, state=state, talk=talk)
    if load.programs:
        raise CountsNoPrograms(programs=", ".join(program.name for program in load.programs))
    return open_machine(QemuConfig())


def training_job(about: Description, training: Training, counts: Events | Counters) -> Job:
    """Raises UnknownTest and UnknownParameter."""
    job = pmu_job(about, training.load)
    if isinstance(counts, str):
        return job
    return job.model_copy(update={"counters": counts, "iterations": MORE * job.iterations})


def training_boot(
    image: Image,
    training: Training,
    counts: Events | Counters,
    out: Path,
    *,
    seed: int,
    state: State,
    store: Store,
    talk: Talk,
) -> None:
    """Boot the image once, unless that was done before, and leave at `out` what was counted.

    Raises BootForFileFailed, and what machine, agent and store raise.
    """
    if isinstance(counts, str):
        record_image(
            image,
            training.load,
            out,
            seed=seed,
            events=counts,
            family=FAMILY,
            state=state,
            store=store,
            talk=talk,
            cmdline=training.recipe.words,
        )
        return
    machine = training_machine(counts, training.load, state, talk)
    job = training_job(machine.describe(), training, counts)
    wanted = Wanted(f"image {image.record.key[:12]}, which counts by itself", image, training.recipe.words, job, seed)
    counted, *_ = boot_for_file(machine, wanted, "counters", state=state, store=store, talk=talk)
    shutil.copyfile(counted, out)
