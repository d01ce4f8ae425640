"""Headers that choose the compiler of their kernel: lines at the start of the Makefile from which modules are built.

Debian's own headers do it for gcc. Without these lines make takes gcc for any kernel, and DKMS whichever clang there
is.
"""

from __future__ import annotations

from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.kernel.toolchain import ToolchainIdentity

MOST_MAKEFILE = 10_000_000
GCC_LINES = """\
# Written by kdyno ship: modules are compiled by the compiler of this kernel, unless CC= names another one.
ifneq ($(origin CC),command line)
override CC := gcc-{major}
endif
"""
CLANG_LINES = """\
# Written by kdyno ship: modules are compiled by the compiler of this kernel, unless LLVM= or CC= names another one.
# DKMS names clang and ld.lld: these are taken for those of this kernel.
ifeq ($(origin LLVM),undefined)
export LLVM := -{major}
endif
MAKEOVERRIDES := $(patsubst LD=ld.lld,LD=ld.lld-{major},$(patsubst CC=clang,CC=clang-{major},$(MAKEOVERRIDES)))
ifeq ($(origin CC) $(CC),command line clang)
override CC := clang-{major}
endif
ifeq ($(origin LD) $(LD),command line ld.lld)
override LD := ld.lld-{major}
endif
"""
"""For Debian, where the name of a compiler has its version."""
ONLY_CLANG_LINES = """\
# Written by kdyno ship: modules are compiled by clang, as this kernel was, unless LLVM= is given.
ifeq ($(origin LLVM),undefined)
export LLVM := 1
endif
"""
"""For distributions that have one version of a compiler."""


def choose_compiler(source: Path, compiler: ToolchainIdentity, *, has_versions: bool) -> None:
    """Let the Makefile in this directory choose the compiler. `has_versions`: programs are named `clang-19`."""
    if compiler.family == "clang":
        lines = CLANG_LINES if has_versions else ONLY_CLANG_LINES
    else:
        lines = GCC_LINES if has_versions else ""
    makefile = source / "Makefile"
    text = read_whole(makefile, MOST_MAKEFILE)
    makefile.write_bytes(lines.format(major=major_version(compiler)).encode() + text)


def major_version(compiler: ToolchainIdentity) -> str:
    return compiler.version.partition(".")[0]
