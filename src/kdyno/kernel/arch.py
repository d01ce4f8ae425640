"""The architectures that kernels are built for: what Kbuild calls them, what it makes, and what is started of that.

A kernel for `um` (User-Mode Linux) is a program of this host: Documentation/virt/uml/ of the kernel. It runs the
benchmarks of data/paths on itself; paths.py puts them into the source.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from kdyno.kernel.image import ArchName, ImageFile
from kdyno.kernel.toolchain import Toolchain

Driver = Literal["linker", "compiler"]


@dataclass(frozen=True)
class Arch:
    """One architecture."""

    name: ArchName
    """As `make ARCH=` takes it."""
    source: str
    """Its directory in arch/ (SRCARCH)."""
    symbol: str
    """The Kconfig symbol that its configurations have, and those of other architectures lack."""
    base: str
    """The base configuration, where none is named."""
    target: str
    """The target of make that gives the file that is started."""
    program: ImageFile
    """The file of an image that is started."""
    files: Mapping[ImageFile, str]
    """By the name in an image: the path in the object directory."""
    linked_by: Driver
    """The program that Kbuild calls for the last link (scripts/link-vmlinux.sh)."""
    words: Mapping[str, tuple[str, ...]]
    """By the compiler's family: words of make beside ARCH."""
    kcflags: tuple[str, ...] = ()
    """Flags of its own, before those of a recipe."""

    @property
    def is_packed(self) -> bool:
        """Return whether what is started unpacks itself."""
        return self.program == "bzImage"

    @property
    def linker_script(self) -> str:
        """Return the path of the linker script in the object directory."""
        return f"arch/{self.source}/kernel/vmlinux.lds"

    def make(self, toolchain: Toolchain) -> tuple[str, ...]:
        """Return the words that name it for make."""
        return (f"ARCH={self.name}", *self.words.get(toolchain.identity.family, ()))

    def base_for(self, config: str) -> str:
        """Return the base configuration for a kernel of this architecture: the one that is named, unless that is what
        another architecture starts from.
        """
        return self.base if any(config == other.base for other in ARCHES.values()) else config

    def linker(self, toolchain: Toolchain) -> str:
        """Return the program that makes the last link; compilers call `ld` unless they are told another."""
        return toolchain.linker if self.linked_by == "linker" else "ld"


_EVERYWHERE: Mapping[ImageFile, str] = {"vmlinux": "vmlinux", "System.map": "System.map", "config": ".config"}

X86_64 = Arch(
    name="x86_64",
    source="x86",
    symbol="X86",
    base="dyno",
    target="bzImage",
    program="bzImage",
    files={"bzImage": "arch/x86/boot/bzImage", **_EVERYWHERE},
    linked_by="linker",
    words={},
)
UM = Arch(
    name="um",
    source="um",
    symbol="UML",
    base="paths",
    target="linux",
    program="vmlinux",
    files=_EVERYWHERE,
    linked_by="compiler",
    # scripts/Makefile.clang knows no target for um on x86_64, but one for um on x86, which is x86_64 too. llvm-objcopy
    # 19 refuses the static program.
    words={"gcc": ("SUBARCH=x86_64",), "clang": ("SUBARCH=x86", "OBJCOPY=objcopy")},
    # arch/um/Makefile has -mcmodel=large, by which each call is an indirect one through a register; the program lies
    # below 2 GB. The others are those of arch/x86/Makefile: code for UML should be code for x86.
    kcflags=("-mcmodel=small", "-mno-red-zone", "-mno-mmx", "-mno-sse", "-mno-sse2", "-mno-3dnow", "-mno-avx"),
)
ARCHES: Mapping[ArchName, Arch] = {arch.name: arch for arch in (X86_64, UM)}
