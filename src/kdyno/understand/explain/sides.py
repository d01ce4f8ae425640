"""Both sides of an explanation: the PMU records of the run's boots, or of boots that are made for this."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pydantic import ValidationError

from kdyno.base.digests import file_digest
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.lanes import LANES
from kdyno.base.mistakes import first_fault
from kdyno.base.state import State
from kdyno.boot.base import MachineSettings
from kdyno.boot.qemu import cpu_of
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import Image
from kdyno.kernel.images import ImageMissing, load_image
from kdyno.measure.guest.pmu import Events, PmuConfig
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.runs.single_boots import SingleBoots
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import RunRecord, VariantRecord
from kdyno.understand.explain.records import Recorded, common_boots, has_records, read_recording


class NoKernel(UserError):
    message = "run {run} has no image of {variant}: its boots are replays, without PMU records"
    hint = "explain a run of the machine qemu"


class ImageReplaced(InfrastructureError):
    message = "the PMU record of {variant} was made with another vmlinux than {vmlinux}"
    hint = "restore the image, which was replaced; or run the experiment again (kdyno run --again)"


class ExperimentUnreadable(InfrastructureError):
    message = "the recorded experiment of run {run} cannot be carried out: {why}"
    hint = "run the experiment again from its file: another version of kdyno, or another program, wrote the record"


@dataclass(frozen=True)
class SidesRequest:
    """The requested kernels, tests, events and family; None accepts any value."""

    variants: tuple[VariantRecord, ...]
    """The variants, the baseline first."""
    tests: tuple[str, ...]
    """Tests of the agent, and measured programs."""
    events: Events | None = None
    family: str | None = None

    def accepts(self, record: PmuRecord) -> bool:
        """Return whether a record has the requested events and family."""
        return (self.events != "all" or record.events == "all") and self.family in (None, record.family)


@dataclass(frozen=True)
class ComparedSides:
    """The records in the order of the variants, with their boots and images."""

    records: tuple[Recorded, ...]
    boots: str
    images: Mapping[str, Image | None]
    """The image by variant; None for a missing image."""


def find_sides(report: RunReport, request: SidesRequest, *, session: Session) -> ComparedSides:
    """Find the records of one boot of each kernel, with one seed; missing boots are made.

    Raises NoKernel, ImageReplaced, ExperimentUnreadable and the errors of records, images and boots.
    """
    records, boots = _read_sides(report, request, session.state) or _boot_sides(report, request, session)
    layout = _layout(report, request.variants)
    images = {variant.name: _image_if_there(variant, layout, session.state) for variant in request.variants}
    for recorded in records:
        refuse_replaced(recorded.variant, recorded.record, images[recorded.variant], session.state)
    return ComparedSides(records, boots, images)


RecordsAndBoots = tuple[tuple[Recorded, ...], str]
"""Records, and their boots in words."""


def _read_sides(report: RunReport, request: SidesRequest, state: State) -> RecordsAndBoots | None:
    """Return the records of the run's boots; None if they don't match the request."""
    boots = common_boots(report.boots, *(variant.name for variant in request.variants))
    if boots is None or not has_records(boots):
        return None
    artefacts = Artefacts(state.artefacts)
    records = tuple(read_recording(boot, artefacts) for boot in boots)
    if not all(request.accepts(recorded.record) for recorded in records):
        return None
    return records, f"the boots of block {boots[0].block}, seed {boots[0].seed}"


def _boot_sides(report: RunReport, request: SidesRequest, session: Session) -> RecordsAndBoots:
    """Boot each image once for the tests, as the run did. Boots on record are reused."""
    layout = _layout(report, request.variants)
    images = [_image(report.run.id, variant, layout, session.state) for variant in request.variants]
    experiment = _experiment(report.run)
    boots = common_boots(report.boots, *(variant.name for variant in request.variants))
    seed = boots[0].seed if boots else report.run.seed
    load, events = experiment.workload.load(request.tests), request.events or "all"
    family = request.family or experiment.machine.pmu_settings().family
    settings = experiment.machine if request.family else _recorded_machine(report.run, experiment.machine)
    is_same_cpu = cpu_of(settings.with_pmu(PmuConfig(family=family))) == report.run.machine.get("cpu")
    cpu_note = "" if is_same_cpu else f", on the CPU of {family}: the run's was another"
    records = []
    with session.talk.working("booting with the emulated PMU") as advance:
        for number, (variant, image) in enumerate(zip(request.variants, images, strict=True)):
            advance(number, len(images), variant.name)
            pmu_run = SingleBoots(session).count(
                image,
                load,
                seed=seed,
                events=events,
                family=family,
                cmdline=variant.recipe.words,
                settings=settings,
            )
            records.append(
                Recorded(variant.name, read_pmu_record(pmu_run.record), pmu_run.benchmarks, pmu_run.work, absent={})
            )
        advance(len(images), len(images), "done")
    return tuple(records), f"one boot of each, made to explain it, seed {seed}{cpu_note}"


def _experiment(run: RunRecord) -> Experiment:
    try:
        return Experiment.model_validate_json(run.experiment)
    except ValidationError as error:
        raise ExperimentUnreadable(run=run.id, why=first_fault(error)) from error


def _recorded_machine(run: RunRecord, settings: MachineSettings) -> MachineSettings:
    """Return the machine of the run; in the model lane with the recorded CPU, if the settings give another one now."""
    cpu = run.machine.get("cpu")
    booted_today = cpu_of(settings)
    if not LANES[run.lane].is_icount or not isinstance(cpu, str) or booted_today in (None, cpu):
        return settings
    return settings.model_copy(update={"cpu": cpu})


def _layout(report: RunReport, variants: Sequence[VariantRecord]) -> int:
    """Return the layout of the explained block."""
    boots = common_boots(report.boots, *(variant.name for variant in variants))
    return boots[0].layout_index if boots else 0


def _image(run: str, variant: VariantRecord, layout: int, state: State) -> Image:
    """Load the image of a variant. Raises NoKernel, ImageMissing and ImageCorrupt."""
    if not variant.images:
        raise NoKernel(run=run, variant=variant.name)
    return load_image(variant.images[layout].key, state)


def _image_if_there(variant: VariantRecord, layout: int, state: State) -> Image | None:
    try:
        return load_image(variant.images[layout].key, state) if variant.images else None
    except ImageMissing:
        return None


def refuse_replaced(variant: str, record: PmuRecord, image: Image | None, state: State) -> None:
    """Raise ImageReplaced if the record has the addresses of another image. A missing image is not checked."""
    if image and record.image and file_digest(image.vmlinux, state) != record.image:
        raise ImageReplaced(variant=variant, vmlinux=image.vmlinux)
