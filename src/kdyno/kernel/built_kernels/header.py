"""The head of a bzImage: Documentation/arch/x86/boot.rst of the kernel. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from kdyno.base import regex
from kdyno.base.errors import UserError
from kdyno.base.text import clean_line

MAGIC, MAGIC_AT = b"HdrS", 0x202
OLDEST = 0x020C
"""Version of the boot protocol (2.12, Linux 3.8) that records whether a kernel is one of 64 bits."""
HEAD = 0x260
"""Bytes that are read; the header ends before."""
IS_64 = 1
"""XLF_KERNEL_64 of xloadflags."""
MOST_BANNER = 512
MOST_KERNEL = 100_000_000
"""Bytes of a bzImage."""
RELEASE = regex.compile_pattern(r"^[0-9]+\.[0-9]+[A-Za-z0-9._+~-]{0,100}$")
OTHERS = {
    b"\x7fELF": "it is an ELF file, as vmlinux is: the one to boot is bzImage, or /boot/vmlinuz-RELEASE",
    b"\x1f\x8b": "it is a file packed by gzip, as kernels of other architectures are",
    b"!<arch>\n": "it is a Debian package: give debian:PACKAGE",
}
"""First bytes of files that are taken for kernels."""
ARM_AT, ARM = 0x38, (b"ARM\x64", b"RSC\x05")
"""Documentation/arch/arm64/booting.rst and Documentation/arch/riscv/boot-image-header.rst."""


class NotABootableKernel(UserError):
    message = "{path} is not a kernel that boots here: {why}"
    hint = "name the bzImage of an x86-64 kernel: /boot/vmlinuz-RELEASE, arch/x86/boot/bzImage, or debian:PACKAGE"


@dataclass(frozen=True)
class Header:
    """The facts in a bzImage's header."""

    banner: str
    """`6.1.0-56-amd64 (debian-kernel@lists.debian.org) #1 SMP ...`."""
    payload: range
    """The place of the packed vmlinux in the file."""

    @property
    def release(self) -> str:
        """Return the release that `uname -r` prints."""
        return self.banner.partition(" ")[0]

    @property
    def version(self) -> str:
        """Return the part of the release that Linux gives: `6.1.0`."""
        return self.release.partition("-")[0].partition("+")[0]


def read_header(kernel: bytes, path: Path) -> Header:
    """Return the header. Raise NotABootableKernel, which names what the file seems to be."""
    if kernel[MAGIC_AT : MAGIC_AT + len(MAGIC)] != MAGIC:
        raise NotABootableKernel(path=path, why=_what_else(kernel))
    if len(kernel) < HEAD or _number(kernel, 0x206, 2) < OLDEST:
        raise NotABootableKernel(path=path, why="its boot protocol is older than 2.12, that of Linux 3.8")
    if not _number(kernel, 0x236, 2) & IS_64:
        raise NotABootableKernel(path=path, why="it is a kernel for 32-bit x86")
    real_mode = 512 * (1 + (_number(kernel, 0x1F1, 1) or 4))
    start = real_mode + _number(kernel, 0x248, 4)
    payload = range(start, start + _number(kernel, 0x24C, 4))
    if not payload or payload.stop > len(kernel):
        raise NotABootableKernel(path=path, why="it is cut short: its head says that it is longer")
    return Header(_banner(kernel, _number(kernel, 0x20E, 2), path), payload)


def _number(kernel: bytes, at: int, size: int) -> int:
    return int.from_bytes(kernel[at : at + size], "little")


def _banner(kernel: bytes, at: int, path: Path) -> str:
    """Return the text that `file` prints, too: release, builder, number and date."""
    text = kernel[at + 0x200 : at + 0x200 + MOST_BANNER].partition(b"\0")[0] if at else b""
    banner = clean_line(text.decode(errors="replace")).strip()
    if not RELEASE.search(banner.partition(" ")[0]):
        raise NotABootableKernel(path=path, why="its header names no release of Linux")
    return banner


def _what_else(kernel: bytes) -> str:
    for magic, why in OTHERS.items():
        if kernel.startswith(magic):
            return why
    if kernel[ARM_AT : ARM_AT + 4] in ARM:
        return "it is a kernel for another architecture"
    return "it has no head of a bzImage (`HdrS`)" if kernel else "it is empty"
