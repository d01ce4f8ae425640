"""Finds the PMU record that a user names, with its vmlinux and its image."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.text import clean
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.images import NoSuchImage, find_image, records
from kdyno.kernel.vmlinux.checks import RecordOfNoImage, require_same
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.measure.workload.named import training_load
from kdyno.runs import subject as named
from kdyno.runs.session import Session
from kdyno.runs.single_boots import SingleBoots
from kdyno.store.artefacts import Artefacts
from kdyno.store.named_run import require_variant
from kdyno.store.records import RunRecord
from kdyno.store.store import Store


class VmlinuxUnknown(UserError):
    message = "kdyno has no image with the vmlinux that {named} was recorded with ({digest})"
    hint = "name the vmlinux by --vmlinux FILE, and its source by --source DIR"


class NoRecordInRun(UserError):
    message = "no boot of {variant} in run {run} has a PMU record"
    hint = "boot its kernel under the emulated PMU: kdyno coverage {image} --workload lmbench"


class WorkloadOfRecord(UserError):
    message = "--workload cannot be combined with {named}, which was recorded already"
    hint = "name an image for --workload, or choose a recorded benchmark by --region"


class WrongNumber(UserError):
    message = "coverage expects {wanted}, not {number}: an image, a run or a PMU record"
    hint = "name two of them only with --diff"


@dataclass(frozen=True)
class SubjectRequest:
    """The named subject with its options."""

    named: str
    workload: tuple[str, ...] = ()
    """Tests, suites and experiment files, for an image."""
    variant: str | None = None
    """The variant of a run; None: the baseline."""
    vmlinux: Path | None = None
    """The vmlinux of a record."""
    seed: int = 1


@dataclass(frozen=True)
class RecordedBoot:
    """A boot that was recorded."""

    label: str
    """The boot in words."""
    record: PmuRecord
    vmlinux: Path
    image: ImageRecord | None
    """None for a vmlinux that doesn't belong to an image of kdyno."""


DEFAULT_WORKLOAD = ("lmbench",)
Kind = Literal["record", "image", "run"]


def kind_of(name: str, state: State) -> Kind:
    """Return the kind of the named subject: a run if it is neither a record nor an image.

    Raises what load_image raises.
    """
    path = Path(name)
    if path.is_file() and path.name not in ("vmlinux", "bzImage"):
        return "record"
    try:
        find_image(name, state)
    except NoSuchImage:
        return "run"
    return "image"


def find_subject(request: SubjectRequest, *, session: Session) -> RecordedBoot:
    """Read the record, or boot the image for it, unless that is on record.

    Raises the errors above, those of the named subject, and those of records, images, runs and boots.
    """
    subject = named.find_subject(request.named, ("image", "run", "record"), session.state, session.store)
    if isinstance(subject, RunRecord):
        return _read_run(subject, request, session.state, session.store)
    if not isinstance(subject, Image):
        return _read_file(subject.path, request, session.state)
    return _boot_image(subject, request, session)


def _boot_image(image: Image, request: SubjectRequest, session: Session) -> RecordedBoot:
    load = training_load(request.workload or DEFAULT_WORKLOAD)
    run = SingleBoots(session).count(
        image, load, seed=request.seed, events="edges", family=PmuConfig().family,
    )  # fmt: skip
    label = (
        f"image {image.record.key[:12]}, {clean(', '.join(request.workload or DEFAULT_WORKLOAD))}, seed {request.seed}"
    )
    return RecordedBoot(label, read_pmu_record(run.record), image.vmlinux, image.record)


def _read_file(path: Path, request: SubjectRequest, state: State) -> RecordedBoot:
    if request.workload:
        raise WorkloadOfRecord(named=path)
    record = read_pmu_record(path)
    if record.image is None:
        raise RecordOfNoImage(record=path)
    image = _image_with(record.image, state)
    if request.vmlinux:
        require_same(record, path, request.vmlinux)
    elif image is None:
        raise VmlinuxUnknown(named=path, digest=record.image[:12])
    vmlinux = request.vmlinux or find_image(image.key, state).vmlinux if image else request.vmlinux
    assert vmlinux
    return RecordedBoot(f"record {clean(str(path))}", record, vmlinux, image)


def _read_run(run: RunRecord, request: SubjectRequest, state: State, store: Store) -> RecordedBoot:
    """Read the record of the variant's first boot that has one."""
    if request.workload:
        raise WorkloadOfRecord(named=request.named)
    name = request.variant or run.baseline
    require_variant(run.id, name, [run_variant.name for run_variant in run.variants])
    variant = next(run_variant for run_variant in run.variants if run_variant.name == name)
    boots = [boot for boot in store.boots(run.id) if boot.variant == name and boot.status == "ok" and boot.pmu]
    if not boots or not variant.images:
        key = variant.images[0].key[:12] if variant.images else "IMAGE"
        raise NoRecordInRun(variant=name, run=run.id, image=key)
    boot = min(boots, key=lambda boot: boot.block)
    assert boot.pmu
    path = Artefacts(state.artefacts).get(boot.pmu)
    image = find_image(variant.images[boot.layout_index].key, state)
    record = read_pmu_record(path)
    require_same(record, path, image.vmlinux)
    return RecordedBoot(f"run {run.id}, {clean(name)}, block {boot.block}", record, image.vmlinux, image.record)


def _image_with(vmlinux: str, state: State) -> ImageRecord | None:
    return next((record for record in records(state) if record.files.get("vmlinux") == vmlinux), None)
