"""What kdyno-pgod sends: a listing, and the last snapshot of each run, each an archive of `.gcda` files.

All of it comes from another machine: it is bounded, held against the listing, and nothing is written here.
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
    hint = "pull again; `kdyno-pgod status` on that machine says what there is"


class OtherFormat(InfrastructureError):
    message = "{name} is of format {version}, and this kdyno reads format {own}"
    hint = "install the kdyno-pgod on that machine that came with this kdyno"


class Kernel(Frozen):
    """Which kernel counted."""

    release: Annotated[str, Field(max_length=200)]
    build_id: Annotated[str, Field(pattern=r"^[0-9a-f]{0,128}$")] | None

    def in_words(self) -> str:
        return f"{self.release} ({self.build_id[:12]})" if self.build_id else self.release


class PgodRun(Frozen):
    """What was counted from a boot or a reset on, as the last snapshot has it."""

    boot: BootId
    run: Number
    """In the boot, from 1 on."""
    kernel: Kernel
    snapshots: Number
    """How many are kept."""
    sequence: Number
    """Of the last one, in the boot, from 1 on."""
    taken: Number
    """Seconds since 1970 when reading the last one began."""
    milliseconds: Number
    """Reading it took this long."""
    objects: Number
    counter_bytes: Number
    """Of its `.gcda` files."""
    file: Name
    """Below the directory."""
    file_bytes: Number


class PgodListing(Frozen):
    """`kdyno-pgod status --json`, and the first file of what it sends."""

    v: int
    version: Name
    """Of kdyno-pgod."""
    directory: Name
    running: bool
    """Whether snapshots are taken now."""
    bytes: Number
    """Of all snapshots."""
    runs: Annotated[tuple[PgodRun, ...], Field(max_length=MOST_RUNS)]
    """By the time of their last snapshot."""
    unreadable: tuple[Name, ...]
    """Files that are no snapshots."""


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
    """Raises SentDamaged and OtherFormat."""
    return _parsed(PgodListing, content, f"the listing of {sender}")


def read_sent(read: Read, sender: str) -> Iterator[PgodListing | Sent]:
    """What comes from a `sender`: the listing, then each run that is in it.

    Raises SentDamaged, OtherFormat, and for counters what `read_gcda` raises.
    """
    name = f"what {sender} sent"
    archive = files(read, SNAPSHOTS, name, SentDamaged)
    first = next(archive, None)
    if first is None or first[0] != LISTING or len(first[1]) > LARGEST_LISTING:
        raise SentDamaged(name=name, why="it does not begin with a listing")
    listing = listing_of(first[1], sender)
    yield listing
    for run in listing.runs:
        file, content = next(archive, ("", b""))
        if (file, len(content)) != (run.file, run.file_bytes):
            raise SentDamaged(name=name, why=f"{run.file} is missing, or of another size than in the listing")
        yield Sent(run, _objects(content, run, sender))
    if next(archive, None):
        raise SentDamaged(name=name, why="it holds more than its listing says")


def _objects(content: bytes, run: PgodRun, sender: str) -> dict[str, GcovFile]:
    """The counters in a snapshot, which has to be what its run says."""
    name = f"{run.file} of {sender}"
    objects: dict[str, GcovFile] = {}
    budget = CounterAllowance()
    size = 0
    try:
        archive = files(gzip.GzipFile(fileobj=BytesIO(content)).read, OBJECTS, name, SentDamaged)
        about = _parsed(_Description, next(archive, ("", b""))[1], name)
        if (about.boot, about.run, about.sequence) != (run.boot, run.run, run.sequence):
            raise SentDamaged(name=name, why="it is of another run than the listing says")
        for file, counters in archive:
            if not file.endswith(OBJECT):
                raise SentDamaged(name=name, why=f"it holds {file}, which is no {OBJECT} file")
            objects[file] = read_gcda(counters, f"{file} in {name}")
            budget.take(objects[file])
            size += len(counters)
    except (OSError, EOFError, zlib.error) as error:
        raise SentDamaged(name=name, why=str(error).lower()) from error
    if (len(objects), size) != (about.objects, about.bytes):
        raise SentDamaged(name=name, why=f"it has {len(objects):,} objects instead of {about.objects:,}")
    return objects


def _parsed(model: type[Model], content: bytes, name: str) -> Model:
    try:
        parsed = model.model_validate_json(content)
    except ValidationError as error:
        raise SentDamaged(name=name, why=first_fault(error)) from error
    if parsed.v != FORMAT:
        raise OtherFormat(name=name, version=parsed.v, own=FORMAT)
    return parsed
