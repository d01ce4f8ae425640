"""The records of the store, as frozen types: runs, their variants, boots, their samples, and the boots of a run."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from typing import Annotated, Any

from pydantic import AwareDatetime, Field

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.measurement import DISTURBED_PATHS, BootStatus, Correction, Int64, Sample
from kdyno.base.text import harmless_json
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.recipe import Recipe
from kdyno.store.progress import Progress

Count = Annotated[int, Field(ge=0, lt=2**31)]
BlockCount = Annotated[int, Field(ge=1, lt=2**31)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Fraction = Annotated[float, Field(gt=0, lt=1)]
Seconds = Annotated[float, Field(ge=0, le=1e9)]
Finite = Annotated[float, Field(allow_inf_nan=False)]
MOST_LOOKS = 8
"""An experiment can't have more."""
CONFIRMATION_SUFFIX = "-on-silicon"
"""The end of the name of a run that confirms another one on this host's processor."""


class Boot(Frozen):
    """One boot and its result. `ok` boots carry samples; `failed` and `lost` ones a reason."""

    key: str
    """Content hash of all that decides the boot; see runs/keys.py. A lost boot and its next attempt share it."""
    attempt: Count = 0
    """The number of earlier attempts at this boot that were lost; the store counts them."""
    seed: Int64
    status: BootStatus
    reason: str = ""
    started: AwareDatetime
    seconds: Seconds
    """Wall time of the whole boot."""
    ready_seconds: Seconds | None = None
    """Wall time until the agent said hello."""
    conditions: dict[str, Finite] = {}
    """The host's activity meanwhile, as far as it can be read; see boot/conditions.py."""
    kernel: str | None = None
    """The output of `uname -r` in the guest."""
    command: tuple[str, ...] = ()
    """The command that started it."""
    host: str = ""
    """The host of a fleet that carried it out; empty: that of the run."""
    console: Sha256 | None = None
    """SHA-256 of the console artefact."""
    stream: Sha256 | None = None
    """SHA-256 of the agent stream artefact."""
    pmu: Sha256 | None = None
    """SHA-256 of the PMU record artefact; `ok` boots of a machine with the emulated PMU have one."""
    counters: Sha256 | None = None
    """SHA-256 of the artefact with the snapshots of an instrumented kernel's counters, if the job asked for them."""
    samples: tuple[Sample, ...] = ()
    unsupported: dict[str, str] = {}
    """Benchmarks that this kernel can't run, and why."""
    broken: dict[str, str] = {}
    """Benchmarks that failed, and how."""

    @property
    def was_run_again(self) -> bool:
        """Return whether it came to its end, but was run again because other work on the host disturbed it."""
        return is_disturbed(self.status, self.conditions)


def is_disturbed(status: BootStatus, conditions: Mapping[str, float]) -> bool:
    """Return whether a boot with this end was run again because other work on the host disturbed it."""
    return status == "lost" and conditions.get(DISTURBED_PATHS, 0) > 0


class BootPlace(Frozen):
    """A boot's place in a run."""

    variant: str
    block: Count
    position: Count
    """Place in the order in which the run starts its boots."""
    layout_index: Count = 0
    """The index of the booted image's link order among those of the variant."""


class BootRecord(Boot, BootPlace):
    """A boot in its place in a run. Runs may share boots."""


class VariantRecord(Frozen):
    """A variant of a run: its recipe and the images that it became."""

    name: str
    recipe: Recipe
    images: tuple[ImageRecord, ...]
    """One for each layout; one if layout wasn't sampled; none if the machine replays a recording."""


class RunRecord(Frozen):
    """One execution of an experiment on one machine."""

    id: str
    """Content hash of the keys of its boots, of how it is judged and called, and of how often it was run before."""
    name: str
    created: AwareDatetime
    experiment: str
    """The experiment as JSON, paths made absolute: enough to run it again."""
    baseline: str
    blocks: BlockCount
    layouts: Count = 0
    """Link orders of every variant; 0: layout wasn't sampled."""
    stopped_at: BlockCount | None = None
    """Blocks after which the group-sequential rule ended the run; None while it hasn't."""
    seed: Int64
    lane: LaneName
    machine: dict[str, Any]
    """The machine's description of itself: type, accelerator, QEMU version, CPU model, ..."""
    host: dict[str, Any]
    """CPU, memory, kernel and distribution of the host."""
    notices: tuple[str, ...]
    """Facts that a reader must know first: a fallback to TCG, a lane whose clock can't be trusted."""
    margin: Fraction
    """Equivalence margin as a fraction: 0.01 is 1 %."""
    alpha: Fraction
    correction: Correction = "holm"
    looks: Annotated[int, Field(ge=1, le=MOST_LOOKS)] = 1
    """The planned number of looks; more than one makes the run group-sequential."""
    kdyno: str
    variants: tuple[VariantRecord, ...]

    @property
    def command_to_repeat(self) -> str:
        """Return one command line, for a shell, that carries out the same experiment again."""
        return f"printf %s {shlex.quote(harmless_json(self.experiment))} | kdyno run --again -"

    @property
    def relinked(self) -> tuple[str, ...]:
        """Return the variants that have another image than the baseline, and so another link order besides all other
        differences. One that differs only in its command line is not among them; nor is any without images.
        """
        images = {variant.name: [image.key for image in variant.images] for variant in self.variants}
        return tuple(name for name, keys in images.items() if keys != images.get(self.baseline))

    @property
    def same_as_baseline(self) -> tuple[str, ...]:
        """Return the variants that have the baseline's images and its settings of a running kernel, if it has any
        images: nothing of them differs.
        """
        started = {
            variant.name: ([image.key for image in variant.images], variant.recipe.words) for variant in self.variants
        }
        baseline = started.get(self.baseline)
        if baseline is None or not baseline[0]:
            return ()
        return tuple(name for name, one in started.items() if name != self.baseline and one == baseline)


class RunWithBoots(Frozen):
    """The whole record of a run; `kdyno show --json` prints it."""

    run: RunRecord
    boots: tuple[BootRecord, ...]


def progress_of(run: RunRecord, boots: Iterable[BootRecord], blocks: int | None = None) -> Progress:
    """Return how far a run has come with these boots, looking at its first `blocks` only if they are named."""
    names = [variant.name for variant in run.variants]
    return Progress.from_boots([(name, block) for block in range(blocks or run.blocks) for name in names], boots)
