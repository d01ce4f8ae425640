"""Builds the packages of a kernel by the kernel's own packaging, in a directory that is removed afterwards."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from kdyno.base import elf_listing, process
from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole
from kdyno.base.packages import way_to_install
from kdyno.kernel import build as kernel_build
from kdyno.kernel.image import Image
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs.kconfig import MOST_BYTES
from kdyno.kernel.make import BuildWork, build_workspace, sweep
from kdyno.kernel.plan import BuildPlan
from kdyno.runs.session import Session
from kdyno.ship.code import CodeComparison, compare_code

NEEDED_MB = 4000
"""Megabytes of free space for a build of a trimmed configuration, its packages and what they are packed from."""
TOOLS = {
    "dpkg-buildpackage": "dpkg-dev",
    "dpkg-deb": "dpkg",
    "dh_builddeb": "debhelper",
    "rsync": "rsync",
    "depmod": "kmod",
    "cpio": "cpio",
}
"""The programs that scripts/package/ of the kernel and kdyno call, with their Debian packages."""
SYSTEM_DIRECTORIES = ("/usr/sbin", "/sbin")
"""Where depmod is, which isn't on the PATH of every user."""
SOURCE_NAME = "linux-upstream"
LEFT_OUT = f"pkg.{SOURCE_NAME}.nokerneldbg"
"""A build profile: the package with debug information is as large as all objects; vmlinux is in the image directory."""
BUILDER = "kdyno"
ADDRESS = "kdyno@localhost"


class PackagersMissing(InfrastructureError):
    message = "the kernel's packaging needs {programs}, which this host lacks"
    hint = "{way}"


class NoPackage(InfrastructureError):
    message = "the kernel's packaging made no package {name}: it made {made}"
    hint = "run `make bindeb-pkg` in the source by hand to see more"


@dataclass(frozen=True)
class KernelPackages:
    """The packages as the kernel's own packaging made them."""

    image: Path
    headers: Path | None
    """None for a kernel without modules, which has no use for headers."""
    config: Mapping[str, str]
    config_file: Path
    build_id: str
    """The digits of its build ID; empty if it has none."""
    code: CodeComparison
    """The functions of this kernel beside those of the judged image."""
    scratch: Path


def require_packagers() -> None:
    """Raise PackagersMissing if a program of the packaging isn't installed."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES])
    missing = [program for program in TOOLS if shutil.which(program, path=path) is None]
    if missing:
        way = way_to_install(*dict.fromkeys(TOOLS[program] for program in missing))
        raise PackagersMissing(programs=", ".join(missing), way=way)


@contextmanager
def kernel_packages(
    plan: BuildPlan, judged: Image, release: str, epoch: int, session: Session, *, uses_ccache: bool
) -> Iterator[KernelPackages]:
    """Build the packages of the plan, and yield them for as long as the body takes.

    All objects are compiled before the packaging begins, by exactly the words of the image. Raise the errors of builds,
    PackagersMissing and NoPackage.
    """
    require_packagers()
    state, talk = session.state, session.talk
    waiting = "waiting for another kdyno that builds the same packages"
    with state.lock(f"image-{plan.objects_key}", on_wait=lambda: talk.say(waiting)):
        sweep(plan.objects_key, state)
        state.require_space(NEEDED_MB)
        with build_workspace(
            plan, state, talk.say, talk.on_build_output, is_packaged=True, uses_ccache=uses_ccache
        ) as work:
            with talk.working(f"building {release}", is_estimate=True) as advance:
                advance(0, None, "configuring")
                kernel_build.configure(work)
                jobs = os.cpu_count() or 1
                expected = kernel_build.guess_steps(work)
                kernel_build.make_targets(work, work.make, ("all",), advance, expected, jobs)
                kernel_build.check_delegated(work)
            with talk.working(f"packing {release}") as advance:
                advance(0, None, "the kernel's own packaging")
                _pack(work, epoch, jobs)
            yield _made(work, judged, release)


def _pack(work: BuildWork, epoch: int, jobs: int) -> None:
    """Run the kernel's own packaging on the objects that are there."""
    version = work.plan.source.version
    path = os.pathsep.join([work.cache.get("PATH", os.environ.get("PATH", os.defpath)), *SYSTEM_DIRECTORIES])
    variables = {
        "DEBEMAIL": ADDRESS,
        "DEBFULLNAME": BUILDER,
        "DEB_BUILD_OPTIONS": "terse",
        "DEB_BUILD_PROFILES": LEFT_OUT,
        "DPKG_FLAGS": "-d",
        "KBUILD_BUILD_VERSION": work.plan.environment["KBUILD_BUILD_VERSION"],
        "KDEB_CHANGELOG_DIST": "unstable",
        "KDEB_COMPRESS": "none",
        "KDEB_PKGVERSION": package_version(version),
        "KDEB_SOURCENAME": SOURCE_NAME,
        "PATH": path,
        "SOURCE_DATE_EPOCH": str(epoch),
    }
    plan = work.plan.model_copy(update={"environment": {**work.plan.environment, **variables}})
    packing = replace(work, plan=plan)
    packing.run([*packing.make, f"-j{jobs}", "bindeb-pkg"])


def package_version(version: str) -> str:
    """Return the version of the packages: the source's, and a revision that is always the first."""
    return f"{version}-1"


def _made(work: BuildWork, judged: Image, release: str) -> KernelPackages:
    directory = work.objects.parent
    packages = {path.name.partition("_")[0]: path for path in sorted(directory.glob("*.deb"))}
    image_name, headers_name = f"linux-image-{release}", f"linux-headers-{release}"
    if image_name not in packages:
        raise NoPackage(name=image_name, made=", ".join(packages) or "none")
    config = read_config(read_whole(work.objects / ".config", MOST_BYTES).decode(errors="replace"))
    vmlinux = work.objects / "vmlinux"
    return KernelPackages(
        image=packages[image_name],
        headers=packages.get(headers_name),
        config=config,
        config_file=work.objects / ".config",
        build_id=_build_id(vmlinux),
        code=compare_code(elf_listing.symbols(judged.vmlinux), elf_listing.symbols(vmlinux)),
        scratch=_scratch(work),
    )


def _build_id(vmlinux: Path) -> str:
    listed = re.search(r"Build ID: ([0-9a-f]+)", process.output(["readelf", "--notes", vmlinux], env={"LC_ALL": "C"}))
    return listed[1] if listed else ""


def _scratch(work: BuildWork) -> Path:
    """Return an empty directory beside the objects."""
    directory = work.objects.parent / "packing"
    directory.mkdir()
    return directory
