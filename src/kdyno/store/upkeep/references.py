"""The needed part of a state directory: everything that runs and soaks refer to, and their own references."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pydantic import BaseModel, ConfigDict, ValidationError

from kdyno.base.files import read_whole
from kdyno.base.state import State
from kdyno.kernel import images
from kdyno.kernel.image import ImageRecord
from kdyno.kernel.images import ImageCorrupt
from kdyno.kernel.patches import patched_tree
from kdyno.kernel.source_trees import tree_path
from kdyno.store.derivation import Derivation
from kdyno.store.records import RunRecord

MOST_BYTES = 64 << 20
"""Bytes of the record of a derivation, or of a soak."""


class _SoakedKernel(BaseModel):
    model_config = ConfigDict(extra="ignore")

    image: str
    variant_of: str | None = None


class _Soaked(BaseModel):
    """The images of a soak; the rest of its record may be of another version."""

    model_config = ConfigDict(extra="ignore")

    kernel: _SoakedKernel


@dataclass
class References:
    """Names and keys of needed things, by part of the state directory."""

    images: set[str] = field(default_factory=set)
    inputs: set[str] = field(default_factory=set)
    sources: set[str] = field(default_factory=set)
    patches: set[str] = field(default_factory=set)
    """The SHA-256 of patches."""
    roots: set[str] = field(default_factory=set)
    """The SHA-256 of root file systems."""
    boots: set[str] = field(default_factory=set)
    """Keys of boots that no run has, and that inputs were made from."""


def references(runs: Iterable[RunRecord], state: State) -> References:
    """Return the needs of these runs and of the soaks of a state directory.

    An image needs its source, its patches, and its inputs; an input that was made from boots needs these, and the image
    that was booted. So everything that a kept recipe derives from is kept, too.
    """
    refs = References()
    remaining: dict[str, ImageRecord | None] = dict.fromkeys(_soaked_images(state))
    for run in runs:
        remaining.update({image.key: image for variant in run.variants for image in variant.images})
        if isinstance(root := run.machine.get("root"), str):
            refs.roots.add(root)
    while remaining:
        key, record = remaining.popitem()
        if key in refs.images:
            continue
        refs.images.add(key)
        record = record or _record(key, state)
        if record is not None:
            _add_needs(record, refs, state)
            remaining.update(_derived_images(record.inputs, refs, state))
    return refs


def _add_needs(record: ImageRecord, refs: References, state: State) -> None:
    identity = record.source.identity
    refs.sources |= {tree_path(identity, state).name, patched_tree(identity, record.patches, state).name}
    refs.patches |= set(record.patches)
    refs.inputs |= set(record.inputs.values())


def _derived_images(inputs: Mapping[str, str], refs: References, state: State) -> dict[str, None]:
    """Return the images that inputs were trained on; their boots are needed, too."""
    trainees: dict[str, None] = {}
    for digest in inputs.values():
        with suppress(OSError, ValidationError):  # it is a user's own file, or of another version
            path = state.file("inputs") / f"{digest}.json"
            derivation = Derivation.model_validate_json(read_whole(path, MOST_BYTES, follow_link=False))
            refs.boots |= set(derivation.boots)
            trainees[derivation.image] = None
    return trainees


def _record(key: str, state: State) -> ImageRecord | None:
    with suppress(ImageCorrupt):
        return images.read_record(state.file("images") / key)
    return None


def _soaked_images(state: State) -> list[str]:
    keys = []
    for path in sorted(state.file("soaks").glob("*.json")):
        with suppress(OSError, ValidationError):
            kernel = _Soaked.model_validate_json(read_whole(path, MOST_BYTES, follow_link=False)).kernel
            keys += [key for key in (kernel.image, kernel.variant_of) if key]
    return keys
