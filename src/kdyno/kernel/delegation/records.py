"""The records of ccd: one for each object, and one for each probe that compilers disagreed on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault

FILE = "delegation.jsonl"
"""The name of the records, in the build directory and in an image."""
MOST_BYTES = 100_000_000


class RecordsUnreadable(InfrastructureError):
    message = "can't read the records of ccd in {path}: {why}"
    hint = "build the image again"


class PassDone(Frozen):
    """A pass, and how many places of the text it changed; None if it doesn't report that."""

    name: str
    changes: int | None


class ObjectRecord(Frozen):
    """How one object was made."""

    object: str
    """The path in the call: relative to the object directory."""
    source: str
    """The path relative to the source tree."""
    answer: Literal["rewritten", "passed", "fallback"]
    reason: str = ""
    """The reason why it was passed through, or fell back."""
    rule: str | None = None
    compiler: str
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    translated: tuple[tuple[str, str], ...] = ()
    """Options as Kbuild had them, and as the compiler got them; empty: dropped."""
    by_assembler: bool = False
    passes: tuple[PassDone, ...] = ()
    profiles: tuple[str, ...] = ()
    """The profiles that cover its source, by name."""
    notes: tuple[str, ...] = ()
    findings: tuple[dict[str, Any], ...] = ()
    """Findings of lints, in the form of `kdyno kernel lint`; none if the plan didn't request them."""
    seconds: float | None = None
    """CPU time of compiler, passes and assembler; None if ccd became the compiler, and so couldn't measure it."""


class ProbeRecord(Frozen):
    """A question of Kconfig's or of a makefile's that was answered with no because one compiler said so."""

    probe: tuple[str, ...]
    refused_by: str
    why: str


Line = ObjectRecord | ProbeRecord
LINE: TypeAdapter[Line] = TypeAdapter(Line)


class Records(Frozen):
    """All records of ccd from a build, in their order."""

    objects: tuple[ObjectRecord, ...] = ()
    """The latest record of each object."""
    probes: tuple[ProbeRecord, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """Return the number of objects by compiler, the largest first."""
        return dict(Counter(record.compiler for record in self.objects).most_common())

    @property
    def profiled(self) -> dict[str, int]:
        """Return the number of objects whose source a profile covers, by the profile's name."""
        return dict(Counter(name for record in self.objects for name in record.profiles))


def read_records(path: Path) -> Records:
    """Return the records in a file. Raise RecordsUnreadable."""
    try:
        lines = read_whole(path, MOST_BYTES).splitlines()
        all_records = [LINE.validate_json(line) for line in lines]
    except OSError as error:
        raise RecordsUnreadable(path=path, why=error.strerror) from error
    except ValidationError as error:
        raise RecordsUnreadable(path=path, why=first_fault(error)) from error
    latest = {record.object: record for record in all_records if isinstance(record, ObjectRecord)}
    probes = {record.probe: record for record in all_records if isinstance(record, ProbeRecord)}
    return Records(objects=tuple(latest.values()), probes=tuple(probes.values()))


def written(records: Records) -> str:
    """Return the records as lines of JSON, as an image keeps them."""
    lines: Iterable[Frozen] = (*records.probes, *records.objects)
    return "".join(f"{line.model_dump_json()}\n" for line in lines)
