"""Kernels that are signed for Secure Boot with the user's key, and what an unsigned one does on such a machine."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from kdyno.runs.session import Session
from kdyno.ship.find_card import find_card
from kdyno.ship.packager import PackagedKernel, machine_checks
from kdyno.ship.read_package import read_package
from kdyno.ship.secure_boot import CantSign, SecureBootKey, is_signed, split_signature, take_signature
from kdyno.ship.ship import Shipped, ship
from kdyno.ship.terminal import card_lines
from kdyno.ship.verify import verify
from kdyno.store.records import RunRecord
from tests.unit.ship.test_other_kinds import needs
from tests.unit.ship_packages import KERNEL, RELEASE, card
from tests.unit.ship_specimen import experiment_of, judged_run, order_of

signer = needs("sbsign", "sbverify", "openssl", "bsdtar", "xz")


def efi_program(content: bytes = b"code" * 100, signature: bytes = b"") -> bytes:
    """The head of an EFI program with a content and a signature."""
    head = bytearray(0x200)
    head[:2] = b"MZ"
    struct.pack_into("<I", head, 0x3C, 0x40)
    head[0x40:0x44] = b"PE\0\0"
    struct.pack_into("<H", head, 0x58, 0x20B)
    struct.pack_into("<I", head, 0x98, 12345 if signature else 0)
    if signature:
        struct.pack_into("<II", head, 0xE8, len(head) + len(content), len(signature))
    return bytes(head) + content + signature


def test_a_signed_kernel_is_equal_to_the_unsigned_one_but_for_signature_and_checksum() -> None:
    plain, signed = efi_program(), efi_program(signature=b"signature")
    assert not is_signed(plain)
    assert is_signed(signed)
    assert split_signature(plain) == (plain, b"")
    assert split_signature(signed) == (plain, b"signature")


@pytest.mark.parametrize(
    "kernel", [b"", KERNEL, efi_program()[:0x60], b"MZ" + b"\xff" * 0x400, efi_program().replace(b"PE", b"NE")]
)
def test_what_is_not_an_efi_program_has_no_signature(kernel: bytes) -> None:
    assert split_signature(kernel) is None
    assert not is_signed(kernel)


@pytest.mark.parametrize("place", [0, 0x50, 0xFFFFFFFF])
def test_a_signature_in_an_impossible_place_is_harmless(place: int) -> None:
    hostile = bytearray(efi_program(signature=b"signature"))
    struct.pack_into("<II", hostile, 0xE8, place, 8)
    parts = split_signature(bytes(hostile))
    assert parts is None or len(parts[0]) <= len(hostile) + 8


def test_a_signature_is_taken_over_by_an_equal_kernel_only(tmp_path: Path) -> None:
    signed = efi_program(signature=b"signature")
    for content, expected in ((b"code" * 100, signed), (b"evil" * 100, efi_program(b"evil" * 100))):
        kernel = tmp_path / "vmlinuz"
        kernel.write_bytes(efi_program(content))
        take_signature(kernel, signed)
        assert kernel.read_bytes() == expected


def test_a_key_that_is_not_there_is_refused_before_a_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda name: f"/usr/bin/{name}")
    with pytest.raises(CantSign, match="key is not a file"):
        SecureBootKey(tmp_path / "key", tmp_path / "cert").require_usable()
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(CantSign, match="sbsign is not installed") as refused:
        SecureBootKey(tmp_path / "key", tmp_path / "cert").require_usable()
    assert "sbsigntool" in refused.value.advice


@pytest.mark.parametrize(
    ("state", "kernel", "is_refused"),
    [
        (1, efi_program(), True),
        (0, efi_program(), False),
        (None, efi_program(), False),
        (1, efi_program(signature=b"signature"), False),
    ],
)
def test_an_unsigned_kernel_is_refused_where_secure_boot_is_on(
    tmp_path: Path, state: int | None, kernel: bytes, is_refused: bool
) -> None:
    file = tmp_path / f"vmlinuz-{RELEASE}"
    file.write_bytes(kernel)
    facts = PackagedKernel(
        release=RELEASE,
        suffix="-kdyno-0123456789ab",
        source_version="6.1.0",
        epoch=0,
        cpu_flags=(),
        compiler=card().compiler,
        has_modules=False,
        has_initrd=False,
    )
    variable = tmp_path / "SecureBoot"
    if state is not None:
        variable.write_bytes(bytes([6, 0, 0, 0, state]))
    script = machine_checks("a-package", facts, [file], "false")
    script = script.replace("/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", str(variable))
    assert str(variable) in script
    df = tmp_path / "df"
    df.write_text("#!/bin/sh\nexit 1\n")
    df.chmod(0o755)
    path = f"{tmp_path}:{os.environ['PATH']}"
    done = subprocess.run(["sh", "-e", "-c", script], env={"PATH": path}, capture_output=True, text=True, check=False)
    assert (done.returncode != 0) == is_refused
    assert ("kdyno ship --sign-kernel KEY CERT" in done.stderr) == is_refused


@pytest.fixture(scope="module")
def key(place: Path) -> SecureBootKey:
    made = SecureBootKey(place / "key.pem", place / "cert.pem")
    words = ["openssl", "req", "-new", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=test"]
    subprocess.run([*words, "-keyout", made.key, "-out", made.certificate], check=True, capture_output=True)
    return made


def signed_shipment(run: RunRecord, session: Session, output: Path, key: SecureBootKey) -> Shipped:
    return ship(order_of(run, output, kind="pacman", secure_boot=key), session)


@signer
def test_a_kernel_is_signed_with_the_users_key_and_verified_without_it(
    place: Path, session: Session, key: SecureBootKey, tmp_path: Path
) -> None:
    run = judged_run(experiment_of(place, {"EFI_STUB": True}), session)
    shipped = signed_shipment(run, session, tmp_path, key)
    [package] = shipped.packages
    [kernel] = read_package(package.path).kernels.values()
    (tmp_path / "kernel").write_bytes(kernel)
    subprocess.run(["sbverify", "--cert", key.certificate, tmp_path / "kernel"], check=True, capture_output=True)
    found = find_card(str(package.path), None)
    assert found.card.image.is_signed
    assert any("signed for Secure Boot" in line for line in card_lines(found))
    done = verify([package.path], None, None, session, uses_ccache=False)
    assert done.is_same
    assert b"PRIVATE KEY" not in package.path.read_bytes()
    other = tmp_path / "unsigned"
    other.mkdir()
    unsigned = ship(order_of(run, other, kind="pacman"), session)
    assert not unsigned.card.image.is_signed


@signer
def test_a_kernel_that_is_not_an_efi_program_is_not_signed(
    session: Session, key: SecureBootKey, tmp_path: Path
) -> None:
    run = judged_run(experiment_of(tmp_path, {}), session, run_id="1" * 64)
    output = tmp_path / "packages"
    output.mkdir()
    with pytest.raises(CantSign, match="not an EFI program"):
        signed_shipment(run, session, output, key)
    assert list(output.iterdir()) == []


@signer
def test_a_file_that_is_not_a_certificate_is_one_message(key: SecureBootKey, tmp_path: Path) -> None:
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(efi_program())
    other = tmp_path / "other"
    other.write_text("no certificate")
    with pytest.raises(CantSign, match="sbsign: "):
        SecureBootKey(key.key, other).sign(kernel)
    assert kernel.read_bytes() == efi_program()
