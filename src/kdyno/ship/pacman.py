"""Makes packages for pacman as makepkg does: .PKGINFO, .INSTALL and .MTREE before the files, packed by bsdtar. The same
trees give the same bytes.
"""

from __future__ import annotations

import gzip
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kdyno.base import process
from kdyno.kernel.make import BuildWork
from kdyno.ship.install import install_headers, install_image
from kdyno.ship.module_programs import needed_libraries
from kdyno.ship.package_content import PackageKind
from kdyno.ship.packager import (
    ADDRESS,
    BUILDER,
    KernelTrees,
    PackagedKernel,
    add_file,
    indented,
    machine_checks,
)
from kdyno.ship.read_pacman import INFO
from kdyno.ship.rpm import compiler_programs

REVISION = "1"
ARCH = "x86_64"
SCRIPT = """\
_kdyno_checks() (
{checks})

pre_install() {{
    _kdyno_checks
}}

pre_upgrade() {{
    _kdyno_checks
}}
"""
"""The functions that pacman calls; it goes on if one fails, and shows its message."""
MTREE_KEYS = "!all,use-set,type,uid,gid,mode,time,size,md5,sha256,link"
AS_ROOT = ("--uid", "0", "--gid", "0", "--uname", "root", "--gname", "root")


class PacmanPackager:
    """Makes packages whose files are those of the kernel's own pacman-pkg."""

    kind: PackageKind = "pacman"
    programs: Mapping[str, str] = {"bsdtar": "libarchive-tools", "xz": "xz-utils"}

    def names(self, kernel: PackagedKernel) -> tuple[str, str]:
        return f"linux{kernel.suffix}", f"linux{kernel.suffix}-headers"

    def version(self, source_version: str) -> str:
        return f"{source_version.replace('-rc', 'rc').replace('-', '_')}-{REVISION}"

    def file_name(self, name: str, version: str) -> str:
        return f"{name}-{version}-{ARCH}.pkg.tar.xz"

    def kernel_path(self, release: str) -> str:
        return f"usr/lib/modules/{release}/vmlinuz"

    def config_path(self, release: str) -> str:
        return f"usr/lib/modules/{release}/config"

    def lay_out(self, work: BuildWork, kernel: PackagedKernel, scratch: Path, jobs: int) -> KernelTrees:
        modules = f"usr/lib/modules/{kernel.release}"
        directory = install_image(work, kernel, scratch / "image", modules, jobs)
        # the name in /boot that mkinitcpio's hooks give to the kernel and its initrd
        add_file(directory / "pkgbase", f"{self.names(kernel)[0]}\n".encode())
        headers = scratch / "headers"
        has_headers = install_headers(work, kernel, headers, f"{modules}/build")
        return KernelTrees(scratch / "image", headers if has_headers else None)

    def pack_image(self, tree: Path, card: bytes, card_path: str, kernel: PackagedKernel, scratch: Path) -> Path:
        name, _ = self.names(kernel)
        add_file(tree / card_path, card)
        kernel_file = tree / self.kernel_path(kernel.release)
        checks = machine_checks(name, kernel, [kernel_file], "! pacman -Qq " + name + " >/dev/null 2>&1")
        script = SCRIPT.format(checks=indented(checks))
        depends = ["coreutils", "kmod", *(["initramfs"] if kernel.has_initrd else [])]
        fields = [("depend", program) for program in depends]
        return self._pack(tree, name, f"Linux {kernel.release}, built by kdyno", fields, kernel, scratch, script)

    def pack_headers(self, tree: Path, kernel: PackagedKernel, scratch: Path) -> Path:
        _, name = self.names(kernel)
        text = f"Files to build modules for Linux {kernel.release}, which {kernel.compiler.banner} compiled"
        libraries = (name.partition(".so.") for name in needed_libraries(tree))
        fields = [
            *(("depend", f"{library}.so={version}-64") for library, _, version in libraries),
            *(("optdepend", f"{program}: compiles modules") for program in compiler_programs(kernel)),
        ]
        return self._pack(tree, name, text, fields, kernel, scratch)

    def _pack(
        self,
        tree: Path,
        name: str,
        description: str,
        fields: Sequence[tuple[str, str]],
        kernel: PackagedKernel,
        scratch: Path,
        script: str = "",
    ) -> Path:
        version = self.version(kernel.source_version)
        head = [
            ("pkgname", name),
            ("pkgbase", name.removesuffix("-headers")),
            ("xdata", "pkgtype=pkg"),
            ("pkgver", version),
            ("pkgdesc", description),
            ("url", "https://www.kernel.org/"),
            ("builddate", str(kernel.epoch)),
            ("packager", f"{BUILDER} <{ADDRESS}>"),
            ("size", str(sum(path.lstat().st_size for path in tree.rglob("*") if not path.is_dir()))),
            ("arch", ARCH),
            ("license", "GPL-2.0-only"),
            *fields,
        ]
        add_file(tree / INFO, "".join(f"{key} = {value}\n" for key, value in head).encode())
        if script:
            add_file(tree / ".INSTALL", script.encode())
        file = scratch / self.file_name(name, version)
        _archive(tree, file, kernel.epoch)
        return file


def _archive(tree: Path, file: Path, epoch: int) -> None:
    """Pack a tree, first what pacman reads of it, and then its files in order."""
    for path in (*tree.rglob("*"), tree):
        os.utime(path, (epoch, epoch), follow_symlinks=False)
    names = sorted(_names(tree), key=os.fsencode)
    listed = [name for name in (INFO, ".INSTALL") if name in names]
    listed += [name for name in names if name not in listed]
    names_file, mtree = file.with_suffix(".names"), tree / ".MTREE"
    names_file.write_bytes(b"".join(os.fsencode(name) + b"\0" for name in listed))
    bsdtar = ["bsdtar", "--null", "--no-recursion", *AS_ROOT, "-C", str(tree), "-T", str(names_file)]
    environment = {"LC_ALL": "C.UTF-8"}
    plain, packed = file.with_suffix(".mtree"), file.with_suffix(".tar")
    process.output([*bsdtar, "--format=mtree", f"--options={MTREE_KEYS}", "-cf", plain], env=environment, guarded=True)
    add_file(mtree, gzip.compress(plain.read_bytes(), mtime=0))
    os.utime(mtree, (epoch, epoch))
    names_file.write_bytes(b".MTREE\0" + names_file.read_bytes())
    process.output([*bsdtar, "--format=gnutar", "-cf", packed], env=environment, guarded=True)
    process.output(["xz", "--threads=1", "--force", packed], guarded=True)
    packed.with_suffix(".tar.xz").replace(file)


def _names(tree: Path) -> Iterator[str]:
    for path in tree.rglob("*"):
        yield str(path.relative_to(tree))
