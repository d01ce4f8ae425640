"""Packages of unknown origin: sound ones, and those that were made to mislead or to exhaust memory."""

from __future__ import annotations

import hashlib
import io
import lzma
import os
import resource
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest

from kdyno.ship import package_content, read_deb
from kdyno.ship.card import CardUnreadable
from kdyno.ship.find_card import CardOfAnother, NoKernelThere, find_card
from kdyno.ship.read_package import PackageUnreadable, read_package
from tests.unit.built_kernel import bz_image
from tests.unit.ship_packages import CARD_PATH, CONTROL, KERNEL, KERNEL_PATH, ar, card, deb, files_of, tar, write

WRITTEN = card().written()


def sparse() -> bytes:
    """An archive with a header of the kind that dpkg doesn't read: its map of a sparse file could be endless."""
    made = io.BytesIO()
    entry = tarfile.TarInfo("boot/sparse")
    entry.pax_headers = {"GNU.sparse.major": "1", "GNU.sparse.minor": "0"}
    with tarfile.open(fileobj=made, mode="w:", format=tarfile.PAX_FORMAT) as archive:
        archive.addfile(entry)
    return made.getvalue()


def test_a_package_has_the_digests_of_its_files(tmp_path: Path) -> None:
    content = read_package(write(tmp_path, deb(tar(files_of(WRITTEN), ("./lib/modules/build", "/usr/src/linux")))))
    assert content.version == "6.1.0-1"
    assert content.files["lib/modules/a.ko"] == hashlib.sha256(b"module").hexdigest()
    assert content.files["lib/modules/build"] == "link /usr/src/linux"
    assert content.kernels == {KERNEL_PATH: KERNEL}


def test_a_card_is_read_off_the_kernel_in_its_package(tmp_path: Path) -> None:
    found = find_card(str(write(tmp_path, deb(tar(files_of(WRITTEN))))), None)
    assert found.card == card()
    assert "SHA-256 and release agree" in found.subject


@pytest.mark.parametrize(
    ("files", "why"),
    [
        ([(KERNEL_PATH, KERNEL + b"x"), (CARD_PATH, WRITTEN)], "SHA-256"),
        (
            [
                (KERNEL_PATH, other := bz_image(b"\x1f\x8bpayload", banner="6.1.0-other (x@y) #1")),
                (CARD_PATH, card(other).written()),
            ],
            "is the kernel 6.1.0-other",
        ),
        ([(KERNEL_PATH, KERNEL), (CARD_PATH, card(version="6.1.0-2").written())], "names the version 6.1.0-2"),
        ([(KERNEL_PATH, KERNEL), (CARD_PATH, card(package="linux-image-other").written())], "names the package"),
    ],
)
def test_a_card_of_another_kernel_is_refused(tmp_path: Path, files: list[tuple[str, bytes]], why: str) -> None:
    with pytest.raises(CardOfAnother, match=why):
        find_card(str(write(tmp_path, deb(tar(files)))), None)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"!<arch>\n", "its parts are not"),
        (deb(tar(files_of(WRITTEN)))[:300], "damaged|cut short"),
        (ar({"debian-binary": b"2.0\n", "control.tar.zst": b"", "data.tar.zst": b""}), "packed in another way"),
        (ar({"debian-binary": b"2.0\n", "data.tar.xz": b"", "control.tar.xz": b""}), "cut short"),
        (deb(tar([*files_of(WRITTEN), (KERNEL_PATH, b"two")])), "twice"),
        (deb(tar([("../../etc/passwd", b"")])), "with the name"),
        (deb(tar([("a\x1b[2Jb", b"")])), "with the name"),
        (deb(tar(files_of(WRITTEN)), control="Package: x\n"), "names no package"),
        (deb(tar([(KERNEL_PATH, KERNEL)])), "0 cards and 1 kernels"),
        (deb(tar([*files_of(WRITTEN), ("boot/vmlinuz-second", KERNEL)])), "1 cards and 2 kernels"),
        (deb(tar([(CARD_PATH, WRITTEN)], (KERNEL_PATH, "/etc/shadow"))), "1 cards and 0 kernels"),
        (deb(tar([(KERNEL_PATH, KERNEL), (CARD_PATH, b"x" * 2_000_001)])), "has 2,000,001 bytes"),
        (deb(sparse()), "kind"),
        (deb(b"no tar archive" * 100), "truncated|invalid|damaged|cut short|bad"),
        (deb(tar([]), pack=lambda _: b"no xz"), "cut short"),
    ],
)
def test_a_bad_package_is_one_message(tmp_path: Path, content: bytes, why: str) -> None:
    with pytest.raises(PackageUnreadable, match=why) as refused:
        find_card(str(write(tmp_path, content)), None)
    assert str(refused.value).isprintable()


def test_a_device_or_a_pipe_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (Path("/dev/zero"), tmp_path, tmp_path / "pipe"):
        with pytest.raises(PackageUnreadable):
            read_package(path)
        with pytest.raises(NoKernelThere):
            find_card(str(path), None)


def long_name(size: int) -> bytes:
    entry = tarfile.TarInfo("././@LongLink")
    entry.type, entry.size = tarfile.GNUTYPE_LONGNAME, size
    return entry.tobuf(tarfile.GNU_FORMAT) + b"a" * min(size, 1 << 22)


@pytest.mark.parametrize(
    "data",
    [lambda: long_name(1 << 33), lambda: tar([("./zeros", bytes(1 << 25))])],
    ids=["a name of 8 GB", "more bytes than a kernel has"],
)
def test_a_package_that_unfolds_does_not_exhaust_memory(
    tmp_path: Path, data: Callable[[], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(read_deb, "MOST_DATA", 1 << 24)
    path = write(tmp_path, deb(data()))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(PackageUnreadable, match="bytes"):
        read_package(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 100_000


def test_too_many_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_content, "MOST_FILES", 2)
    with pytest.raises(PackageUnreadable, match="more than 2 files"):
        read_package(write(tmp_path, deb(tar(files_of(WRITTEN)))))


def test_a_package_may_be_packed_by_gzip(tmp_path: Path) -> None:
    import gzip

    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": gzip.compress(tar([("./control", CONTROL.encode())])),
        "data.tar.gz": gzip.compress(tar(files_of(WRITTEN))),
    }
    assert find_card(str(write(tmp_path, ar(members))), None).card == card()


@pytest.mark.parametrize(
    ("written", "why"),
    [
        (b"{", "JSON|json|EOF"),
        (b"[" * 100_000, "JSON|json|recursion|EOF"),
        (WRITTEN.replace(b'"v": 1', b'"v": 2'), "v"),
        (WRITTEN.replace(b'"margin": 0.01', b'"margin": NaN'), "margin|JSON|json"),
        (WRITTEN.replace(b'"kdyno": "0.1.0"', b'"kdyno": "0.1.0", "more": 1'), "more"),
        (card().written().replace(b'"release": "6', b'"release": "../6'), "release"),
    ],
)
def test_a_bad_card_is_one_message(tmp_path: Path, written: bytes, why: str) -> None:
    with pytest.raises(CardUnreadable, match=why) as refused:
        find_card(str(write(tmp_path, deb(tar(files_of(written))))), None)
    assert str(refused.value).isprintable()


def test_xz_with_a_huge_dictionary_is_refused(tmp_path: Path) -> None:
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 0, "dict_size": 1 << 30}]
    packed = io.BytesIO()
    with lzma.open(packed, "w", format=lzma.FORMAT_XZ, filters=filters) as file:
        file.write(tar(files_of(WRITTEN)))
    with pytest.raises(PackageUnreadable, match="emory"):
        read_package(write(tmp_path, deb(b"", pack=lambda _: packed.getvalue())))
