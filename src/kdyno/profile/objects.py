"""Which objects of an image were compiled by its profile, and why the others were not. Pure.

What can't be told for sure is `unknown`: a guess would send its reader to the wrong place.
"""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.kernel.delegation.records import ObjectRecord
from kdyno.kernel.sections import GroupedSection

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
    "reading-only": "ran no more than reading the counters takes",
    "no-sample": "no sample in the profile",
    "not-instrumented": "not instrumented",
    "not-in-counting-kernel": "not in the counting kernel",
    "training-not-on-record": "training not on record",
    "other-compiler": "made by another compiler",
    "fallback": "made by the fallback",
    "other-code": "not code of the running kernel",
    "assembly": "assembly code",
    "unknown": "unknown",
}
"""What became of an object; each but the first is why it has no profile."""
OF_REASONS: dict[str, Fate] = {"assembly code": "assembly", "not code of the running kernel": "other-code"}
"""By ccd's reasons for passing a call through whatever it is told."""


@dataclass(frozen=True)
class CountedObjects:
    """What training knew of objects (gcc) or source files (clang) with counters; each has at least one state."""

    used: frozenset[str]
    """A test counted in them more than a snapshot adds."""
    moved: frozenset[str]
    """Some counter of theirs went up after the second snapshot, be it by what a snapshot adds."""
    all: frozenset[str]
    """All that have counters."""
    has_odd: bool = False
    """Some boots know objects that others don't, as boots of one kernel never should."""
    has_unplaced: bool = False
    """There are counters of which nothing says whose they are."""
    has_unplaced_moved: bool = False
    """Some of these went up."""


@dataclass(frozen=True)
class TrainingRecord:
    """What is on record of the boots that a profile was made of, and of the kernel that was booted."""

    compiled: frozenset[str] | None
    """Its objects; None if its image is gone."""
    counted: CountedObjects | None
    """None if a boot or what it counted is gone."""


class ObjectFate(Frozen):
    """One object, and what became of it."""

    object: str
    source: str
    """Relative to the source tree."""
    fate: Fate

    @property
    def folder(self) -> str:
        return posixpath.dirname(self.source) or "."


class ProfileObjects(Frozen):
    """`kdyno profile objects --json`: what a profile did to a kernel."""

    image: str
    use: Use
    """What compilers were given: counts of an instrumented kernel, or samples."""
    training: str | None
    """The key of the image that was booted for the profile; None: it is from elsewhere, or not on record."""
    counts: dict[Fate, int]
    """Objects by what became of them, the most first."""
    objects: tuple[ObjectFate, ...]
    functions: tuple[GroupedSection, ...] | None
    """Sections of hot and cold functions, by name; None: the image was built before these were kept."""

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
    """All of it; `family` is that of the compilers that read the profile."""
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
    """The object, relative to the object directory, as all others name it."""
    return record.object.removeprefix("./")


def fate_of(record: ObjectRecord, use: Use, family: Family, training: TrainingRecord) -> Fate:
    """What became of one object. clang gets one profile for all, so that counters alone say what it is about."""
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
        return "profile" if is_about_it else _without(name_of(record), name_of(record), training)
    return _without(record.source, name_of(record), training) if is_about_it else "unknown"


def _without(counted_as: str, name: str, training: TrainingRecord) -> Fate:
    """What the counters say of an object; with gcc it is known to have none that were used."""
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


def by_folder(objects: Sequence[ObjectFate], fate: Fate) -> Mapping[str, int]:
    """How many objects met this fate in each directory, the most first."""
    folders = Counter(entry.folder for entry in objects if entry.fate == fate)
    return dict(sorted(folders.items(), key=lambda row: (-row[1], row[0])))
