"""Finishes a package of the kernel's own packaging: adds the card, kdyno-try and the checks before an installation, and
removes the hour of the build.
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole
from kdyno.kernel.knobs.kconfig import MOST_BYTES as MOST_CONFIG
from kdyno.kernel.make import BuildWork
from kdyno.kernel.toolchain import ToolchainIdentity
from kdyno.ship.install import with_variables
from kdyno.ship.module_compiler import choose_compiler, major_version
from kdyno.ship.module_programs import programs, strip_programs
from kdyno.ship.package_content import PackageKind
from kdyno.ship.packager import (
    ADDRESS,
    BUILDER,
    TRY,
    KernelTrees,
    PackagedKernel,
    add_file,
    add_try,
    forget_try,
    indented,
    machine_checks,
    try_path,
)

SOURCE_NAME = "linux-upstream"
MOST_CONTROL = 1_000_000
COMPRESSION = "xz"
PREINST = """\
case "$1" in install|upgrade)
{checks}esac

"""
"""What comes before the kernel's own preinst script."""
POSTINST = """\
# The command that tries the newest of kdyno's kernels; it is called by nobody but you.
if [ "$1" = configure ]; then
    update-alternatives --quiet --install /usr/sbin/{name} {name} /{program} {priority}
fi

"""
"""What comes before the kernel's own postinst script."""
PRERM = """\
if [ "$1" = remove ]; then
{forget}    update-alternatives --quiet --remove {name} /{program}
fi

"""
"""What comes before the kernel's own prerm script."""
LEFT_OUT = f"pkg.{SOURCE_NAME}.nokerneldbg"
"""A build profile: the package with debug information is as large as all objects; vmlinux is in the image directory."""


class NoPackage(InfrastructureError):
    message = "the kernel's packaging made no package {name}: it made {made}"
    hint = "run `make bindeb-pkg` in the source by hand to see more"


class PackageOdd(InfrastructureError):
    message = "the package {package} of the kernel's own packaging is not as expected: {why}"
    hint = "this version of the kernel packs in another way; try another one, and report it"


def unpack(package: Path, to: Path) -> None:
    """Unpack a package that was just built, with its control files in DEBIAN."""
    process.output(["dpkg-deb", "--raw-extract", package, to], guarded=True)


def pack(tree: Path, package: Path, epoch: int) -> None:
    """Pack a tree: the same tree and epoch give the same bytes."""
    for path in (*tree.rglob("*"), tree):
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    words = ["dpkg-deb", "--root-owner-group", f"-Z{COMPRESSION}", "--build", str(tree), str(package)]
    process.output(words, env={"SOURCE_DATE_EPOCH": str(epoch)}, guarded=True)


class DebPackager:
    """Makes packages by the kernel's own bindeb-pkg, and finishes them."""

    kind: PackageKind = "deb"
    programs: Mapping[str, str] = {
        "dpkg-buildpackage": "dpkg-dev",
        "dpkg-shlibdeps": "dpkg-dev",
        "dpkg-deb": "dpkg",
        "dh_builddeb": "debhelper",
        "rsync": "rsync",
        "depmod": "kmod",
        "cpio": "cpio",
    }

    def names(self, kernel: PackagedKernel) -> tuple[str, str]:
        return f"linux-image-{kernel.release}", f"linux-headers-{kernel.release}"

    def version(self, source_version: str) -> str:
        return f"{source_version}-1"

    def file_name(self, name: str, version: str) -> str:
        return f"{name}_{version}_amd64.deb"

    def kernel_path(self, release: str) -> str:
        return f"boot/vmlinuz-{release}"

    def config_path(self, release: str) -> str:
        return f"boot/config-{release}"

    def lay_out(self, work: BuildWork, kernel: PackagedKernel, scratch: Path, jobs: int) -> KernelTrees:
        """Run the kernel's own packaging on the objects that are there, and unpack what it made. Raise NoPackage."""
        _run_packaging(work, self.version(kernel.source_version), kernel.epoch, jobs)
        packages = {path.name.partition("_")[0]: path for path in sorted(work.objects.parent.glob("*.deb"))}
        image, headers = self.names(kernel)
        if image not in packages:
            raise NoPackage(name=image, made=", ".join(packages) or "none")
        unpack(packages[image], scratch / "image")
        if headers not in packages:
            return KernelTrees(scratch / "image", None)
        unpack(packages[headers], scratch / "headers")
        source = scratch / "headers/usr/src" / f"linux-headers-{kernel.release}"
        if not source.is_dir():
            raise PackageOdd(package=headers, why=f"it has no usr/src/{source.name}")
        add_file(source / ".config", read_whole(work.objects / ".config", MOST_CONFIG))
        return KernelTrees(scratch / "image", scratch / "headers")

    def pack_image(self, tree: Path, card: bytes, card_path: str, kernel: PackagedKernel, scratch: Path) -> Path:
        name, _ = self.names(kernel)
        finish_image(tree, card, card_path, kernel)
        return self._pack(tree, name, kernel, scratch)

    def pack_headers(self, tree: Path, kernel: PackagedKernel, scratch: Path) -> Path:
        _, name = self.names(kernel)
        finish_headers(tree, f"usr/src/linux-headers-{kernel.release}", kernel.compiler, scratch)
        return self._pack(tree, name, kernel, scratch)

    def _pack(self, tree: Path, name: str, kernel: PackagedKernel, scratch: Path) -> Path:
        version = self.version(kernel.source_version)
        settle(tree, name, version, kernel.epoch)
        file = scratch / self.file_name(name, version)
        pack(tree, file, kernel.epoch)
        return file


def _run_packaging(work: BuildWork, version: str, epoch: int, jobs: int) -> None:
    variables = {
        "DEBEMAIL": ADDRESS,
        "DEBFULLNAME": BUILDER,
        "DEB_BUILD_OPTIONS": "terse",
        "DEB_BUILD_PROFILES": LEFT_OUT,
        "DPKG_FLAGS": "-d",
        "INSTALL_MOD_STRIP": "1",
        "KDEB_CHANGELOG_DIST": "unstable",
        "KDEB_COMPRESS": "none",
        "KDEB_PKGVERSION": version,
        "KDEB_SOURCENAME": SOURCE_NAME,
    }
    packing = with_variables(work, variables, epoch)
    packing.run([*packing.make, f"-j{jobs}", "bindeb-pkg"])


def finish_image(tree: Path, card: bytes, card_path: str, kernel: PackagedKernel) -> None:
    """Put the card, kdyno-try and the checks before an installation into the tree of the image's package."""
    add_file(tree / card_path, card)
    kernel_files = list((tree / "boot").iterdir())
    checks = machine_checks(f"linux-image-{kernel.release}", kernel, kernel_files, '[ "$1" = install ]')
    _extend_script(tree, "preinst", PREINST.format(checks=indented(checks)))
    add_try(tree, kernel.release)
    command = {"name": TRY.name, "program": try_path(kernel.release), "priority": priority_of(kernel.release)}
    _extend_script(tree, "postinst", POSTINST.format_map(command))
    _extend_script(tree, "prerm", PRERM.format(forget=indented(forget_try(kernel.release)), **command))


def priority_of(release: str) -> int:
    """Return a number by which the kdyno-try of the newest kernel becomes the command."""
    major, minor, patch = [int(number) for number in re.findall(r"\d+", f"{release}.0.0")[:3]]
    return major * 1_000_000 + minor * 1_000 + min(patch, 999)


def _extend_script(tree: Path, name: str, lines: str) -> None:
    """Put lines at the beginning of a maintainer script, and make the script if the package has none."""
    script = tree / "DEBIAN" / name
    text = script.read_text(encoding="utf-8") if script.exists() else "#!/bin/sh\n"
    head, line_end, rest = text.partition("\n")
    if not head.startswith("#!/bin/sh"):
        raise PackageOdd(package=tree.name, why=f"its {name} is not a shell script")
    script.write_text(f"{head}{line_end}{lines}{rest}", encoding="utf-8")
    script.chmod(0o755)


def finish_headers(tree: Path, source: str, compiler: ToolchainIdentity, scratch: Path) -> None:
    """Name the compiler in the package of the headers, and in the Makefile of the directory `source`; and name what the
    programs in it need.
    """
    if not (tree / source / "Makefile").is_file():
        raise PackageOdd(package=tree.name, why=f"it has no {source}/Makefile")
    choose_compiler(tree / source, compiler, has_versions=True)
    strip_programs(tree / source)
    depends = library_packages(list(programs(tree / source)), scratch)
    change_control(
        tree,
        {**({"Depends": depends} if depends else {}), "Recommends": ", ".join(compiler_packages(compiler))},
        f" The kernel was compiled by {compiler.banner}.\n Modules for it must be compiled by the same compiler.\n",
    )


def library_packages(files: Sequence[Path], scratch: Path) -> str:
    """Return the Debian packages of the libraries of programs, as the field Depends has them; empty if there are none,
    or if no package of this host has them.
    """
    if not files:
        return ""
    place = scratch / "libraries"
    (place / "debian").mkdir(parents=True)
    (place / "debian" / "control").write_text(
        "Source: linux\n\nPackage: linux-headers\nArchitecture: any\n", encoding="utf-8"
    )
    words = ["dpkg-shlibdeps", "-O", "--ignore-missing-info", "--warnings=0", *(f"-e{file}" for file in files)]
    return process.output(words, cwd=place).strip().removeprefix("shlibs:Depends=")


def compiler_packages(compiler: ToolchainIdentity) -> tuple[str, ...]:
    """Return the Debian packages of the compiler that modules must be compiled by."""
    major = major_version(compiler)
    if compiler.family == "clang":
        return tuple(f"{name}-{major}" for name in ("clang", "lld", "llvm"))
    return (f"gcc-{major}",)


def change_control(tree: Path, fields: Mapping[str, str], more_description: str = "") -> None:
    """Set fields of a package, and add lines to the end of its description."""
    path = tree / "DEBIAN" / "control"
    lines = read_whole(path, MOST_CONTROL).decode().splitlines()
    kept = [line for line in lines if line.partition(":")[0] not in fields]
    new = [f"{name}: {value}" for name, value in fields.items()]
    at = next((number for number, line in enumerate(kept) if line.startswith("Description:")), len(kept))
    text = "\n".join([*kept[:at], *new, *kept[at:]])
    path.write_text(f"{text}\n{_paragraph(more_description)}", encoding="utf-8")


def _paragraph(lines: str) -> str:
    return f" .\n{lines}" if lines else ""


def settle(tree: Path, package: str, version: str, epoch: int) -> None:
    """Make the parts of the tree that name the hour of the build say the epoch, and renew sizes and checksums."""
    for changelog in (tree / "usr/share/doc" / package).glob("changelog*"):
        changelog.unlink()
    document = tree / "usr/share/doc" / package / "changelog.Debian.gz"
    add_file(document, gzip.compress(_changelog(version, epoch).encode(), mtime=0))
    files = sorted(_files(tree))
    size = sum(max(1, -(-path.lstat().st_size // 1024)) for path in files)
    change_control(tree, {"Installed-Size": str(size)})
    sums = "".join(f"{_md5(path)}  {path.relative_to(tree)}\n" for path in files if not path.is_symlink())
    (tree / "DEBIAN" / "md5sums").write_text(sums, encoding="utf-8")


def _changelog(version: str, epoch: int) -> str:
    day = datetime.fromtimestamp(epoch, UTC)
    return (
        f"{SOURCE_NAME} ({version}) unstable; urgency=low\n\n"
        "  * Built by kdyno; the card in /usr/share/kdyno/cards has its origin.\n\n"
        f" -- {BUILDER} <{ADDRESS}>  {day:%a, %d %b %Y %H:%M:%S} +0000\n"
    )


def _files(tree: Path) -> Iterator[Path]:
    for path in tree.rglob("*"):
        if not path.is_dir() and path.relative_to(tree).parts[0] != "DEBIAN":
            yield path


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
