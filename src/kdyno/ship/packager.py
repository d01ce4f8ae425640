"""What the kinds of packages have in common: what they are told of a kernel, the trees that become packages, and the
checks of a machine before an installation.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kdyno.base.files import read_whole
from kdyno.kernel.built_kernels.header import MOST_KERNEL
from kdyno.kernel.make import BuildWork
from kdyno.kernel.toolchain import ToolchainIdentity
from kdyno.ship.package_content import PackageKind
from kdyno.ship.secure_boot import is_signed

BUILDER, ADDRESS = "kdyno", "kdyno@localhost"
INITRD_MB = 64
"""Megabytes that an initrd is expected to need in /boot, if none is there to compare with."""
CHECKS = """\
# Before anything is unpacked: kdyno's checks of this machine.
if {is_first} && [ "$(uname -r)" = "{release}" ]; then
    echo "{package}: this machine runs a kernel {release} that is not from this package; boot another one first" >&2
    exit 1
fi
secure=/sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c
if [ {signed} = no ] && [ "$(cat "$secure" 2>/dev/null | tail -c 1 | od -An -tu1 | tr -d ' ')" = 1 ]; then
    echo "{package}: Secure Boot is on, and this kernel isn't signed: the firmware would not start it" >&2
    echo "{package}: write the package by kdyno ship --sign-kernel KEY CERT, or switch Secure Boot off" >&2
    exit 1
fi
for flag in {flags}; do
    if [ -n "$flag" ] && [ -r /proc/cpuinfo ] && ! grep -qw -- "$flag" /proc/cpuinfo; then
        echo "{package}: this processor lacks $flag, and the kernel would meet an illegal instruction" >&2
        exit 1
    fi
done
initrd=$(du -k /boot/initrd.img-* /boot/initramfs-*.img 2>/dev/null | sort -n | awk 'END {{ print $1 }}')
for place in /boot /efi /boot/efi; do
    # systemd-boot has copies of kernel and initrd beside its entries
    [ "$place" = /boot ] || [ -d "$place/loader/entries" ] || continue
    room=$(df -Pk "$place" 2>/dev/null | awk 'NR == 2 {{ print $4 }}')
    needed=$(({kilobytes} + ${{initrd:-{initrd}}}))
    if [ -n "$room" ] && [ "$room" -lt "$needed" ]; then
        echo "{package}: $place has $room KiB free, and about $needed are needed: remove an old kernel" >&2
        exit 1
    fi
done
"""
"""The checks of a machine, for the script that a package has for that."""
FORGET_TRY = """\
# What kdyno-try changed of the boot loader for this kernel ends with it.
if grep -qx 'release={release}' /etc/kdyno-try/state 2>/dev/null; then
    /{program} --forget || true
fi
"""
TRY = Path(__file__).parent.parent / "data" / "try" / "kdyno-try"
"""The program that tries the kernel once."""


@dataclass(frozen=True)
class PackagedKernel:
    """What a package is told of its kernel."""

    release: str
    suffix: str
    """The end of the release, which no other kernel has."""
    source_version: str
    epoch: int
    """The time of all files, in seconds since 1970."""
    cpu_flags: Sequence[str]
    """Flags of /proc/cpuinfo that the kernel needs."""
    compiler: ToolchainIdentity
    has_modules: bool
    has_initrd: bool


@dataclass(frozen=True)
class KernelTrees:
    """The files of the packages, below the root of the machine that they are for."""

    image: Path
    headers: Path | None
    """None for a kernel without modules, which has no use for headers, and for a source that can't install them."""


class Packager(Protocol):
    """Makes the packages of one kind."""

    @property
    def kind(self) -> PackageKind: ...

    @property
    def programs(self) -> Mapping[str, str]:
        """Return the programs that are called, with their Debian packages."""
        ...

    def names(self, kernel: PackagedKernel) -> tuple[str, str]:
        """Return the names of the packages of the image and of the headers."""
        ...

    def version(self, source_version: str) -> str:
        """Return the version of the packages: the source's, and a revision that is always the first."""
        ...

    def file_name(self, name: str, version: str) -> str: ...

    def kernel_path(self, release: str) -> str:
        """Return where the package has the kernel, below the root."""
        ...

    def config_path(self, release: str) -> str: ...

    def lay_out(self, work: BuildWork, kernel: PackagedKernel, scratch: Path, jobs: int) -> KernelTrees:
        """Make the trees of the packages from the objects of a build, in an empty directory. The headers have the
        configuration.
        """
        ...

    def pack_image(self, tree: Path, card: bytes, card_path: str, kernel: PackagedKernel, scratch: Path) -> Path:
        """Put the card, the checks and kdyno-try into the tree of the image, and return its package."""
        ...

    def pack_headers(self, tree: Path, kernel: PackagedKernel, scratch: Path) -> Path: ...


def machine_checks(package: str, kernel: PackagedKernel, kernel_files: Sequence[Path], is_first: str) -> str:
    """Return the checks of a machine. `is_first` is the shell's condition that no package of this name is there; the
    kernel is one of the files.
    """
    kernels = [path for path in kernel_files if path.name.startswith("vmlinuz")]
    return CHECKS.format(
        signed="yes" if any(is_signed(read_whole(path, MOST_KERNEL)) for path in kernels) else "no",
        is_first=is_first,
        release=kernel.release,
        package=package,
        flags=" ".join(kernel.cpu_flags) or '""',
        kilobytes=sum(path.stat().st_size for path in kernel_files) // 1024 + 1,
        initrd=INITRD_MB * 1024,
    )


def add_try(tree: Path, release: str) -> None:
    """Put kdyno-try into a tree."""
    add_file(tree / try_path(release), TRY.read_bytes(), mode=0o755)


def forget_try(release: str) -> str:
    """Return lines of the shell that end a trial of the kernel before its removal."""
    return FORGET_TRY.format(program=try_path(release), release=release)


def try_path(release: str) -> str:
    """Return where the package of a kernel has kdyno-try, below the root."""
    return f"usr/lib/kdyno/{release}/{TRY.name}"


def indented(lines: str, by: str = "    ") -> str:
    return "".join(f"{by}{line}" if line.strip() else line for line in lines.splitlines(keepends=True))


def add_file(path: Path, content: bytes, mode: int = 0o644) -> None:
    """Write a file, and the directories above it, with modes that don't depend on the umask."""
    for directory in reversed([one for one in path.parents if not one.exists()]):
        directory.mkdir()
        directory.chmod(0o755)
    path.write_bytes(content)
    path.chmod(mode)


def settle_modes(tree: Path) -> None:
    """Give all files of a tree modes that don't depend on the umask, and contents of their own: no hard links."""
    for path in (tree, *tree.rglob("*")):
        if path.is_symlink():
            continue
        if path.is_dir():
            path.chmod(0o755)
            continue
        if path.stat().st_nlink > 1:
            copy = path.with_name(f"{path.name}.kdyno-copy")
            shutil.copy2(path, copy)
            copy.replace(path)
        path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
