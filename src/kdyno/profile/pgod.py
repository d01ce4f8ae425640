"""Reading the output of kdyno-pgod: a listing, and the last snapshot of each run, an archive of `.gcda` files.

The data come from another machine: they are bounded and checked against the listing, and nothing is written here.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated, TypeVar

from pydantic import Field, ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.plain_tar import ArchiveDamaged, Read, TarLimits, files
from kdyno.profile.gcda import CounterAllowance, GcovFile, read_gcda

FORMAT = 1
MOST_RUNS = 10_000
LISTING, DESCRIPTION = "listing.json", "snapshot.json"
LARGEST_LISTING = 16 << 20
OBJECT = ".gcda"
SNAPSHOTS = TarLimits(files=MOST_RUNS + 1, file_bytes=128 << 20, total_bytes=8 << 30)
OBJECTS = TarLimits(files=200_000, file_bytes=64 << 20, total_bytes=4 << 30)

BootId = Annotated[str, Field(pattern=r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")]
Name = Annotated[str, Field(max_length=4096)]
Number = Annotated[int, Field(ge=0, lt=2**63)]


class SentDamaged(ArchiveDamaged):
    hint = "pull again; `kdyno-pgod status` on that machine lists its snapshots"


class OtherFormat(InfrastructureError):
    message = "{name} has format {version}: expected format {own}"
    hint = "install the kdyno-pgod of this kdyno on that machine"


class Kernel(Frozen):
    """The kernel that counted."""

    release: Annotated[str, Field(max_length=200)]
    build_id: Annotated[str, Field(pattern=r"^[0-9a-f]{0,128}$")] | None

    def in_words(self) -> str:
        return f"{self.release} ({self.build_id[:12]})" if self.build_id else self.release


class PgodRun(Frozen):
    """The counts since a boot or a reset, in the last snapshot."""

    boot: BootId
    run: Number
    """The number of the run in the boot, from 1."""
    kernel: Kernel
    snapshots: Number
    """The number of stored snapshots."""
    sequence: Number
    """The number of the last snapshot in the boot, from 1."""
    taken: Number
    """The time at which reading the last snapshot began, in seconds since 1970."""
    milliseconds: Number
    """The duration of reading it."""
    objects: Number
    counter_bytes: Number
    """The size of its `.gcda` files in bytes."""
    file: Name
    """The path below the directory of the snapshots."""
    file_bytes: Number


class PgodListing(Frozen):
    """The output of `kdyno-pgod status --json`, and the first file of its archives."""

    v: int
    version: Name
    """The version of kdyno-pgod."""
    directory: Name
    running: bool
    """Whether kdyno-pgod is taking snapshots now."""
    bytes: Number
    """The size of all snapshots in bytes."""
    runs: Annotated[tuple[PgodRun, ...], Field(max_length=MOST_RUNS)]
    """The runs, in the order of their last snapshots."""
    unreadable: tuple[Name, ...]
    """Files that are not snapshots."""


class _Description(Frozen):
    """`snapshot.json`."""

    v: int
    boot: BootId
    run: Number
    sequence: Number
    taken: Number
    milliseconds: Number
    kernel: Kernel
    objects: Number
    bytes: Number


Model = TypeVar("Model", PgodListing, _Description)


@dataclass(frozen=True)
class Sent:
    """A run and the counters of its objects, by name."""

    run: PgodRun
    objects: dict[str, GcovFile]


def listing_of(content: bytes, sender: str) -> PgodListing:
    """Parse a listing. Raises SentDamaged and OtherFormat."""
    return _parse(PgodListing, content, f"the listing of {sender}")


def read_sent(read: Read, sender: str) -> Iterator[PgodListing | Sent]:
    """Yield the content of an archive of `sender`: the listing, then each run of the listing.

    Raises SentDamaged, OtherFormat, and what `read_gcda` raises.
    """
    name = f"the archive from {sender}"
    archive = files(read, SNAPSHOTS, name, SentDamaged)
    first = next(archive, None)
    if first is None or first[0] != LISTING or len(first[1]) > LARGEST_LISTING:
        raise SentDamaged(name=name, why="it does not begin with a listing")
    listing = listing_of(first[1], sender)
    yield listing
    for run in listing.runs:
        file, content = next(archive, ("", b""))
        if (file, len(content)) != (run.file, run.file_bytes):
            raise SentDamaged(name=name, why=f"{run.file} is missing, or its size differs from the listing")
        yield Sent(run, _objects(content, run, sender))
    if next(archive, None):
        raise SentDamaged(name=name, why="it contains files that are not in its listing")


def _objects(content: bytes, run: PgodRun, sender: str) -> dict[str, GcovFile]:
    """Return the counters of a snapshot, which must match the listing of its run."""
    name = f"{run.file} of {sender}"
    objects: dict[str, GcovFile] = {}
    budget = CounterAllowance()
    size = 0
    try:
        archive = files(gzip.GzipFile(fileobj=BytesIO(content)).read, OBJECTS, name, SentDamaged)
        about = _parse(_Description, next(archive, ("", b""))[1], name)
        if (about.boot, about.run, about.sequence) != (run.boot, run.run, run.sequence):
            raise SentDamaged(name=name, why="its run differs from the listing")
        for file, counters in archive:
            if not file.endswith(OBJECT):
                raise SentDamaged(name=name, why=f"it contains {file}, which is not a {OBJECT} file")
            objects[file] = read_gcda(counters, f"{file} in {name}")
            budget.take(objects[file])
            size += len(counters)
    except (OSError, EOFError, zlib.error) as error:
        raise SentDamaged(name=name, why=str(error).lower()) from error
    if (len(objects), size) != (about.objects, about.bytes):
        raise SentDamaged(name=name, why=f"expected {about.objects:,} objects, got {len(objects):,}")
    return objects


def _parse(model: type[Model], content: bytes, name: str) -> Model:
    try:
        parsed = model.model_validate_json(content)
    except ValidationError as error:
        raise SentDamaged(name=name, why=first_fault(error)) from error
    if parsed.v != FORMAT:
        raise OtherFormat(name=name, version=parsed.v, own=FORMAT)
    return parsed
