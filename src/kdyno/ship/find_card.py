"""Finds the card of a kernel that somebody names, and compares it with that kernel: a card of another image is
refused.
"""

from __future__ import annotations

import hashlib
import os
import struct
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import open_regular, read_whole
from kdyno.kernel.built_kernels.header import MOST_KERNEL, read_header
from kdyno.ship.card import DIRECTORY, Card, parse_card, read_card
from kdyno.ship.package_content import PackageContent, PackageKind
from kdyno.ship.read_package import PackageUnreadable, is_package, read_package

RUNNING = "running"
NOTES = Path("/sys/kernel/notes")
MOST_NOTES = 1_000_000
MOST_BEGINNING = 16
"""Bytes that show whether a file is a package."""
GNU, BUILD_ID = b"GNU\0", 3


class NoKernelThere(UserError):
    message = "can't read {path}: {why}"
    hint = "name a vmlinuz, a package that `kdyno ship` wrote, or `running` for the kernel that runs here"


class NoCard(UserError):
    message = "there is no card of the kernel {release}: {path} is missing"
    hint = "only kernels that `kdyno ship` packed have a card; `--card FILE` names one that is elsewhere"


class CardOfAnother(UserError):
    message = "the card in {path} is not that of this kernel: {why}"
    hint = "don't trust it; install the package again, or compare its checksum with that of its origin"


@dataclass(frozen=True)
class FoundCard:
    """A card that belongs to the kernel that was named."""

    card: Card
    subject: str
    """What was named, and how card and kernel were compared."""
    package_sha256: str | None = None
    package_kind: PackageKind | None = None


def find_card(named: str, card_file: Path | None, root: Path = Path("/")) -> FoundCard:
    """Return the card of a kernel: a vmlinuz, a package, or `running`.

    Raise NoKernelThere, NoCard, CardUnreadable, CardOfAnother, PackageUnreadable and NotABootableKernel.
    """
    if named == RUNNING:
        return _of_running(card_file, root)
    path = Path(named)
    try:
        with open_regular(path) as file:
            names_package = is_package(file.read(MOST_BEGINNING))
    except OSError as error:
        raise NoKernelThere(path=path, why=error.strerror) from None
    if names_package:
        return of_package(read_package(path), path)
    return _of_kernel(path, card_file)


def of_package(content: PackageContent, path: Path) -> FoundCard:
    """Return the card in a package, compared with the kernel in it. Raise the errors above."""
    if len(content.cards) != 1 or len(content.kernels) != 1:
        why = f"it has {len(content.cards)} cards and {len(content.kernels)} kernels, and a package has one of each"
        raise PackageUnreadable(path=path, why=why)
    [(place, kernel)] = content.kernels.items()
    [written] = content.cards.values()
    card = parse_card(written, path)
    _require_same(card, place, kernel, path)
    named = {"package": (content.name, card.package), "version": (content.version, card.version)}
    for what, (actual, claimed) in named.items():
        if actual != claimed:
            raise CardOfAnother(path=path, why=f"it names the {what} {claimed}, and the {what} is {actual}")
    return FoundCard(card, f"{place} in {path.name}: SHA-256 and release agree", content.sha256, content.kind)


def _of_kernel(path: Path, card_file: Path | None) -> FoundCard:
    try:
        kernel = read_whole(path, MOST_KERNEL)
    except OSError as error:
        raise NoKernelThere(path=path, why=error.strerror) from None
    release = read_header(kernel, path).release
    place = card_file or _card_place(path, release)
    card = _read(place, release)
    _require_same(card, path.name, kernel, place)
    return FoundCard(card, f"{path}: SHA-256 and release agree")


def _card_place(path: Path, release: str) -> Path:
    """Return where the card of a kernel is: below the root that has its /boot, or the directory of its modules."""
    directory = path.absolute().parent
    is_beside_modules = directory.name == release and directory.parent.name == "modules"
    root = directory.parents[2] if is_beside_modules else directory.parent
    if is_beside_modules and root.name == "usr":
        root = root.parent
    return root / DIRECTORY / f"{release}.json"


def _of_running(card_file: Path | None, root: Path) -> FoundCard:
    release = os.uname().release
    place = card_file or root / DIRECTORY / f"{release}.json"
    card = _read(place, release)
    if card.release != release:
        raise CardOfAnother(path=place, why=f"it is that of {card.release}, and {release} runs")
    ours = running_build_id(root / NOTES.relative_to("/"))
    if not ours or ours != card.image.build_id:
        theirs = card.image.build_id or "none"
        why = f"the build ID of the running kernel is {ours or 'unknown'}, and the card has {theirs}"
        raise CardOfAnother(path=place, why=why)
    return FoundCard(card, f"the running kernel {release}: release and build ID agree")


def _read(place: Path, release: str) -> Card:
    if not place.exists():
        raise NoCard(release=release, path=place)
    return read_card(place)


def _require_same(card: Card, name: str, kernel: bytes, place: Path) -> None:
    """Raise CardOfAnother unless the card is that of this vmlinuz."""
    actual = hashlib.sha256(kernel).hexdigest()
    if actual != card.image.sha256:
        raise CardOfAnother(path=place, why=f"SHA-256 of {name} is {actual}, and the card has {card.image.sha256}")
    release = read_header(kernel, Path(name)).release
    if release != card.release:
        raise CardOfAnother(path=place, why=f"{name} is the kernel {release}, and the card has {card.release}")


def running_build_id(notes: Path) -> str:
    """Return the digits of the running kernel's build ID; empty if they can't be read."""
    with suppress(OSError, struct.error):
        return build_id_in(read_whole(notes, MOST_NOTES))
    return ""


def build_id_in(notes: bytes) -> str:
    """Return the digits of the GNU build ID in a section of ELF notes; empty if there is none. Pure."""
    at = 0
    while at + 12 <= len(notes):
        name_size, size, kind = struct.unpack_from("<III", notes, at)
        name_at = at + 12
        content_at = name_at + -(-name_size // 4) * 4
        if kind == BUILD_ID and notes[name_at : name_at + name_size] == GNU:
            return notes[content_at : content_at + size].hex()
        at = content_at + -(-size // 4) * 4
    return ""
