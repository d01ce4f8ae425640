"""RPM packages and packages for pacman of unknown origin: sound ones, and those that were made to mislead."""

from __future__ import annotations

import hashlib
import resource
from pathlib import Path

import pytest

from kdyno.ship import package_content, read_rpm
from kdyno.ship.find_card import CardOfAnother, find_card
from kdyno.ship.read_package import PackageUnreadable, read_package
from tests.unit.foreign_packages import (
    CARD_FILE,
    DIRECTORY,
    FILE,
    INFO,
    LINK,
    PACMAN_KERNEL,
    PACMAN_NAME,
    RPM_CARD,
    RPM_KERNEL,
    RPM_NAME,
    cpio,
    cpio_entry,
    header,
    pacman,
    pacman_files,
    rpm,
    rpm_files,
    tags_of,
)
from tests.unit.ship_packages import KERNEL, RELEASE, card, write


def test_an_rpm_package_has_the_digests_of_its_files(tmp_path: Path) -> None:
    links = {"lib/modules/build": "/usr/src/kernels"}
    content = read_package(write(tmp_path, rpm(rpm_files(), links)))
    assert (content.kind, content.name, content.version, content.architecture) == ("rpm", RPM_NAME, "6.1.0-1", "x86_64")
    assert content.files["lib/modules/a.ko"] == hashlib.sha256(b"module").hexdigest()
    assert content.files["lib/modules/build"] == "link /usr/src/kernels"
    assert content.kernels == {RPM_KERNEL: KERNEL}
    assert content.cards == {CARD_FILE: RPM_CARD}


def test_a_package_for_pacman_has_the_digests_of_its_files(tmp_path: Path) -> None:
    content = read_package(write(tmp_path, pacman(pacman_files(), INFO, ("usr/lib/modules/build", "/usr/src"))))
    assert (content.kind, content.name, content.version) == ("pacman", PACMAN_NAME, "6.1.0-1")
    assert content.files["usr/lib/modules/a.ko"] == hashlib.sha256(b"module").hexdigest()
    assert content.files["usr/lib/modules/build"] == "link /usr/src"
    assert content.kernels == {PACMAN_KERNEL: KERNEL}


@pytest.mark.parametrize("package", [rpm(rpm_files()), pacman(pacman_files())], ids=["rpm", "pacman"])
def test_a_card_is_read_off_the_kernel_in_its_package(tmp_path: Path, package: bytes) -> None:
    found = find_card(str(write(tmp_path, package)), None)
    assert found.card.release == RELEASE
    assert "SHA-256 and release agree" in found.subject


@pytest.mark.parametrize(
    ("package", "why"),
    [
        (rpm(rpm_files(KERNEL + b"x")), "SHA-256"),
        (pacman(pacman_files(KERNEL + b"x")), "SHA-256"),
        (rpm(rpm_files(written=card().written())), "names the package"),
        (rpm(rpm_files(), changes={1002: (6, "2")}), "names the version 6.1.0-1"),
        (pacman(pacman_files(), INFO.replace("6.1.0-1", "6.1.0-2")), "names the version 6.1.0-1"),
    ],
)
def test_a_card_of_another_kernel_is_refused(tmp_path: Path, package: bytes, why: str) -> None:
    with pytest.raises(CardOfAnother, match=why):
        find_card(str(write(tmp_path, package)), None)


def test_a_card_is_found_from_the_kernel_beside_its_modules(tmp_path: Path) -> None:
    (tmp_path / CARD_FILE).parent.mkdir(parents=True)
    (tmp_path / CARD_FILE).write_bytes(RPM_CARD)
    for place in (RPM_KERNEL, PACMAN_KERNEL):
        (tmp_path / place).parent.mkdir(parents=True)
        (tmp_path / place).write_bytes(KERNEL)
        assert find_card(str(tmp_path / place), None).card.package == RPM_NAME


SOUND = rpm(rpm_files())
EVIL = {**rpm_files(), "lib/modules/a.ko": b"evil"}


@pytest.mark.parametrize(
    ("package", "why"),
    [
        (SOUND[:96], "header"),
        (SOUND[:200], "header|cut short"),
        (SOUND[:-200], "cut short|damaged|end"),
        (rpm(rpm_files(), archive=cpio(EVIL)), "its header and its archive differ in 'lib/modules/a.ko'"),
        (rpm(rpm_files(), archive=cpio({**rpm_files(), "etc/more": b""})), "differ in 'etc/more'"),
        (rpm({**rpm_files(), "etc/more": b""}, archive=cpio(rpm_files())), "differ in 'etc/more'"),
        (rpm({**rpm_files(), "../../etc/passwd": b""}), "with the name"),
        (rpm({**rpm_files(), "a\x1b[2Jb": b""}), "with the name"),
        (rpm(rpm_files(), archive=cpio_entry("./a", b"", links=2)), "hard link"),
        (rpm(rpm_files(), archive=cpio_entry("./a", b"content", DIRECTORY)), "directory in it has content"),
        (rpm(rpm_files(), archive=cpio_entry("./a", b"", name_size=1 << 31)), "more than 65,536 bytes"),
        (rpm(rpm_files(), archive=cpio_entry("./a", b"x" * 70_000, LINK)), "more than 65,536 bytes"),
        (rpm(rpm_files(), archive=cpio_entry("./a", b"x").replace(b"070701", b"070702")), "damaged"),
        (rpm(rpm_files(), archive=cpio_entry("./a", b"x").replace(b"00000001", b"-0000001", 1)), "damaged"),
        (rpm(rpm_files(), archive=cpio(rpm_files())[:-124]), "cut short"),
        (rpm(rpm_files(), changes={1125: (6, "zstd")}), "packed in another way"),
        (rpm(rpm_files(), changes={1124: (6, "drpm")}), "packed in another way"),
        (rpm(rpm_files(), changes={1000: (6, "a\x1b[2J")}), "names no name"),
        (rpm(rpm_files(), changes={1000: (4, [5])}), "names no name"),
        (rpm(rpm_files(), changes={1117: (8, ["vmlinuz"])}), "differ in length"),
        (rpm(rpm_files(), changes={1116: (4, [0, 1, 99])}), "names of files"),
        (rpm(rpm_files(), changes={5011: (4, [1])}), "not SHA-256"),
        (rpm(rpm_files(), changes={1030: (7, ["x"])}), "unexpected type"),
        (rpm(rpm_files(), pack=lambda _: b"no xz"), "cut short"),
        (SOUND[:96] + header({1000: (6, "x")})[:-3] + b"yyy", "header|cut short"),
        (pacman([("../../etc/passwd", b"")]), "with the name"),
        (pacman(pacman_files(), "pkgname = x\n"), r"no \.PKGINFO"),
        (pacman([*pacman_files(), (".PKGINFO", INFO.encode())]), "odd"),
        (pacman([*pacman_files(), (PACMAN_KERNEL, b"two")]), "twice"),
        (pacman([(PACMAN_KERNEL, KERNEL)]), "0 cards and 1 kernels"),
        (pacman([*pacman_files(), ("boot/vmlinuz-second", KERNEL)]), "1 cards and 2 kernels"),
        (pacman([(CARD_FILE, b"x")], INFO, (PACMAN_KERNEL, "/etc/shadow")), "1 cards and 0 kernels"),
        (b"\x28\xb5\x2f\xfd", "packed by zstd"),
    ],
)
def test_a_bad_package_is_one_message(tmp_path: Path, package: bytes, why: str) -> None:
    with pytest.raises(PackageUnreadable, match=why) as refused:
        find_card(str(write(tmp_path, package)), None)
    assert str(refused.value).isprintable()


def test_a_file_that_the_header_owns_without_having_it_is_not_expected(tmp_path: Path) -> None:
    ghost = {"boot/initrd": b""}
    flags = {1037: (4, [*(0 for _ in rpm_files()), read_rpm.GHOST])}
    package = rpm({**rpm_files(), **ghost}, archive=cpio(rpm_files()), changes=flags)
    assert set(read_package(write(tmp_path, package)).files) == set(rpm_files())


def test_a_header_that_is_larger_than_a_kernels_is_refused(tmp_path: Path) -> None:
    size = (read_rpm.MOST_HEADER + 1).to_bytes(4, "big")
    start = SOUND[:96] + b"\x8e\xad\xe8\x01\0\0\0\0\0\0\0\1"
    with pytest.raises(PackageUnreadable, match="16,000,001 bytes"):
        read_package(write(tmp_path, start + size))


def test_names_that_unfold_do_not_exhaust_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    count = 30_000
    directory = f"/{'d' * 60_000}/"
    tags = {
        **tags_of({}),
        1030: (3, [FILE] * count),
        1035: (8, [""] * count),
        1036: (8, [""] * count),
        1037: (4, [0] * count),
        1116: (4, [0] * count),
        1117: (8, [str(number) for number in range(count)]),
        1118: (8, [directory]),
    }
    package = write(tmp_path, rpm({}, changes=tags))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    monkeypatch.setattr(read_rpm, "MOST_NAMES", 10_000_000)
    with pytest.raises(PackageUnreadable, match="characters"):
        read_package(package)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_many_long_names_in_an_archive_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_content, "MOST_NAMES", 1_000)
    with pytest.raises(PackageUnreadable, match="more than 1,000 characters"):
        read_package(write(tmp_path, pacman([(f"{number}{'n' * 90}", b"") for number in range(20)])))
