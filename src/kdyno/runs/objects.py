"""The effect of a profile on an image: the records of its compilers, with the records of its training."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole
from kdyno.base.mistakes import first_fault
from kdyno.base.state import State
from kdyno.kernel import build_log
from kdyno.kernel.delegation.records import read_records
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.images import LOG, RECORDS, SECTIONS, ImageMissing, load_image
from kdyno.kernel.inputs import kept_at
from kdyno.kernel.vmlinux.sections import read_sections
from kdyno.profile.counted import counted_by_clang, counted_by_gcc
from kdyno.profile.objects import ProfileObjects, TrainingRecord, Use, name_of, profile_objects
from kdyno.store.artefacts import ArtefactMissing, Artefacts
from kdyno.store.derivation import Derivation
from kdyno.store.store import Store

USES: tuple[Use, ...] = ("pgo", "autofdo")
MOST_BYTES = 10_000_000
"""The largest provenance that is read."""
MOST_LOG_BYTES = 1 << 28
UNKNOWN = TrainingRecord(compiled=None, counted=None)


class NoProfile(UserError):
    message = "image {key} was not compiled by a profile: its recipe has no `profile` with pgo or autofdo in `use`"
    hint = 'build a variant with profile = {{ use = "pgo" }}; see docs/feedback.md'


class ProvenanceUnreadable(InfrastructureError):
    message = "the provenance of this image's profile, {path}, cannot be read: {why}"
    hint = "remove that file: the command then reports that the training is not on record"


def objects_of_image(image: Image, state: State, store: Store) -> ProfileObjects:
    """Return the objects of an image with the effect of its profile.

    Raises NoProfile, and what reading the image's files, the store and the artefacts of boots raises.
    """
    use = use_of(image.record)
    if use is None or not image.record.objects:
        raise NoProfile(key=image.record.key[:12])
    derivation = _derivation(image.record.inputs.get(use, ""), state)
    training = _training(derivation, state, store) if use == "pgo" and derivation else UNKNOWN
    sections = read_sections(image.directory / SECTIONS) if SECTIONS in image.record.files else None
    return profile_objects(
        image.record.key,
        use,
        "gcc" if image.record.toolchain.family == "gcc" else "clang",
        read_records(image.directory / RECORDS).objects,
        trained_on=derivation.image if derivation else None,
        training=training,
        sections=sections,
    )


def use_of(record: ImageRecord) -> Use | None:
    """Return the kind of profile that the compilers of the image used; None without one."""
    profile = record.recipe.profile
    return next((use for use in USES if profile and use in profile.use), None)


def _derivation(digest: str, state: State) -> Derivation | None:
    """Return the provenance of an input; None for a file that kdyno didn't make, and if it was removed."""
    path = kept_at(digest, state).with_suffix(".json")
    if not digest or not path.exists():
        return None
    try:
        return Derivation.model_validate_json(read_whole(path, MOST_BYTES))
    except OSError as error:
        raise ProvenanceUnreadable(path=path, why=error.strerror) from error
    except ValidationError as error:
        raise ProvenanceUnreadable(path=path, why=first_fault(error)) from error


def _training(derivation: Derivation, state: State, store: Store) -> TrainingRecord:
    """Return the objects that were compiled and counted in a training, as far as its boots are on record."""
    image: Image | None = None
    with suppress(ImageMissing):
        image = load_image(derivation.image, state)
    files = _counters(derivation.boots, state, store)
    counted_objects = None
    if files and derivation.exporter == "pgo-gcc":
        counted_objects = counted_by_gcc(files)
    elif files and image:
        counted_objects = counted_by_clang(files, image)
    return TrainingRecord(compiled=_compiled(image) if image else None, counted=counted_objects)


def _counters(boots: Sequence[str], state: State, store: Store) -> list[Path]:
    """Return the file of counters of each boot; empty if one of the files is missing."""
    artefacts = Artefacts(state.artefacts)
    files = []
    for key in boots:
        boot = store.boot(key)
        if boot is None or boot[0].counters is None:
            return []
        try:
            files.append(artefacts.get(boot[0].counters))
        except ArtefactMissing:
            return []
    return files


def _compiled(image: Image) -> frozenset[str]:
    """Return the objects of a kernel from the records of ccd, else from the build log."""
    if image.record.objects:
        return frozenset(map(name_of, read_records(image.directory / RECORDS).objects))
    return build_log.compiled(read_whole(image.directory / LOG, MOST_LOG_BYTES).decode(errors="replace"))
