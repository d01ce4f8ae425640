"""Finds the subject that a user names: an image, a run, a PMU record, a kernel, another file or a directory.

All commands use it. A name is tried in this order, as far as a command accepts the kind: a file or a directory of this
path, an image, a run. A file in the directory of an image is that image, unless the command accepts its kind.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdyno.base.errors import UserError
from kdyno.base.names import printable
from kdyno.base.state import State
from kdyno.base.text import format_list
from kdyno.kernel.built_kernels.header import MAGIC as BZIMAGE
from kdyno.kernel.built_kernels.header import MAGIC_AT
from kdyno.kernel.image import Image
from kdyno.kernel.images import NoSuchImage, all_keys, find_image, is_of_image, keys_from
from kdyno.measure.guest.pmu_magic import MAGIC as RECORD
from kdyno.store.errors import RunUnknown
from kdyno.store.records import RunRecord
from kdyno.store.store import Store

Kind = Literal["image", "run", "record", "kernel", "elf", "file", "directory"]
HEAD = MAGIC_AT + len(BZIMAGE)
ELF = b"\x7fELF"
NEAR_SHOWN = 5
CALLED: Mapping[Kind, str] = {
    "image": "an image",
    "run": "a run",
    "record": "a PMU record",
    "kernel": "a bzImage",
    "elf": "an ELF file",
    "file": "a file of unknown kind",
    "directory": "a directory",
}
TO_NAME: Mapping[Kind, str] = {
    "image": "an image by its key or its directory (`kdyno build` prints them)",
    "run": "a run by the start of its id (`kdyno runs` lists them)",
    "record": "a file that `kdyno profile record` wrote",
    "kernel": "a bzImage",
    "elf": "an ELF file (vmlinux, object)",
    "file": "a file",
    "directory": "a directory of a kernel build",
}
"""The way to name a subject of each kind, for hints."""


class NothingOfThatName(UserError):
    message = "there is nothing called {named}: {tried}"
    hint = "{near}name {ways}"


class SeveralOfThatName(UserError):
    message = "{named} is the start of {count} keys of images"
    hint = "give more digits: {keys}"


class OtherKind(UserError):
    message = "expected {wanted}, but {named} is {kind}"
    hint = "name {ways}"


@dataclass(frozen=True)
class NamedFile:
    """A file of an accepted kind by its first bytes. The rest of it is not checked."""

    path: Path


@dataclass(frozen=True)
class NamedDirectory:
    """A directory that is not that of an image."""

    path: Path


Subject = Image | RunRecord | NamedFile | NamedDirectory


def find_subject(named: str, wanted: Sequence[Kind], state: State, store: Store | None = None) -> Subject:
    """Find the named subject, which must be of an accepted kind; runs need a store.

    Raises NothingOfThatName, SeveralOfThatName, OtherKind, RunAmbiguous, and what reading images and runs raises.
    """
    path, near = Path(named), list[str]()
    kind = _kind(path)
    if kind in wanted and not (kind == "directory" and is_of_image(path, state)):
        return NamedDirectory(path) if kind == "directory" else NamedFile(path)
    if "image" in wanted:
        with suppress(NoSuchImage):
            return find_image(named, state)
    if store and "run" in wanted:
        try:
            return store.run((named == "latest" and store.newest()) or named)
        except RunUnknown as unknown:
            near.append(str(unknown.facts["nearest"]))
    keys = keys_from(named, state)
    if kind is None and "image" not in wanted and len(keys) == 1:
        kind = "image"
    if kind is not None:
        raise OtherKind(
            named=printable(named), kind=CALLED[kind], wanted=_or(CALLED, wanted), ways=_or(TO_NAME, wanted)
        )
    if "image" in wanted and keys:
        raise SeveralOfThatName(named=printable(named), count=len(keys), keys=format_list(keys, NEAR_SHOWN))
    raise _nothing(named, wanted, near, state, store)


def find_run(named: str, state: State, store: Store) -> RunRecord:
    """Find the named run. Raises what find_subject raises."""
    run = find_subject(named, ("run",), state, store)
    assert isinstance(run, RunRecord)
    return run


def image_named(named: str, state: State) -> Image:
    """Find the named image. Raises what find_subject raises."""
    image = find_subject(named, ("image",), state)
    assert isinstance(image, Image)
    return image


def _kind(path: Path) -> Kind | None:
    """Return the kind of the file or directory; None if the path doesn't exist."""
    if path.is_dir():
        return "directory"
    if not path.is_file():
        return None
    head = b""
    with suppress(OSError), path.open("rb") as file:  # the reader of the file reports why it can't be read
        head = file.read(HEAD)
    if head.startswith(RECORD):
        return "record"
    if head.startswith(ELF):
        return "elf"
    return "kernel" if head[MAGIC_AT:] == BZIMAGE else "file"


def _nothing(
    named: str, wanted: Sequence[Kind], near: Sequence[str], state: State, store: Store | None
) -> NothingOfThatName:
    """Return the error with the names that were tried; `near` are hints of the store at its runs."""
    tried, candidates = [], []
    if set(wanted) - {"image", "run"}:
        tried.append("a symbolic link to nothing" if Path(named).is_symlink() else "no file or directory")
        candidates += _near_files(Path(named))
    if "image" in wanted:
        tried.append(f"no image in {state.images}")
        starts = {key[: len(named)]: key[:12] for key in all_keys(state)}
        candidates += [starts[start] for start in difflib.get_close_matches(named, starts, n=2)]
    if store and "run" in wanted:
        tried.append(f"no run in {store.where}")
    did_you = f"did you mean {' or '.join(map(printable, candidates))}? " if candidates else ""
    hints = did_you + "".join(f"{runs}; " for runs in near)
    return NothingOfThatName(named=printable(named), tried=", ".join(tried), near=hints, ways=_or(TO_NAME, wanted))


def _near_files(path: Path) -> list[str]:
    with suppress(OSError):
        names = [entry.name for entry in path.parent.iterdir() if entry.name != path.name]
        return [str(path.with_name(name)) for name in difflib.get_close_matches(path.name, names, n=2)]
    return []


def _or(words: Mapping[Kind, str], kinds: Sequence[Kind]) -> str:
    *most, last = (words[kind] for kind in kinds)
    return f"{', '.join(most)} or {last}" if most else last
