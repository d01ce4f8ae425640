"""Both sides of an explanation: PMU records that the run's boots carry, or those of boots made for the purpose."""

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
from kdyno.understand.explain.records import Recorded, common_boots, has_records, of_boot


class NoKernel(UserError):
    message = "run {run} has no image of {variant}: its boots are replays, without PMU records"
    hint = "explain a run of the machine qemu"


class ImageReplaced(InfrastructureError):
    message = "the PMU record of {variant} was made with another vmlinux than {vmlinux}"
    hint = "the image was replaced since: bring it back, or run the experiment again (kdyno run --again)"


class ExperimentUnreadable(InfrastructureError):
    message = "the experiment that run {run} has on record can't be carried out: {why}"
    hint = "another version of kdyno, or somebody else, wrote it; carry the experiment out again from its file"


@dataclass(frozen=True)
class SidesRequest:
    """What is to be looked at: kernels, tests, and what must have been counted; None where anything will do."""

    variants: tuple[VariantRecord, ...]
    """The baseline first."""
    tests: tuple[str, ...]
    """Of the agent, and programs that are measured."""
    events: Events | None = None
    family: str | None = None

    def accepts(self, record: PmuRecord) -> bool:
        return (self.events != "all" or record.events == "all") and self.family in (None, record.family)


@dataclass(frozen=True)
class ComparedSides:
    """The records, in the order of the variants, and the boots that they are from."""

    records: tuple[Recorded, ...]
    boots: str
    images: Mapping[str, Image | None]
    """By variant; None for an image that is gone."""


def find_sides(report: RunReport, wanted: SidesRequest, *, session: Session) -> ComparedSides:
    """The records of one boot of each kernel, with one seed; boots that are missing are made.

    Raises NoKernel, ImageReplaced, ExperimentUnreadable and the errors of records, images and boots.
    """
    records, boots = _recorded(report, wanted, session.state) or _booted(report, wanted, session)
    layout = _layout(report, wanted.variants)
    images = {variant.name: _image_if_there(variant, layout, session.state) for variant in wanted.variants}
    for recorded in records:
        refuse_replaced(recorded.variant, recorded.record, images[recorded.variant], session.state)
    return ComparedSides(records, boots, images)


RecordsAndBoots = tuple[tuple[Recorded, ...], str]
"""Records, and the boots that they are from."""


def _recorded(report: RunReport, wanted: SidesRequest, state: State) -> RecordsAndBoots | None:
    """The records that the run's own boots carry, if they have what is wanted."""
    boots = common_boots(report.boots, *(variant.name for variant in wanted.variants))
    if boots is None or not has_records(boots):
        return None
    artefacts = Artefacts(state.artefacts)
    records = tuple(of_boot(boot, artefacts) for boot in boots)
    if not all(wanted.accepts(recorded.record) for recorded in records):
        return None
    return records, f"the boots of block {boots[0].block}, seed {boots[0].seed}"


def _booted(report: RunReport, wanted: SidesRequest, session: Session) -> RecordsAndBoots:
    """Boot each image once for the tests, as the run did; boots that were made before are taken again."""
    layout = _layout(report, wanted.variants)
    images = [_image(report.run.id, variant, layout, session.state) for variant in wanted.variants]
    experiment = _experiment(report.run)
    boots = common_boots(report.boots, *(variant.name for variant in wanted.variants))
    seed = boots[0].seed if boots else report.run.seed
    load, events = experiment.workload.load(wanted.tests), wanted.events or "all"
    family = wanted.family or experiment.machine.pmu_settings().family
    settings = experiment.machine if wanted.family else _as_booted(report.run, experiment.machine)
    is_the_runs = cpu_of(settings.with_pmu(PmuConfig(family=family))) == report.run.machine.get("cpu")
    other = "" if is_the_runs else f", on the CPU of {family}: the run's was another"
    records = []
    with session.talk.working("booting with the emulated PMU") as advance:
        for number, (variant, image) in enumerate(zip(wanted.variants, images, strict=True)):
            advance(number, len(images), variant.name)
            booted = SingleBoots(session).count(
                image,
                load,
                seed=seed,
                events=events,
                family=family,
                cmdline=variant.recipe.words,
                settings=settings,
            )
            records.append(
                Recorded(variant.name, read_pmu_record(booted.record), booted.benchmarks, booted.work, absent={})
            )
        advance(len(images), len(images), "done")
    return tuple(records), f"one boot of each, made to explain it, seed {seed}{other}"


def _experiment(run: RunRecord) -> Experiment:
    try:
        return Experiment.model_validate_json(run.experiment)
    except ValidationError as error:
        raise ExperimentUnreadable(run=run.id, why=first_fault(error)) from error


def _as_booted(run: RunRecord, settings: MachineSettings) -> MachineSettings:
    """The run's machine; in the model lane with the CPU on record, where the same settings mean another today."""
    cpu = run.machine.get("cpu")
    booted_today = cpu_of(settings)
    if not LANES[run.lane].is_icount or not isinstance(cpu, str) or booted_today in (None, cpu):
        return settings
    return settings.model_copy(update={"cpu": cpu})


def _layout(report: RunReport, variants: Sequence[VariantRecord]) -> int:
    """The layout that all booted in the block that is explained."""
    boots = common_boots(report.boots, *(variant.name for variant in variants))
    return boots[0].layout_index if boots else 0


def _image(run: str, variant: VariantRecord, layout: int, state: State) -> Image:
    """Raises NoKernel, ImageMissing and ImageCorrupt."""
    if not variant.images:
        raise NoKernel(run=run, variant=variant.name)
    return load_image(variant.images[layout].key, state)


def _image_if_there(variant: VariantRecord, layout: int, state: State) -> Image | None:
    try:
        return load_image(variant.images[layout].key, state) if variant.images else None
    except ImageMissing:
        return None


def refuse_replaced(variant: str, record: PmuRecord, image: Image | None, state: State) -> None:
    """Raise ImageReplaced unless the record's addresses are those of the image; an image that is gone says nothing."""
    if image and record.image and file_digest(image.vmlinux, state) != record.image:
        raise ImageReplaced(variant=variant, vmlinux=image.vmlinux)
