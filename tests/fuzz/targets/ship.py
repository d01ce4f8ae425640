"""Readers of foreign bytes: packages, the cards in them, and the notes of a running kernel."""

from __future__ import annotations

import lzma
from collections.abc import Sequence
from functools import cache
from pathlib import Path, PurePosixPath

from kdyno.ship.attestation import components, statement
from kdyno.ship.card import parse_card
from kdyno.ship.find_card import FoundCard, build_id_in, of_package
from kdyno.ship.read_package import read_package
from kdyno.ship.terminal import card_lines
from kdyno.ship.verify import differences
from tests.fuzz.check import Target
from tests.unit.foreign_packages import cpio, pacman, pacman_files, rpm, rpm_files
from tests.unit.ship.test_card import notes
from tests.unit.ship_packages import CARD_PATH, card, deb, files_of, tar


def read_foreign_card(path: Path) -> None:
    """A card that is valid can be shown, written in the forms of others, and compared."""
    found = parse_card(path.read_bytes(), path)
    assert parse_card(found.written(), path) == found
    assert card_lines(FoundCard(found, "a kernel"))
    assert statement(found)["subject"] and components(found)["components"]
    assert not list(differences(found, found))
    list(differences(found, card()))


def package(path: Path) -> None:
    content = read_package(path)
    names = [*content.files, *content.cards, *content.kernels]
    assert all(name.isprintable() and not {"", ".", ".."} & set(PurePosixPath(name).parts) for name in names)
    of_package(content, path)


def package_data(path: Path) -> None:
    """The archive in a package: what a change of the compressed bytes never reaches."""
    path.write_bytes(deb(path.read_bytes(), pack=lambda data: lzma.compress(data, preset=0)))
    package(path)


def rpm_archive(path: Path) -> None:
    """The archive in an RPM package: what a change of the compressed bytes never reaches."""
    path.write_bytes(rpm(rpm_files(), archive=path.read_bytes(), pack=lambda data: lzma.compress(data, preset=0)))
    package(path)


def build_id(path: Path) -> None:
    assert set(build_id_in(path.read_bytes())) <= set("0123456789abcdef")


@cache
def archives() -> Sequence[bytes]:
    return [tar(files_of(card().written()), ("./lib/modules/build", "/usr/src/linux"))]


TARGETS = (
    Target("card", read_foreign_card, lambda: [card().written()], (b'"verdicts": {', b'"judged": null', b'"git:1"')),
    Target("package", package, lambda: [deb(data) for data in archives()], (b"control.tar.gz  ", b"`\n")),
    Target("package-data", package_data, archives, (b"../", b"ustar  ", CARD_PATH.encode()), examples=100),
    Target("package-rpm", package, lambda: [rpm(rpm_files())], (b"\x8e\xad\xe8\x01", b"\xff\xff\xff\xff")),
    Target("package-rpm-archive", rpm_archive, lambda: [cpio(rpm_files())], (b"070701", b"TRAILER!!!"), examples=100),
    Target("package-pacman", package, lambda: [pacman(pacman_files())], (b"\xfd7zXZ",), examples=50),
    Target("build-id", build_id, lambda: [notes("ab" * 20)], (b"GNU\0", b"\3\0\0\0")),
)  # fmt: skip
