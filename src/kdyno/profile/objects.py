"""Which objects of an image were compiled with its profile, and why the others were not. Pure.

The fate of an object is `unknown` if it isn't certain: a guess would mislead the reader.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.kernel.delegation.records import ObjectRecord
from kdyno.kernel.vmlinux.sections import GroupedSection

Use = Literal["pgo", "autofdo"]
Family = Literal["gcc", "clang"]
Fate = Literal[
    "profile",
    "never-ran",
    "reading-only",
    "no-sample",
    "not-instrumented",
    "not-in-counting-kernel",
    "training-not-on-record",
    "other-compiler",
    "fallback",
    "other-code",
    "assembly",
    "unknown",
]
WORDS: dict[Fate, str] = {
    "profile": "with the profile",
    "never-ran": "never ran in the training",
    "reading-only": "ran only when the counters were read",
    "no-sample": "no sample in the profile",
    "not-instrumented": "not instrumented",
    "not-in-counting-kernel": "not in the instrumented kernel",
    "training-not-on-record": "training not on record",
    "other-compiler": "compiled by another compiler",
    "fallback": "compiled by the fallback",
    "other-code": "not code of the running kernel",
    "assembly": "assembly code",
    "unknown": "unknown",
}
"""The description of each fate; all but the first are reasons for a missing profile."""
OF_REASONS: dict[str, Fate] = {"assembly code": "assembly", "not code of the running kernel": "other-code"}
"""The fate by the reason for which ccd always passes a call through."""


@dataclass(frozen=True)
class CountedObjects:
    """The objects (gcc) or source files (clang) with counters in the training, by their use."""

    used: frozenset[str]
    """Objects in which a test counted more than taking a snapshot does."""
    moved: frozenset[str]
    """Objects with a counter that increased after the second snapshot, perhaps only by taking snapshots."""
    all: frozenset[str]
    """All objects with counters."""
    has_odd: bool = False
    """Whether some boots have objects that others lack, which boots of one kernel never should."""
    has_unplaced: bool = False
    """Whether there are counters whose object is unknown."""
    has_unplaced_moved: bool = False
    """Whether some of these counters increased."""


@dataclass(frozen=True)
class TrainingRecord:
    """The record of the boots that a profile was made from, and of the booted kernel."""

    compiled: frozenset[str] | None
    """The objects of the kernel; None if its image was removed."""
    counted: CountedObjects | None
    """None if a boot or its counters were removed."""


class ObjectFate(Frozen):
    """One object, and its fate."""

    object: str
    source: str
    """The source file, relative to the source tree."""
    fate: Fate

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.source) or "."


class ProfileObjects(Frozen):
    """The output of `kdyno profile objects --json`: the effect of a profile on a kernel."""

    image: str
    use: Use
    """The kind of the profile: counts of an instrumented kernel, or samples."""
    training: str | None
    """The key of the image that was booted for the profile; None if the profile is external, or not on record."""
    counts: dict[Fate, int]
    """The number of objects by fate, the largest first."""
    objects: tuple[ObjectFate, ...]
    functions: tuple[GroupedSection, ...] | None
    """The sections of hot and cold functions, by name; None if the image was built before kdyno recorded them."""

    @property
    def hot(self) -> tuple[GroupedSection, ...]:
        return tuple(section for section in self.functions or () if section.is_hot)


def profile_objects(
    image: str,
    use: Use,
    family: Family,
    records: Sequence[ObjectRecord],
    *,
    trained_on: str | None,
    training: TrainingRecord,
    sections: Sequence[GroupedSection] | None,
) -> ProfileObjects:
    """Return the effect of a profile; `family` is that of the compilers that read it."""
    objects = [
        ObjectFate(object=name_of(record), source=record.source, fate=fate_of(record, use, family, training))
        for record in records
    ]
    return ProfileObjects(
        image=image,
        use=use,
        training=trained_on,
        counts=dict(Counter(entry.fate for entry in objects).most_common()),
        objects=tuple(sorted(objects, key=lambda entry: (entry.source, entry.object))),
        functions=None
        if sections is None
        else tuple(sorted(sections, key=lambda section: (section.function, section.section, section.object))),
    )


def name_of(record: ObjectRecord) -> str:
    """Return the name of an object relative to the object directory."""
    return record.object.removeprefix("./")


def fate_of(record: ObjectRecord, use: Use, family: Family, training: TrainingRecord) -> Fate:
    """Return the fate of one object. clang reads one profile for all objects: only counters show its objects."""
    if reason := OF_REASONS.get(record.reason):
        return reason
    if record.answer == "fallback" and use not in record.profiles:
        return "fallback"
    if record.compiler.startswith("gcc") != (family == "gcc"):
        return "other-compiler"
    is_about_it = use in record.profiles
    if use == "autofdo":
        return "profile" if is_about_it else "no-sample"
    if family == "gcc":
        return "profile" if is_about_it else _fate_without_use(name_of(record), name_of(record), training)
    return _fate_without_use(record.source, name_of(record), training) if is_about_it else "unknown"


def _fate_without_use(counted_as: str, name: str, training: TrainingRecord) -> Fate:
    """Return the fate of an object without used counters, from its counters."""
    counted, compiled = training.counted, training.compiled
    if counted is None:
        return "training-not-on-record"
    if counted_as in counted.used:
        return "profile"
    if counted.has_unplaced_moved:
        return "unknown"
    if counted_as in counted.moved:
        return "reading-only"
    if counted_as in counted.all:
        return "never-ran"
    if compiled is None:
        return "training-not-on-record"
    if name not in compiled:
        return "not-in-counting-kernel"
    return "unknown" if counted.has_unplaced or counted.has_odd else "not-instrumented"


def count_by_folder(objects: Sequence[ObjectFate], fate: Fate) -> Mapping[str, int]:
    """Return the number of objects with this fate by directory, the largest first."""
    folders = Counter(entry.folder for entry in objects if entry.fate == fate)
    return dict(sorted(folders.items(), key=lambda row: (-row[1], row[0])))
