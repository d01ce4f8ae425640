"""Builds a kernel for its packages, in a directory that is removed afterwards."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
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
from kdyno.ship.install import SYSTEM_DIRECTORIES
from kdyno.ship.packager import KernelTrees, PackagedKernel, Packager

NEEDED_MB = 4000
"""Megabytes of free space for a build of a trimmed configuration, its packages and what they are packed from."""


class PackagersMissing(InfrastructureError):
    message = "the packages need {programs}, which this host lacks"
    hint = "{way}"


@dataclass(frozen=True)
class BuiltTrees:
    """A kernel that was built, laid out as its packages will have it."""

    trees: KernelTrees
    config: Mapping[str, str]
    build_id: str
    """The digits of its build ID; empty if it has none."""
    code: CodeComparison
    """The functions of this kernel beside those of the judged image."""
    scratch: Path


def require_packagers(packager: Packager) -> None:
    """Raise PackagersMissing if a program of the packaging isn't installed."""
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), *SYSTEM_DIRECTORIES])
    missing = [program for program in packager.programs if shutil.which(program, path=path) is None]
    if missing:
        way = way_to_install(*dict.fromkeys(packager.programs[program] for program in missing))
        raise PackagersMissing(programs=", ".join(missing), way=way)


@contextmanager
def built_trees(
    plan: BuildPlan,
    judged: Image,
    kernel: PackagedKernel,
    packager: Packager,
    session: Session,
    *,
    uses_ccache: bool,
) -> Iterator[BuiltTrees]:
    """Build the kernel of the plan, and yield the trees of its packages for as long as the body takes.

    All objects are compiled before the packaging begins, by exactly the words of the image. Raise the errors of builds
    and of the packager, and PackagersMissing.
    """
    require_packagers(packager)
    state, talk = session.state, session.talk
    waiting = "waiting for another kdyno that builds the same packages"
    with state.lock(f"image-{plan.objects_key}", on_wait=lambda: talk.say(waiting)):
        sweep(plan.objects_key, state)
        state.require_space(NEEDED_MB)
        with build_workspace(
            plan, state, talk.say, talk.on_build_output, is_packaged=True, uses_ccache=uses_ccache
        ) as work:
            with talk.working(f"building {kernel.release}", is_estimate=True) as advance:
                advance(0, None, "configuring")
                kernel_build.configure(work)
                jobs = os.cpu_count() or 1
                expected = kernel_build.guess_steps(work)
                kernel_build.make_targets(work, work.make, ("all",), advance, expected, jobs)
                kernel_build.check_delegated(work)
            scratch = _scratch(work)
            with talk.working(f"packing {kernel.release}") as advance:
                advance(0, None, "the kernel's own packaging")
                trees = packager.lay_out(work, kernel, scratch, jobs)
            yield _built(work, judged, trees, scratch)


def _built(work: BuildWork, judged: Image, trees: KernelTrees, scratch: Path) -> BuiltTrees:
    vmlinux = work.objects / "vmlinux"
    return BuiltTrees(
        trees=trees,
        config=read_config(read_whole(work.objects / ".config", MOST_BYTES).decode(errors="replace")),
        build_id=_build_id(vmlinux),
        code=compare_code(elf_listing.symbols(judged.vmlinux), elf_listing.symbols(vmlinux)),
        scratch=scratch,
    )


def _build_id(vmlinux: Path) -> str:
    listed = re.search(r"Build ID: ([0-9a-f]+)", process.output(["readelf", "--notes", vmlinux], env={"LC_ALL": "C"}))
    return listed[1] if listed else ""


def _scratch(work: BuildWork) -> Path:
    """Return an empty directory beside the objects."""
    directory = work.objects.parent / "packing"
    directory.mkdir()
    return directory
