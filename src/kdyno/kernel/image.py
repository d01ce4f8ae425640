"""The image: the result of a recipe and a source. The record is stored with the files as image.json."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.toolchain import ToolchainIdentity

ImageFile = Literal[
    "bzImage",
    "vmlinux",
    "System.map",
    "config",
    "build.log",
    "delegation.jsonl",
    "sections.jsonl",
    "notes.tar.xz",
    "modules.tar",
]
"""The files of an image, beside its record. The last four only where ccd stood in for the compiler, where lkd did for
the linker, where gcc compiled for gcov: its .gcno files, and where a built kernel needs modules. A built kernel has no
build.log, and System.map only where its symbols are known."""
ArchName = Literal["x86_64", "um"]
"""As `make ARCH=` takes it; arch.py describes each."""
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class SourceIdentity(Frozen):
    """A kernel tree, by content."""

    spec: str
    """The name that was requested: `debian:linux-source-6.12`."""
    identity: str
    """`git:<commit>`, `tarball:<sha256>` or `tree:<sha256>`."""
    version: str
    """The kernel's own version, `make kernelversion`: `6.12.117`."""
    origin: str
    """The name for people: package version, `git describe`, file name."""


class ImageSizes(Frozen):
    """Sizes in bytes."""

    bzimage: int | None
    """None: there is none, since vmlinux is the program (ARCH=um)."""
    vmlinux: int
    text: int
    """Machine code of the running kernel, without padding."""

    def __str__(self) -> str:
        """Return the size of what is started, then those that a tuner looks at, for people."""
        started = "" if self.bzimage is None else f"bzImage {self.bzimage:,} B, "
        return f"{started}vmlinux {self.vmlinux:,} B, .text {self.text:,} B"


class ImageRecord(Frozen):
    """Provenance of an image; everything needed to build it again."""

    key: Sha256
    """Content hash of source, recipe without command line, base configuration and toolchain."""
    source: SourceIdentity
    recipe: Recipe
    base: str
    arch: ArchName = "x86_64"
    toolchain: ToolchainIdentity
    release: str
    """`uname -r` of the kernel."""
    sizes: ImageSizes
    build_seconds: float
    steps: int
    """Number of files that the build made: progress bars count them."""
    make: tuple[str, ...]
    """The arguments of the make command that built it, without -j and O=."""
    environment: dict[str, str]
    """The environment variables set for it."""
    inputs: dict[str, str] = {}
    """By name: SHA-256 of each file that `@NAME@` stands for in `make` and `environment`, or of everything that decides
    it.
    """
    config_sha256: str
    kdyno: str
    """Version of kdyno that built it."""
    patches: tuple[str, ...] = ()
    """SHA-256 of each patch, in order; for ARCH=um that of the benchmarks comes first."""
    facts: tuple[str, ...] = ()
    """Other facts that decided it: the meaning of `native` where it was built."""
    needs: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo that a machine must have: without one of them the kernel meets an illegal instruction."""
    files: dict[ImageFile, Sha256] = {}
    """SHA-256 of each file of the image."""
    objects: dict[str, int] = {}
    """By compiler: the number of its objects, if ccd stood in for it and recorded that."""
    banner: str = ""
    """A built kernel's own description, who built it and when."""
    modules: tuple[str, ...] = ()
    """The kept modules of a built kernel, each after those that it needs."""
    notes: tuple[str, ...] = ()
    """Notes for a reader: patches that were in already, lines of the base that this source doesn't accept."""


ImagesByVariant = dict[str, tuple[ImageRecord, ...]]
"""The document that `kdyno build --json` prints."""


class Image(Frozen):
    """A finished image on disk."""

    directory: Path
    record: ImageRecord

    @property
    def program(self) -> Path:
        """Return the file that is started: bzImage; vmlinux for ARCH=um."""
        return self.directory / ("bzImage" if self.record.sizes.bzimage is not None else "vmlinux")

    @property
    def vmlinux(self) -> Path:
        return self.directory / "vmlinux"

    @property
    def config(self) -> Path:
        return self.directory / "config"

    @property
    def symbols(self) -> Path:
        return self.directory / "System.map"

    @property
    def modules(self) -> Path | None:
        """Return the tar archive of the modules that may have to be loaded before the agent starts; None if there is
        none.
        """
        return self.directory / "modules.tar" if self.record.modules else None

    @property
    def given_symbols(self) -> Path | None:
        """Return System.map, if vmlinux has no symbols of its own; None otherwise."""
        return self.symbols if self.is_given and "System.map" in self.record.files else None

    @property
    def is_given(self) -> bool:
        """Return whether the kernel was built elsewhere and given to kdyno."""
        return self.record.recipe.image is not None
