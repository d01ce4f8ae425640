"""Signs a kernel for Secure Boot with the user's own key, and compares a signed kernel with an unsigned one.

A signature has the hour in it, so no two are equal; the rest of the file must be. The format: "PE Format" of Microsoft,
and the specification of Authenticode.
"""

from __future__ import annotations

import os
import shutil
import struct
from dataclasses import dataclass
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.packages import way_to_install
from kdyno.kernel.built_kernels.header import MOST_KERNEL

PLACE_OF_HEADER, PE = 0x3C, b"PE\0\0"
OPTIONAL, PE32_PLUS = 24, b"\x0b\x02"
CHECKSUM, SIGNATURE = OPTIONAL + 64, OPTIONAL + 112 + 4 * 8
"""Where a PE header has the checksum of the file, and the place and size of its signature."""
ALIGNMENT = 8
"""A signature begins at a multiple of so many bytes."""


class CantSign(UserError):
    message = "the kernel can't be signed for Secure Boot: {why}"
    hint = "{way}"


@dataclass(frozen=True)
class SecureBootKey:
    """The user's key and certificate, in the form PEM."""

    key: Path
    certificate: Path

    def require_usable(self) -> None:
        """Raise CantSign if the files can't be read, or sbsign is missing."""
        if shutil.which("sbsign") is None:
            raise CantSign(why="sbsign is not installed", way=way_to_install("sbsigntool"))
        for path in (self.key, self.certificate):
            if not path.is_file() or not os.access(path, os.R_OK):
                raise CantSign(
                    why=f"{path} is not a file that can be read", way="name KEY and CERTIFICATE, both in PEM"
                )

    def sign(self, kernel: Path) -> None:
        """Sign a kernel in its place. Raise CantSign."""
        if split_signature(read_whole(kernel, MOST_KERNEL)) is None:
            raise CantSign(
                why="it is not an EFI program", way="set kconfig = { EFI_STUB = true } in the recipe, and run it"
            )
        signed = kernel.with_name(f"{kernel.name}.signed")
        words: list[str | Path] = ["sbsign", "--key", self.key, "--cert", self.certificate, "--output", signed, kernel]
        done = process.attempt(words)
        if done.returncode != 0 or not signed.exists():
            lines = (done.stderr or done.stdout).strip().splitlines() or [f"exit status {done.returncode}"]
            raise CantSign(
                why=f"sbsign: {lines[-1]}", way="name KEY and CERTIFICATE, both in PEM; the key has no password"
            )
        signed.chmod(kernel.stat().st_mode & 0o777)
        signed.replace(kernel)


def split_signature(kernel: bytes) -> tuple[bytes, bytes] | None:
    """Return a kernel without its signature and checksum, and the signature; None if it isn't an EFI program. Pure."""
    try:
        (header,) = struct.unpack_from("<I", kernel, PLACE_OF_HEADER)
        place, size = struct.unpack_from("<II", kernel, header + SIGNATURE)
    except struct.error:
        return None
    if kernel[header : header + 4] != PE or kernel[header + OPTIONAL : header + OPTIONAL + 2] != PE32_PLUS:
        return None
    end = place if size else len(kernel)
    plain = bytearray(kernel[:end])
    if len(plain) < header + SIGNATURE + 8:
        return None
    plain[header + CHECKSUM : header + CHECKSUM + 4] = bytes(4)
    plain[header + SIGNATURE : header + SIGNATURE + 8] = bytes(8)
    plain += bytes(-len(plain) % ALIGNMENT)
    return bytes(plain), kernel[end:]


def is_signed(kernel: bytes) -> bool:
    """Return whether a kernel has a signature, by whomever. Pure."""
    parts = split_signature(kernel)
    return parts is not None and parts[1] != b""


def take_signature(kernel: Path, signed: bytes) -> None:
    """Put a signed kernel in the place of one that is equal but for the signature; leave another one alone."""
    ours, theirs = split_signature(read_whole(kernel, MOST_KERNEL)), split_signature(signed)
    if ours and theirs and theirs[1] and ours[0] == theirs[0]:
        kernel.write_bytes(signed)
