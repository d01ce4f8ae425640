"""Toolchains: which compiler is meant, what exactly it is, and the words that make Kbuild use it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from kdyno.base import process
from kdyno.base.digests import file_digest, stat_signature
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.frozen import Frozen, digest
from kdyno.base.packages import install_advice
from kdyno.base.state import State

NAME = re.compile(r"(gcc|clang)(-\d+)?")
LLVM_TOOLS = ("ld.lld", "llvm-ar", "llvm-nm", "llvm-objcopy", "llvm-strip", "llvm-readelf")
"""Programs that Kbuild calls besides clang when LLVM is set; see `ifneq ($(LLVM),)` in the kernel's Makefile."""


class CompilerMissing(UserError):
    message = "there is no {name} here; installed: {installed}"
    hint = "{way}"


class LlvmToolsMissing(UserError):
    message = "{name} is here, but {missing} of its LLVM is not"
    hint = "{way}"


class CompilerUnclear(InfrastructureError):
    message = "the version of {name} cannot be determined: it prints `{banner}`"
    hint = "name another compiler; gcc and clang are known"


class ToolchainIdentity(Frozen):
    """A compiler that was found, as it says itself."""

    name: str
    """The requested name: `gcc-12`."""
    family: str
    """`gcc` or `clang`."""
    version: str
    """`12.2.0`."""
    banner: str
    """First line of --version."""
    digest: str
    """SHA-256 of the compiler's and the linker's files: two builds of one version differ here."""


class Toolchain(Frozen):
    """A compiler that was found, and how to use it."""

    identity: ToolchainIdentity
    command: str
    """The compiler itself, to ask it things."""
    make: tuple[str, ...]
    """Words for every make: `CC=gcc-12`, or `LLVM=-19`."""

    @property
    def is_clang(self) -> bool:
        return self.identity.family == "clang"

    @property
    def linker(self) -> str:
        """Return the linker that Kbuild calls for these words."""
        return f"ld.lld{_parts(self.identity.name)[1]}" if self.is_clang else "ld"


def find(name: str, state: State) -> Toolchain:
    """Find a compiler by name on the PATH."""
    _parts(name)
    path = shutil.which(name)
    if path is None:
        raise CompilerMissing(
            name=name, installed=", ".join(installed()) or "none", way=install_advice(*_packages(name))
        )
    return _look_at(name, os.environ.get("PATH", ""), stat_signature([Path(path).resolve()])[0], state)


@cache
def _look_at(name: str, path: str, signature: str, state: State) -> Toolchain:  # noqa: ARG001
    """Return the compiler's own description. It is asked once, as long as neither it nor the PATH changes."""
    family, suffix = _parts(name)
    binaries = _clang_binaries(name, suffix) if family == "clang" else _gcc_binaries(name)
    banner = process.output([name, "--version"], env={"LC_ALL": "C"}).partition("\n")[0]
    identity = ToolchainIdentity(
        name=name,
        family=family,
        version=_version(name, family, banner),
        banner=banner,
        digest=digest([file_digest(path, state) for path in binaries]),
    )
    words = (f"LLVM={suffix or '1'}",) if family == "clang" else (f"CC={name}",)
    return Toolchain(identity=identity, command=name, make=words)


def installed() -> list[str]:
    """Return the compilers on the PATH."""
    folders = [Path(folder) for folder in os.get_exec_path() if Path(folder).is_dir()]
    return sorted({entry.name for folder in folders for entry in folder.iterdir() if NAME.fullmatch(entry.name)})


def family_of(name: str) -> str:
    """Return `gcc` or `clang` for the name of a compiler. Raises CompilerMissing for any other."""
    return _parts(name)[0]


def _parts(name: str) -> tuple[str, str]:
    match = NAME.fullmatch(name)
    if match is None:
        raise CompilerMissing(name=name, installed=", ".join(installed()) or "none", way=install_advice("gcc"))
    return match[1], match[2] or ""


def _packages(name: str) -> tuple[str, ...]:
    family, suffix = _parts(name)
    return (f"clang{suffix}", f"lld{suffix}", f"llvm{suffix}") if family == "clang" else (name,)


def _version(name: str, family: str, banner: str) -> str:
    if family == "gcc":
        output = process.output([name, "-dumpfullversion", "-dumpversion"]).strip()
        match = re.fullmatch(r"(\d+(?:\.\d+)*)", output)
    else:
        match = re.search(r"clang version (\d+(?:\.\d+)*)", banner)
    if match is None or (family == "gcc" and "clang" in banner):
        raise CompilerUnclear(name=name, banner=banner)
    return match[1]


def _gcc_binaries(name: str) -> list[Path]:
    programs = [shutil.which(name), *(_said_path(name, program) for program in ("cc1", "as", "ld"))]
    return [Path(program).resolve() for program in programs if program]


def _said_path(compiler: str, program: str) -> str | None:
    return shutil.which(process.output([compiler, f"-print-prog-name={program}"]).strip())


def _clang_binaries(name: str, suffix: str) -> list[Path]:
    paths = {tool: shutil.which(f"{tool}{suffix}") for tool in LLVM_TOOLS}
    if missing := [f"{tool}{suffix}" for tool, path in paths.items() if path is None]:
        raise LlvmToolsMissing(name=name, missing=", ".join(missing), way=install_advice(*_packages(name)))
    programs = [shutil.which(name), paths["ld.lld"]]
    binaries = [Path(program).resolve() for program in programs if program]
    return sorted({*binaries, *_llvm_libraries(binaries)})


def _llvm_libraries(binaries: Iterable[Path]) -> set[Path]:
    """Return the shared libraries that hold the code generator: Debian's clang is a thin program in front of
    libLLVM.
    """
    linked = "".join(process.attempt(["ldd", binary]).stdout for binary in binaries)
    return {Path(path).resolve() for path in re.findall(r"=> (/\S*lib(?:LLVM|clang|lld)\S*)", linked)}
