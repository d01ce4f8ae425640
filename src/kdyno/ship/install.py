"""Lays out the files of a kernel by the targets of its own Makefile that binrpm-pkg and pacman-pkg use as well.

Those two can't serve: an RPM package can't be changed once it is made, which adds the card; makepkg refuses to run as
root, and Linux before 6.11 has no pacman-pkg.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from kdyno.kernel.make import BuildWork
from kdyno.ship.module_compiler import choose_compiler
from kdyno.ship.module_programs import strip_programs
from kdyno.ship.packager import PackagedKernel, settle_modes

SYSTEM_DIRECTORIES = ("/usr/sbin", "/sbin")
"""Where depmod is, which isn't on the PATH of every user."""
INSTALL_HEADERS = "scripts/package/install-extmod-build"
"""What copies the files that modules are built from; Linux has it since 6.3."""


def with_variables(work: BuildWork, variables: Mapping[str, str], epoch: int) -> BuildWork:
    """Return the build with more variables, for its packaging."""
    path = os.pathsep.join([work.cache.get("PATH", os.environ.get("PATH", os.defpath)), *SYSTEM_DIRECTORIES])
    own = work.plan.environment
    environment = {
        **own,
        **variables,
        "KBUILD_BUILD_VERSION": own["KBUILD_BUILD_VERSION"],
        "PATH": path,
        "SOURCE_DATE_EPOCH": str(epoch),
    }
    return replace(work, plan=work.plan.model_copy(update={"environment": environment}))


def install_image(work: BuildWork, kernel: PackagedKernel, root: Path, modules: str, jobs: int) -> Path:
    """Install the kernel, and what belongs to it, in the directory `modules` below a root. Return that directory."""
    directory = root / modules
    directory.mkdir(parents=True)
    shutil.copyfile(work.objects / work.plan.arch.files[work.plan.arch.program], directory / "vmlinuz")
    shutil.copyfile(work.objects / "System.map", directory / "System.map")
    shutil.copyfile(work.objects / ".config", directory / "config")
    if kernel.has_modules:
        prefix = modules.removesuffix(f"lib/modules/{kernel.release}")
        words = [f"INSTALL_MOD_PATH={root / prefix}", "INSTALL_MOD_STRIP=1", "DEPMOD=true", "modules_install"]
        packing = with_variables(work, {}, kernel.epoch)
        packing.run([*packing.make, f"-j{jobs}", *words])
        (directory / "build").unlink(missing_ok=True)
        (directory / "source").unlink(missing_ok=True)
    settle_modes(root)
    return directory


def install_headers(work: BuildWork, kernel: PackagedKernel, root: Path, directory: str) -> bool:
    """Install what modules are built from in a directory below a root; return False if the source can't do that."""
    if not kernel.has_modules or not (work.objects.parent / INSTALL_HEADERS).exists():
        return False
    place = root / directory
    place.mkdir(parents=True)
    packing = with_variables(work, {}, kernel.epoch)
    packing.run([*packing.make, "run-command", f"KBUILD_RUN_COMMAND=${{srctree}}/{INSTALL_HEADERS} {place}"])
    shutil.copyfile(work.objects / ".config", place / ".config")
    choose_compiler(place, kernel.compiler, has_versions=False)
    settle_modes(root)
    strip_programs(place)
    return True
