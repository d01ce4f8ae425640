"""The PMU record: the counts of the emulated PMU in one boot, read as the hostile input that it is.

A line `kdyno-pmu 1`, a line of JSON (the header), and a zlib stream of LEB128 numbers (the body); docs/profiles.md
describes all of it. The guest decides what is counted, so every number and length is checked before it is used: the
first two lines here, the body in pmu_body.py.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, ValidationError

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import read_whole, write_whole
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.profile_files import refuse_other_tools
from kdyno.measure.guest.pmu_body import PmuBody, read_body
from kdyno.measure.guest.pmu_limits import MOST, Unsound, limit_name
from kdyno.measure.guest.pmu_magic import MAGIC
from kdyno.measure.guest.pmu_parts import Array, Function, Region

VERSION = b"2"
LONGEST_HEADER = 1 << 20
LARGEST_FILE = MOST["body_bytes"] + 2 * LONGEST_HEADER
"""Bytes: incompressible data takes a little more room than it has bytes."""


class NoSuchRecord(UserError):
    message = "can't read the PMU record {path}: {why}"
    hint = "`kdyno profile record` makes one"


class PmuRecordDamaged(InfrastructureError):
    message = "the PMU record {path} is damaged: {why}"
    hint = "record it again"


class NotAPmuRecord(PmuRecordDamaged):
    message = "{path} is not a PMU record"
    hint = "`kdyno profile record` makes one"


class OtherPmuRecordVersion(PmuRecordDamaged):
    message = "{path} is a PMU record of version {version}, but this kdyno reads version {known}"
    hint = "use the kdyno that made it, or record it again"


class PmuRecordCutShort(PmuRecordDamaged):
    message = "the PMU record {path} is cut short after {size} bytes"
    hint = "record it again; check whether the disk was full, or QEMU was killed"


class NoRegions(InfrastructureError):
    message = "{path} has no regions: the guest executed no markers"
    hint = "check that agent and plugin are of one release, and that the boot came as far as its first benchmark"


class PluginGaveUp(InfrastructureError):
    message = "{path}: the PMU plugin gave up: more than {most:,} {things}"
    hint = "no valid kernel or program makes so many, so its counts can't be used"


class MarkersNeverClosed(InfrastructureError):
    message = "{path}: the region of benchmark {benchmark}, iteration {iteration}, was never closed"
    hint = "the guest stopped inside it, and its counts can't be used; the boot's console says how it ended"


@dataclass(frozen=True, eq=False)
class PmuRecord:
    """A whole record; E is the number of `names`."""

    plugin: str
    scope: str
    events: str
    image: str | None
    """The SHA-256 of the vmlinux that ran."""
    family: str | None
    names: tuple[str, ...]
    """The names of the events, in the order of every vector of counts."""
    opened: int
    unclosed: tuple[int, int] | None
    """Regions by benchmark and iteration."""
    functions: tuple[Function, ...]
    regions: dict[int, Region]
    benchmarks: tuple[str, ...] = ()
    """Names by index; empty if nobody wrote them into the file."""
    merged: int = 1
    """The number of boots that it was made from."""
    qemu_api: int = 0
    """The version of QEMU's plugin interface."""
    unmeasured: Array | None = None
    """The code executed outside of all regions, of dtype BLOCK; None: the plugin that wrote it didn't count it."""

    def benchmark_name(self, benchmark: int) -> str:
        return self.benchmarks[benchmark] if benchmark < len(self.benchmarks) else f"#{benchmark}"


_Count = Annotated[int, Field(ge=0, lt=1 << 63, strict=True)]
_Text = Annotated[str, Field(max_length=100)]
_Event = Annotated[str, Field(pattern=r"^[a-z0-9_]+$", max_length=80)]
_Benchmark = Annotated[str, Field(pattern=r"^[a-z0-9_-]+(\.[a-z0-9_]+)*$", max_length=80)]


class _Open(Frozen):
    benchmark: _Count
    iteration: _Count


class _GaveUp(Frozen):
    of: Annotated[str, Field(pattern=r"^[a-z_]+$", max_length=40)]
    most: _Count


class _Header(Frozen):
    model_config = ConfigDict(extra="ignore")

    plugin: _Text
    qemu_api: _Count
    scope: Literal["kernel", "all", "user"]
    events: Literal["edges", "all", "trace"]
    image: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None
    family: _Text | None
    event_names: Annotated[tuple[_Event, ...], Field(max_length=200)]
    bytes: Annotated[int, Field(ge=0, le=MOST["body_bytes"], strict=True)]
    unclosed: _Open | None
    opened: _Count
    gave_up: _GaveUp | None = None
    unmeasured: bool = False
    benchmarks: Annotated[tuple[_Benchmark, ...], Field(max_length=10_000)] = ()
    merged: Annotated[int, Field(ge=1, le=1 << 31, strict=True)] = 1


def read_pmu_record(path: Path, *, needs_regions: bool = True) -> PmuRecord:
    """Read a record. Raise PmuRecordDamaged or one of its kinds, PluginGaveUp, NoRegions, MarkersNeverClosed.

    Without `needs_regions`, the record of a boot that marked no region is accepted: it has the code that ran outside of
    regions.
    """
    data = _bytes_of(path)
    header, compressed = _split(data, path)
    inflater = zlib.decompressobj()
    try:
        numbers = inflater.decompress(compressed, header.bytes + 1)
    except zlib.error as error:
        raise PmuRecordDamaged(path=path, why=f"its body doesn't inflate ({error})") from None
    if len(numbers) > header.bytes or inflater.unused_data:
        raise PmuRecordDamaged(path=path, why="it continues after the end that its header gives")
    if not inflater.eof or len(numbers) < header.bytes:
        raise PmuRecordCutShort(path=path, size=len(data))
    if header.gave_up:
        raise PluginGaveUp(path=path, most=header.gave_up.most, things=limit_name(header.gave_up.of))
    if header.opened == 0 and needs_regions:
        raise NoRegions(path=path)
    if header.unclosed:
        benchmark = header.unclosed.benchmark
        named = header.benchmarks[benchmark] if benchmark < len(header.benchmarks) else benchmark
        raise MarkersNeverClosed(path=path, benchmark=named, iteration=header.unclosed.iteration)
    is_traced = header.events == "trace"
    try:
        body = read_body(numbers, len(header.event_names), is_traced=is_traced, has_unmeasured=header.unmeasured)
    except Unsound as error:
        raise PmuRecordDamaged(path=path, why=error) from None
    return _record(header, body)


def with_benchmarks(path: Path, names: Sequence[str], out: Path) -> None:
    """Write the record `path` to `out` (which may be the same) with the names of its benchmarks, by index.

    Raise NotWritable and DiskFull, and the errors of read_pmu_record for an invalid file.
    """
    header, body = _split(_bytes_of(path), path)
    named = json.dumps(header.model_dump() | {"benchmarks": list(names)}, separators=(",", ":"))
    write_whole(out, b"\n".join((MAGIC + VERSION, named.encode(), body)))


def _bytes_of(path: Path) -> bytes:
    try:
        return read_whole(path, LARGEST_FILE)
    except OSError as error:
        raise NoSuchRecord(path=path, why=error.strerror) from error


def _split(data: bytes, path: Path) -> tuple[_Header, bytes]:
    """Return the header and the compressed body. Raise the errors of the first two lines."""
    first = MAGIC + VERSION + b"\n"
    if not data.startswith(first):
        if first.startswith(data):
            raise PmuRecordCutShort(path=path, size=len(data))
        version, newline, _ = data.removeprefix(MAGIC)[:20].partition(b"\n")
        if data.startswith(MAGIC) and newline and version.isdigit():
            raise OtherPmuRecordVersion(path=path, version=version.decode(), known=VERSION.decode())
        refuse_other_tools(path, data, taken=())
        raise NotAPmuRecord(path=path)
    end = data.find(b"\n", len(first), len(first) + LONGEST_HEADER)
    if end < 0 and len(data) <= len(first) + LONGEST_HEADER:
        raise PmuRecordCutShort(path=path, size=len(data))
    try:
        header = _Header.model_validate_json(data[len(first) : end])
    except ValidationError as error:
        raise PmuRecordDamaged(path=path, why=first_fault(error, "the header")) from None
    if len(set(header.event_names)) != len(header.event_names) or "instructions" not in header.event_names:
        raise PmuRecordDamaged(path=path, why="event_names: instructions must be there, and no name twice")
    return header, data[end + 1 :]


def _record(header: _Header, body: PmuBody) -> PmuRecord:
    return PmuRecord(
        plugin=header.plugin,
        scope=header.scope,
        events=header.events,
        image=header.image,
        family=header.family,
        names=header.event_names,
        opened=header.opened,
        unclosed=None,
        functions=body.functions,
        regions=body.regions,
        benchmarks=header.benchmarks,
        merged=header.merged,
        qemu_api=header.qemu_api,
        unmeasured=body.unmeasured,
    )
