"""From what a user names to a PMU record, the vmlinux that ran and the image that it is of."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.text import clean
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.images import NoSuchImage, find_image, records
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.measure.workload.named import training_load
from kdyno.profile.vmlinux import OtherVmlinux, RecordOfNoImage, require_same
from kdyno.run.session import Session
from kdyno.run.single_boots import SingleBoots
from kdyno.store.artefacts import Artefacts
from kdyno.store.errors import RunUnknown
from kdyno.store.store import Store


class NothingOfThatName(UserError):
    message = "{named} is no PMU record, no image and no run"
    hint = "name a file that `kdyno profile record` wrote, the key of an image (`kdyno build` prints it), or a run"


class VmlinuxUnknown(UserError):
    message = "kdyno has no image with the vmlinux that {named} was recorded with ({digest})"
    hint = "--vmlinux FILE names it, and --source DIR its source"


class NoRecordInRun(UserError):
    message = "no boot of {variant} in run {run} carries a PMU record"
    hint = "boot its kernel under the emulated PMU: kdyno coverage {image} --workload lmbench"


class NoSuchVariant(UserError):
    message = "run {run} has no variant {variant}"
    hint = "it has {known}"


class WorkloadOfRecord(UserError):
    message = "{named} was recorded already: --workload goes with an image"
    hint = "--region chooses among the benchmarks that were recorded"


class WrongNumber(UserError):
    message = "coverage takes {wanted}, not {number}: an image, a run or a PMU record"
    hint = "two are compared with --diff"


@dataclass(frozen=True)
class SubjectRequest:
    """What the user named, and what goes with it."""

    named: str
    workload: tuple[str, ...] = ()
    """Tests, suites, experiment files; for an image."""
    variant: str | None = None
    """For a run; the baseline if there is none."""
    vmlinux: Path | None = None
    """For a record."""
    seed: int = 1


@dataclass(frozen=True)
class Subject:
    """A boot that was recorded."""

    label: str
    """In words."""
    record: PmuRecord
    vmlinux: Path
    image: ImageRecord | None
    """None for a vmlinux that isn't of kdyno's images."""


DEFAULT_WORKLOAD = ("lmbench",)


def find_subject(request: SubjectRequest, *, session: Session) -> Subject:
    """Read the record, or boot the image for it, unless that was done before. Raises the errors above and those of
    records, images, runs and boots.
    """
    path = Path(request.named)
    if path.is_file() and path.name not in ("vmlinux", "bzImage"):
        return _of_file(path, request, session.state)
    try:
        image = find_image(request.named, session.state)
    except NoSuchImage:
        return _of_run(request, session.state, session.store)
    load = training_load(request.workload or DEFAULT_WORKLOAD)
    run = SingleBoots(session).count(
        image, load, seed=request.seed, events="edges", family=PmuConfig().family,
    )  # fmt: skip
    label = (
        f"image {image.record.key[:12]}, {clean(', '.join(request.workload or DEFAULT_WORKLOAD))}, seed {request.seed}"
    )
    return Subject(label, read_pmu_record(run.record), image.vmlinux, image.record)


def _of_file(path: Path, request: SubjectRequest, state: State) -> Subject:
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
    return Subject(f"record {clean(str(path))}", record, vmlinux, image)


def _of_run(request: SubjectRequest, state: State, store: Store) -> Subject:
    """The first boot of the variant with a record."""
    if request.workload:
        raise WorkloadOfRecord(named=request.named)
    try:
        run = store.run((request.named == "latest" and store.newest()) or request.named)
    except RunUnknown:
        raise NothingOfThatName(named=request.named) from None
    name = request.variant or run.baseline
    variant = next((of_run for of_run in run.variants if of_run.name == name), None)
    if variant is None:
        raise NoSuchVariant(run=run.id, variant=name, known=", ".join(of_run.name for of_run in run.variants))
    boots = [boot for boot in store.boots(run.id) if boot.variant == name and boot.status == "ok" and boot.pmu]
    if not boots or not variant.images:
        key = variant.images[0].key[:12] if variant.images else "IMAGE"
        raise NoRecordInRun(variant=name, run=run.id, image=key)
    boot = min(boots, key=lambda boot: boot.block)
    assert boot.pmu
    path = Artefacts(state.artefacts).get(boot.pmu)
    image = find_image(variant.images[boot.layout_index].key, state)
    record = read_pmu_record(path)
    if record.image != image.record.files["vmlinux"]:
        raise OtherVmlinux(
            vmlinux=image.vmlinux,
            record=path,
            ran=(record.image or "none")[:12],
            given=image.record.files["vmlinux"][:12],
        )
    return Subject(f"run {run.id}, {clean(name)}, block {boot.block}", record, image.vmlinux, image.record)


def _image_with(vmlinux: str, state: State) -> ImageRecord | None:
    return next((record for record in records(state) if record.files.get("vmlinux") == vmlinux), None)
