"""A kernel from a Debian package: downloaded by apt, which checks it, and unpacked without being installed.

Only the parts that a boot may need are kept: the kernel, its configuration, and a few modules with their dependences.
"""

from __future__ import annotations

import os
import pwd
import subprocess
import tarfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import IO

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.files import write_whole
from kdyno.base.frozen import digest
from kdyno.base.ownership import is_root
from kdyno.base.state import State, require_space, translate_disk_full
from kdyno.base.text import clean, format_list
from kdyno.kernel.built_kernels.header import MOST_KERNEL
from kdyno.kernel.built_kernels.modules import MOST_MODULES, MOST_PACKED, WANTED, name_of, needs, read_module
from kdyno.kernel.source import PACKAGE
from kdyno.kernel.source_trees import Say, remove_tree

FORMAT = 1
"""Raised when the same packages give other files."""
MOST_STEPS = 4
"""The number of steps from linux-image-amd64 to the package that has the kernel."""
IMAGE = "linux-image-"
PARTS = ("linux-binary-", "linux-base-", "linux-modules-")
"""Prefixes of packages that have the kernel, its configuration and its modules, if they are separate: in Debian since
Linux 6.19, and modules on Ubuntu.
"""
IN_BOOT = ("vmlinuz-", "config-", "System.map-")
BESIDE_MODULES = ("vmlinuz", "config", "System.map")
"""Files of a kernel in /usr/lib/modules/RELEASE (Debian since Linux 7.2)."""
ORIGIN = "origin.txt"
ENVIRONMENT = {"LC_ALL": "C"}
DOWNLOAD_SECONDS = 1800.0
APT_USER, OPEN_TO_APT = "_apt", "/var/tmp"
"""The user as whom apt fetches when root calls it, and a directory that this user reaches and that has room."""


class UnknownKernelPackage(UserError):
    message = "apt knows no package {package} with a kernel: {why}"
    hint = "run `apt-get update` to bring its lists up to date, and `apt-cache search linux-image` to see what there is"


class KernelPackageFailed(InfrastructureError):
    message = "can't get the kernel of the package {package}: {why}"
    hint = "run `apt-get download {package}` to see more"


@dataclass(frozen=True)
class Package:
    """A package at a version, as apt knows it."""

    name: str
    version: str
    depends: tuple[str, ...]
    """Names; of alternatives the first."""


def package_tree(package: str, state: State, say: Say) -> tuple[Path, str]:
    """Return where the kernel and the modules of a package lie in the state directory, and its name for people.

    Raise UnknownKernelPackage, KernelPackageFailed, ToolMissing and DiskFull.
    """
    packages = _with_kernel(package)
    origin = f"{packages[0].name} {packages[0].version}"
    names = [f"{one.name} {one.version}" for one in packages]
    place = state.kernels / digest([FORMAT, sorted(WANTED.values()), names])[:32]
    with state.lock(f"kernel-{place.name}", on_wait=lambda: say("another kdyno gets the same kernel: waiting for it")):
        if not (place / ORIGIN).is_file():
            say(f"downloading {format_list(names)}, to unpack: nothing is installed")
            remove_tree(place)
            with state.scratch("kernel") as scratch, translate_disk_full(place):
                partial = scratch / "tree"
                partial.mkdir()
                with _downloaded(packages) as archives:
                    require_space(partial, sum(archive.stat().st_size for archive in archives))
                    _fill(partial, archives, package)
                kernel_in(partial, package)
                write_whole(partial / ORIGIN, origin)
                partial.rename(place)
    return place, origin


def _with_kernel(package: str) -> list[Package]:
    """Return the package of the kernel that this one stands for, and those with its parts."""
    kernel_package = known_package(package)
    for _ in range(MOST_STEPS):
        further = [name for name in kernel_package.depends if name.startswith(IMAGE)]
        if not further:
            break
        kernel_package = known_package(further[0])
    return [kernel_package, *(known_package(name) for name in kernel_package.depends if name.startswith(PARTS))]


def kernel_packages() -> list[str]:
    """Return the names of all packages with kernels that apt knows."""
    listed = process.attempt(["apt-cache", "pkgnames", IMAGE], env=ENVIRONMENT)
    return [name for name in listed.stdout.split() if PACKAGE.fullmatch(name)]


def known_package(package: str) -> Package:
    """Return a package as apt knows it. Raise UnknownKernelPackage."""
    if not PACKAGE.fullmatch(package):
        raise UnknownKernelPackage(package=package, why="that is not a valid name of a package")
    asked = process.attempt(["apt-cache", "show", "--no-all-versions", package], env=ENVIRONMENT)
    if asked.returncode or not asked.stdout.strip():  # of a name that only other packages mention it says nothing
        raise UnknownKernelPackage(package=package, why=clean(asked.stderr)[:200] or "it is not in its lists")
    return parsed(asked.stdout, package)


def parsed(stanza: str, package: str) -> Package:
    """Return the fields of one package in the output of `apt-cache show`. Raise UnknownKernelPackage. Pure."""
    fields = dict(line.split(": ", 1) for line in stanza.splitlines() if ": " in line and not line.startswith(" "))
    name, version = fields.get("Package", ""), fields.get("Version", "")
    if not PACKAGE.fullmatch(name) or not version or not version.isprintable() or " " in version:
        raise UnknownKernelPackage(package=package, why="its entry has no name or version")
    depends = (part.partition("|")[0].split() for part in fields.get("Depends", "").split(","))
    return Package(name, version, tuple(words[0].partition(":")[0] for words in depends if words))


@contextmanager
def _downloaded(packages: Collection[Package]) -> Iterator[list[Path]]:
    """Yield the packages' files, for as long as the body takes.

    When root has apt fetch, apt does so as a user of its own, who can't enter the state directory.
    """
    words = [f"{package.name}={package.version}" for package in packages]
    with TemporaryDirectory(prefix="kdyno-apt-", dir=OPEN_TO_APT if is_root() else None) as name:
        directory = Path(name)
        if is_root():
            _give(directory, APT_USER)
        done = process.attempt(
            ["apt-get", "download", "-q", *words], cwd=directory, env=ENVIRONMENT, timeout=DOWNLOAD_SECONDS
        )
        if is_root():
            os.chown(directory, 0, 0)
        archives = sorted(directory.glob("*.deb"))
        if done.returncode or len(archives) != len(words):
            raise KernelPackageFailed(package=words[0], why=clean(done.stderr)[-300:] or "apt-get left no file")
        yield archives


def _give(directory: Path, user: str) -> None:
    with suppress(KeyError):  # without this user apt has no other than root's
        os.chown(directory, pwd.getpwnam(user).pw_uid, 0)


def _fill(tree: Path, archives: Collection[Path], package: str) -> None:
    """Unpack the kernel and the modules that may be wanted; then, as often as it takes, those that these need."""
    wanted, files = set(WANTED.values()), dict[str, Path]()
    needed = _unpacked(tree, archives, wanted, files, package, with_boot=True)
    while (missing := needed - wanted) and len(wanted) < MOST_MODULES:
        wanted |= missing
        needed |= _unpacked(tree, archives, missing, files, package, with_boot=False)


def _unpacked(
    tree: Path,
    archives: Collection[Path],
    wanted: Collection[str],
    files: dict[str, Path],
    package: str,
    *,
    with_boot: bool,
) -> set[str]:
    """Unpack modules by name; return the names of those that they need."""
    before = set(files)
    for archive in archives:
        command = ["dpkg-deb", "--fsys-tarfile", str(archive)]
        with process.spawn(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as unpacking:
            assert unpacking.stdout
            try:
                _take(unpacking.stdout, tree, wanted, files, with_boot=with_boot)
            except tarfile.TarError as error:
                raise KernelPackageFailed(package=package, why=f"{archive.name} is damaged: {error}") from None
            if unpacking.wait():
                raise KernelPackageFailed(package=package, why=f"dpkg-deb can't unpack {archive.name}")
    return {name for module in set(files) - before for name in needs(read_module(files[module]), module)}


def _take(archive: IO[bytes], tree: Path, wanted: Collection[str], files: dict[str, Path], *, with_boot: bool) -> None:
    """Write the wanted members: regular files at places that are made from their own names alone."""
    with tarfile.open(fileobj=archive, mode="r|", encoding="utf-8") as members:
        for member in members:
            place = placed(member.name, wanted, with_boot=with_boot) if member.isreg() else None
            if place is None or member.size > (MOST_PACKED if name_of(place.name) else MOST_KERNEL):
                continue
            content = members.extractfile(member)
            assert content
            target = tree / place
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.read())
            if module := name_of(target.name):
                files.setdefault(module, target)


def placed(name: str, wanted: Collection[str], *, with_boot: bool) -> PurePosixPath | None:
    """Return the place of a member; None for one that isn't wanted. Pure."""
    parts = [part for part in PurePosixPath(name).parts if part != "."]
    parts = parts[1:] if parts[:1] == ["usr"] else parts
    if ".." in parts or not all(part.isprintable() for part in parts):
        return None
    if with_boot and len(parts) == 2 and parts[0] == "boot" and parts[1].startswith(IN_BOOT):
        return PurePosixPath(*parts)
    if len(parts) < 4 or parts[:2] != ["lib", "modules"]:
        return None
    is_beside_modules = with_boot and len(parts) == 4 and parts[3] in BESIDE_MODULES
    return PurePosixPath(*parts) if is_beside_modules or name_of(parts[-1]) in wanted else None


def kernel_in(tree: Path, package: str) -> Path:
    """Return the kernel of an unpacked package. Raise UnknownKernelPackage if it has none, or several."""
    kernels = sorted((*tree.glob("boot/vmlinuz-*"), *tree.glob("lib/modules/*/vmlinuz")))
    if len(kernels) != 1:
        why = f"it has {len(kernels) or 'no'} files /boot/vmlinuz-RELEASE or /usr/lib/modules/RELEASE/vmlinuz"
        raise UnknownKernelPackage(package=package, why=why)
    return kernels[0]
