"""A run in one file, for another person's kdyno: written the same for the same run, and read as if it were a
stranger's.

A gzipped tar archive of plain files: `manifest.json` with the size and the SHA-256 of all others in their order,
`run.json`, a file for each boot, and the boots' artefacts. Digests show damage and carelessness. They don't show
forgery: whoever makes a file can make up its content.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Annotated, TypeVar

from pydantic import Field, ValidationError

from kdyno.base.errors import KdynoError, UserError
from kdyno.base.files import replacement
from kdyno.base.frozen import Frozen
from kdyno.base.mistakes import first_fault
from kdyno.base.plain_tar import END, ArchiveDamaged, TarLimits, entry, files
from kdyno.base.version import __version__
from kdyno.store import identity, plain_json, rows, schema
from kdyno.store.artefacts import Artefacts
from kdyno.store.checks import keys_of
from kdyno.store.records import RunRecord, Sha256
from kdyno.store.whole import KeptSelfTest, KeyedPlace, WholeBoot, WholeRun

FORMAT = 1
MANIFEST, RUN, BOOTS, ARTEFACTS = "manifest.json", "run.json", "boots", "artefacts"
MOST_JSON = 64 << 20
"""Bytes of one JSON file; a boot of 33 benchmarks has 20,000."""
MOST_PACKED = 100
"""The most bytes of its JSON files per byte of the whole file: boots that are all alike have 26."""
LIMITS = TarLimits(files=200_000, file_bytes=512 << 20, total_bytes=64 << 30)

Model = TypeVar("Model", bound=Frozen)


class RunFileUnfit(ArchiveDamaged, UserError):
    exit_code = 1
    message = "{name} can't be imported: {why}"
    hint = "nothing was changed; have it written again by `kdyno store export` at its origin"


class RunFileOfAnotherVersion(UserError):
    message = "{name} is of format {format}, with records of version {records}; this kdyno reads {ours}"
    hint = "nothing was changed; use kdynos of one version on both sides"


class NoRunFile(UserError):
    message = "can't read {name}: {why}"
    hint = "`kdyno store export RUN FILE` writes a file that can be imported"


class ListedFile(Frozen):
    """One file, as the manifest has it."""

    name: Annotated[str, Field(max_length=200)]
    bytes: Annotated[int, Field(ge=0, le=LIMITS.file_bytes)]
    sha256: Sha256


class RunFileManifest(Frozen):
    """The first file: a list of the others."""

    format: int
    records: int
    """The version of the store's tables, whose rows the records are."""
    kdyno: str
    run: str
    files: Annotated[tuple[ListedFile, ...], Field(max_length=LIMITS.files)]


class RunFileRun(Frozen):
    """The content of `run.json`."""

    run: RunRecord
    cells: tuple[KeyedPlace, ...]
    selftest: KeptSelfTest | None


def write_run(whole: WholeRun, artefacts: Artefacts, path: Path) -> list[str]:
    """Write a run's file, whole or not at all; return the artefacts that are lost or damaged, and left out."""
    named = _json_files(whole)
    listed = [(name, len(content), hashlib.sha256(content).hexdigest()) for name, content in named]
    kept, missing = [], []
    for digest in whole.artefacts:
        try:
            size = artefacts.get(digest).stat().st_size
        except KdynoError:
            missing.append(digest)
        else:
            kept.append(digest)
            listed.append((f"{ARTEFACTS}/{digest}", size, digest))
    manifest = RunFileManifest(
        format=FORMAT,
        records=schema.VERSION,
        kdyno=__version__,
        run=whole.run.id,
        files=tuple(ListedFile(name=name, bytes=size, sha256=digest) for name, size, digest in listed),
    )
    with replacement(path) as file, gzip.GzipFile("", "wb", 6, file, mtime=0) as packed:
        packed.write(entry(MANIFEST, _json(manifest)))
        for name, content in named:
            packed.write(entry(name, content))
        for digest in kept:
            packed.write(entry(f"{ARTEFACTS}/{digest}", artefacts.get(digest).read_bytes()))
        packed.write(END)
    return missing


def _json_files(whole: WholeRun) -> list[tuple[str, bytes]]:
    boots = [(f"{BOOTS}/{number}.json", _json(one)) for number, one in enumerate(whole.boots)]
    return [(RUN, _json(RunFileRun(run=whole.run, cells=whole.cells, selftest=whole.selftest))), *boots]


def _json(value: Frozen) -> bytes:
    return f"{value.model_dump_json()}\n".encode()


def read_run(
    file: IO[bytes], name: str, keep: Callable[[str, bytes], None], ahead: Callable[[int], None] = lambda _: None
) -> WholeRun:
    """Read a run's file; `keep` gets each artefact, by its SHA-256, when it was compared with that. `ahead` hears
    before that how many bytes they will be.

    The parts of the result fit together. Raise RunFileUnfit and RunFileOfAnotherVersion, also after artefacts were
    kept.
    """
    try:
        with gzip.GzipFile(fileobj=file) as packed:
            return _read(files(packed.read, LIMITS, name, RunFileUnfit), _size(file), name, keep, ahead)
    except (OSError, EOFError, zlib.error) as error:
        raise RunFileUnfit(name=name, why=f"it is not a gzip file, or a damaged one ({error})") from error


def _size(file: IO[bytes]) -> int:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    return size


def _read(
    archive: Iterator[tuple[str, bytes]],
    size: int,
    name: str,
    keep: Callable[[str, bytes], None],
    ahead: Callable[[int], None],
) -> WholeRun:
    first, content = next(archive, ("", b""))
    if first != MANIFEST:
        raise RunFileUnfit(name=name, why=f"it does not begin with {MANIFEST}")
    _require_version(content, name)
    manifest = _parse_part(RunFileManifest, content, name, MANIFEST)
    unpacked = sum(listed.bytes for listed in manifest.files if not listed.name.startswith(f"{ARTEFACTS}/"))
    if unpacked > MOST_PACKED * size:
        raise RunFileUnfit(name=name, why=f"{unpacked:,} bytes of records are more than a file of {size:,} can hold")
    ahead(sum(listed.bytes for listed in manifest.files) - unpacked)
    run_part: RunFileRun | None = None
    boots: list[WholeBoot] = []
    whole: WholeRun | None = None
    named: dict[str, None] = {}
    for listed in manifest.files:
        member, content = next(archive, ("", b""))
        if (member, len(content)) != (listed.name, listed.bytes):
            raise RunFileUnfit(name=name, why=f"{listed.name} is missing, or of another size than in its manifest")
        if hashlib.sha256(content).hexdigest() != listed.sha256:
            raise RunFileUnfit(name=name, why=f"{listed.name} was changed: its SHA-256 isn't that in the manifest")
        if run_part is None:
            if listed.name != RUN:
                raise RunFileUnfit(name=name, why=f"{RUN} is not the first of its files")
            run_part = _parse_part(RunFileRun, content, name, listed.name)
        elif listed.name == f"{BOOTS}/{len(boots)}.json" and whole is None:
            boots.append(_parse_part(WholeBoot, content, name, listed.name))
        elif listed.name == f"{ARTEFACTS}/{listed.sha256}":
            if whole is None:  # a file that is refused leaves nothing behind
                whole = _whole(run_part, boots, manifest, name)
                named = whole.artefacts
            if listed.sha256 not in named:
                raise RunFileUnfit(name=name, why=f"no boot has the artefact {listed.sha256}")
            keep(listed.sha256, content)
        else:
            raise RunFileUnfit(name=name, why=f"it holds {listed.name}, which no run has")
    if next(archive, None):
        raise RunFileUnfit(name=name, why="it holds more than its manifest lists")
    return whole or _whole(run_part, boots, manifest, name)


def _whole(run_part: RunFileRun | None, boots: list[WholeBoot], manifest: RunFileManifest, name: str) -> WholeRun:
    """Return the run that consists of these parts. Raise RunFileUnfit."""
    if run_part is None or run_part.run.id != manifest.run:
        raise RunFileUnfit(name=name, why="it is of another run than its manifest says")
    whole = WholeRun(run=run_part.run, cells=run_part.cells, selftest=run_part.selftest, boots=tuple(boots))
    if why := inconsistency(whole):
        raise RunFileUnfit(name=name, why=why)
    return whole


class _Version(Frozen, extra="ignore"):
    """The fields that every version of a manifest has."""

    format: int
    records: int


def _require_version(content: bytes, name: str) -> None:
    version = _parse_part(_Version, content, name, MANIFEST)
    if (version.format, version.records) != (FORMAT, schema.VERSION):
        ours = f"format {FORMAT}, with records of version {schema.VERSION}"
        raise RunFileOfAnotherVersion(name=name, format=version.format, records=version.records, ours=ours)


def _parse_part(model: type[Model], content: bytes, name: str, part: str) -> Model:
    if len(content) > MOST_JSON:
        raise RunFileUnfit(name=name, why=f"{part} has {len(content):,} bytes")
    try:
        plain_json.parse(content.decode())
        return model.model_validate_json(content)
    except ValidationError as error:
        raise RunFileUnfit(name=name, why=f"{part}: {first_fault(error)}") from error
    except ValueError as error:
        raise RunFileUnfit(name=name, why=f"{part} is not plain JSON: {error}") from error


def inconsistency(whole: WholeRun) -> str | None:
    """Return why these parts are not those of one run, as a store would have it; None if they are. Pure."""
    run = whole.run
    if not identity.fits(run, whole.in_cells):
        return "the run's id does not match its name, its judge and the keys of its boots"
    known = {place.key for place in whole.cells} | keys_of(run)
    for key, attempts in whole.by_key.items():
        if key not in known:
            return f"boot {key[:64]} does not belong to the run"
        if [one.boot.attempt for one in attempts] != list(range(len(attempts))):
            return f"the attempts of boot {key[:64]} are not counted from 0"
        if any(one.boot.status != "lost" for one in attempts[:-1]):
            return f"boot {key[:64]} was started again, but was not lost"
        for one in attempts:
            try:
                rows.check(one.boot, one.benchmarks)
            except KdynoError as error:
                return str(error)
    return None
