"""Makes RPM packages of a kernel by rpmbuild. The same trees give the same bytes."""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
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
    add_try,
    forget_try,
    indented,
    machine_checks,
)

REVISION = "1"
ARCH = "x86_64"
DESCRIPTION_WIDTH = 79
BUILT = "Built by kdyno; the card in /usr/share/kdyno/cards has its origin."
IN_BOOT = ("vmlinuz", "System.map", "config")
MADE_BY_DEPMOD = tuple(
    f"modules.{name}"
    for name in (
        *("alias", "alias.bin", "builtin.alias.bin", "builtin.bin", "dep", "dep.bin", "devname", "softdep"),
        *("symbols", "symbols.bin", "weakdep"),
    )
)
MACROS = {
    "_buildhost": "localhost",
    "_binary_payload": "w6.xzdio",
    "_build_id_links": "none",
    "__os_install_post": "%{nil}",
    "__spec_install_post": "%{nil}",
    "_enable_debug_packages": "0",
    "debug_package": "%{nil}",
    "clamp_mtime_to_source_date_epoch": "1",
    "use_source_date_epoch_as_buildtime": "1",
    "source_date_epoch_from_changelog": "0",
    "optflags": "%{nil}",
    "_build_name_fmt": "%%{NAME}-%%{VERSION}-%%{RELEASE}.%%{ARCH}.rpm",
}
"""What makes a package the same on each host: no hour, no host name, no change of the files, one thread of xz."""
POST = """\
[ -e /lib/modules/{release}/modules.dep ] || depmod {release} || :
if [ -x /usr/bin/kernel-install ]; then
    /usr/bin/kernel-install add {release} /lib/modules/{release}/vmlinuz || :
fi
for file in vmlinuz System.map config; do
    cmp -s "/lib/modules/{release}/$file" "/boot/$file-{release}" ||
        cp "/lib/modules/{release}/$file" "/boot/$file-{release}"
done
"""
"""After the installation: what the spec file of the kernel does."""
PREUN = """\
if [ "$1" = 0 ]; then
{forget}    if [ -x /usr/bin/kernel-install ]; then
        /usr/bin/kernel-install remove {release} || :
    fi
fi
"""
"""Before the removal."""


@dataclass(frozen=True)
class SpecFile:
    """What a spec file says of one package."""

    name: str
    version: str
    summary: str
    group: str
    description: Sequence[str]
    tags: Sequence[tuple[str, str]]
    scripts: Mapping[str, str]
    """By section: lines of the shell."""
    files: Sequence[str]
    day: datetime

    def lines(self, tree: Path) -> Iterator[str]:
        head = {
            "Name": self.name,
            "Version": self.version,
            "Release": REVISION,
            "Summary": self.summary,
            "License": "GPL-2.0-only",
            "Group": self.group,
            "URL": "https://www.kernel.org/",
            "Packager": f"{BUILDER} <{ADDRESS}>",
            "AutoReqProv": "no",
        }
        yield from (f"{tag}: {_literal(value)}" for tag, value in (*head.items(), *self.tags))
        paragraphs = (textwrap.wrap(text, DESCRIPTION_WIDTH) for text in self.description)
        yield from ("%description", *(_literal(line) for lines in paragraphs for line in lines))
        yield from ("%install", "mkdir -p %{buildroot}", f"cp -a {tree}/. %{{buildroot}}/")
        for section, script in self.scripts.items():
            yield from (f"%{section}", *map(_literal, script.splitlines()))
        yield from ("%files", "%defattr(-,root,root,-)", *self.files)
        yield from (
            "%changelog",
            f"* {self.day:%a %b %d %Y} {BUILDER} <{ADDRESS}> - {self.version}-{REVISION}",
            f"- {BUILT}",
        )


def _literal(text: str) -> str:
    """Return a text that rpm expands to itself."""
    return text.replace("%", "%%")


class RpmPackager:
    """Makes packages whose files are those of the kernel's own binrpm-pkg."""

    kind: PackageKind = "rpm"
    programs: Mapping[str, str] = {"rpmbuild": "rpm"}

    def names(self, kernel: PackagedKernel) -> tuple[str, str]:
        return f"kernel{kernel.suffix}", f"kernel{kernel.suffix}-devel"

    def version(self, source_version: str) -> str:
        return f"{_own_version(source_version)}-{REVISION}"

    def file_name(self, name: str, version: str) -> str:
        return f"{name}-{version}.{ARCH}.rpm"

    def kernel_path(self, release: str) -> str:
        return f"lib/modules/{release}/vmlinuz"

    def config_path(self, release: str) -> str:
        return f"lib/modules/{release}/config"

    def lay_out(self, work: BuildWork, kernel: PackagedKernel, scratch: Path, jobs: int) -> KernelTrees:
        release = kernel.release
        install_image(work, kernel, scratch / "image", f"lib/modules/{release}", jobs)
        headers = scratch / "headers"
        if not install_headers(work, kernel, headers, f"usr/src/kernels/{release}"):
            return KernelTrees(scratch / "image", None)
        (headers / "lib/modules" / release).mkdir(parents=True)
        (headers / "lib/modules" / release / "build").symlink_to(f"/usr/src/kernels/{release}")
        return KernelTrees(scratch / "image", headers)

    def pack_image(self, tree: Path, card: bytes, card_path: str, kernel: PackagedKernel, scratch: Path) -> Path:
        release = kernel.release
        name, _ = self.names(kernel)
        modules = tree / "lib/modules" / release
        checks = machine_checks(name, kernel, [modules / file for file in IN_BOOT], '[ "$1" = 1 ]')
        add_file(tree / card_path, card)
        add_try(tree, release)
        made = [file for file in MADE_BY_DEPMOD if kernel.has_modules and not (modules / file).exists()]
        spec = SpecFile(
            name=name,
            version=_own_version(kernel.source_version),
            summary=f"Linux {release}, built by kdyno",
            group="System Environment/Kernel",
            description=[f"The kernel {release} and its modules.", "Its origin is on its card in /usr/share/kdyno."],
            tags=[
                ("Provides", f"kernel-{release}"),
                *(("Requires(post)", program) for program in ("coreutils", "diffutils", "kmod")),
                ("Requires(pre)", "coreutils"),
                ("Requires(pre)", "gawk"),
                ("Requires(pre)", "grep"),
            ],
            scripts={
                "pre": checks,
                "post": POST.format(release=release),
                "preun": PREUN.format(release=release, forget=indented(forget_try(release))),
            },
            files=[
                f"/lib/modules/{release}",
                f"/{card_path}",
                f"/usr/lib/kdyno/{release}",
                *(f"%ghost %attr(0644,root,root) /lib/modules/{release}/{file}" for file in made),
                *(f"%ghost %attr(0644,root,root) /boot/{file}-{release}" for file in IN_BOOT),
            ],
            day=datetime.fromtimestamp(kernel.epoch, UTC),
        )
        return self._pack(tree, spec, kernel, scratch)

    def pack_headers(self, tree: Path, kernel: PackagedKernel, scratch: Path) -> Path:
        release = kernel.release
        _, name = self.names(kernel)
        spec = SpecFile(
            name=name,
            version=_own_version(kernel.source_version),
            summary=f"Files to build modules for Linux {release}",
            group="Development/System",
            description=[
                f"The kernel was compiled by {kernel.compiler.banner}.",
                "Modules for it must be compiled by the same compiler.",
            ],
            tags=[
                ("Provides", f"kernel-devel-{release}"),
                *(("Requires", f"{library}()(64bit)") for library in needed_libraries(tree)),
                *(("Recommends", program) for program in compiler_programs(kernel)),
            ],
            scripts={},
            files=[f"/usr/src/kernels/{release}", f"/lib/modules/{release}/build"],
            day=datetime.fromtimestamp(kernel.epoch, UTC),
        )
        return self._pack(tree, spec, kernel, scratch)

    def _pack(self, tree: Path, spec: SpecFile, kernel: PackagedKernel, scratch: Path) -> Path:
        for path in (*tree.rglob("*"), tree):
            os.utime(path, (kernel.epoch, kernel.epoch), follow_symlinks=False)
        top = scratch / f"{tree.name}-rpm"
        top.mkdir()
        spec_file = top / "kernel.spec"
        spec_file.write_text("\n".join([*spec.lines(tree), ""]), encoding="utf-8")
        macros = {**MACROS, "_topdir": str(top), "_rpmdir": str(top), "_dbpath": str(top / "db"), "_tmppath": str(top)}
        defined = [word for name, value in macros.items() for word in ("--define", f"{name} {value}")]
        words = ["rpmbuild", "-bb", "--quiet", "--nodeps", "--target", f"{ARCH}-linux", *defined, str(spec_file)]
        environment = {"HOME": str(top), "LC_ALL": "C.UTF-8", "SOURCE_DATE_EPOCH": str(kernel.epoch)}
        process.output(words, cwd=top, env=environment, guarded=True)
        return top / self.file_name(spec.name, self.version(kernel.source_version))


def _own_version(source_version: str) -> str:
    """Return the source's version as rpm can sort it: 6.13-rc2 comes before 6.13."""
    return source_version.replace("-rc", "~rc").replace("-", "_")


def compiler_programs(kernel: PackagedKernel) -> tuple[str, ...]:
    """Return the packages of the compiler that modules must be compiled by, by the names of Fedora and Arch."""
    return ("clang", "lld", "llvm") if kernel.compiler.family == "clang" else ("gcc",)
