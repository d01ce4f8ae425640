"""Programs of this host for a guest: each as it is here, with the libraries that it is linked with."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Annotated

from pydantic import Field

from kdyno.errors import UserError
from kdyno.machine.initramfs import Entry, directory, file
from kdyno.packages import install_command, requirements
from kdyno.process import attempt

ProgramName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,79}$")]

LOADER = "/lib64/ld-linux-x86-64.so.2"
PLACES = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Users' own PATHs often lack sbin."""
IS_STATIC = 1
"""What the loader's --verify ends with where there is nothing to load."""
ELF_HEADER = 64
"""Bytes."""
ELF64, X86_64 = b"\x7fELF\x02", (62).to_bytes(2, "little")
"""How the header begins, and what it has in its bytes 18 and 19."""


class NoSuchProgram(UserError):
    message = "a guest shall have {program}, which this host hasn't ({places})"
    hint = "{way_out}"


class ProgramUnfit(UserError):
    message = "{program} can't go into a guest: {why}"
    hint = "name a program for x86-64 whose libraries are all installed; a script needs its interpreter, too"


def gathered(names: Iterable[str]) -> dict[str, bytes]:
    """What a guest gets, by its place there without the first `/`: programs in bin, libraries where they are here.

    Raises NoSuchProgram and ProgramUnfit.
    """
    content: dict[str, bytes] = {}
    for name in names:
        program = _find(name)
        content[f"bin/{name}"] = program.read_bytes()
        for library in _libraries(program):
            content[str(library).lstrip("/")] = library.read_bytes()
    return content


def program_entries(content: Mapping[str, bytes]) -> list[Entry]:
    """The files, and the directories that they need and a guest hasn't."""
    above = {str(place) for name in content for place in PurePosixPath(name).parents} - {".", "bin"}
    return [*map(directory, sorted(above)), *(file(name, data) for name, data in content.items())]


def digests(content: Mapping[str, bytes]) -> dict[str, str]:
    """The SHA-256 of each."""
    return {name: hashlib.sha256(data).hexdigest() for name, data in sorted(content.items())}


def _find(name: str) -> Path:
    path = shutil.which(name, path=PLACES)
    if path is None:
        package = next((row.package for row in requirements() if row.program == name), None)
        way_out = install_command(package) if package else "install the Debian package that has it, or leave it out"
        raise NoSuchProgram(program=name, places=PLACES, way_out=way_out)
    return Path(path)


def _libraries(program: Path) -> list[Path]:
    """What the host's loader would load for a program; it reads the program, and doesn't run it."""
    with program.open("rb") as binary:
        header = binary.read(ELF_HEADER)
    if len(header) < ELF_HEADER or not header.startswith(ELF64) or header[18:20] != X86_64:
        raise ProgramUnfit(program=program, why="it is no ELF file for x86-64")
    kind = attempt([LOADER, "--verify", program]).returncode
    if kind == IS_STATIC:
        return []
    done = attempt([LOADER, "--list", program])
    if done.returncode:
        raise ProgramUnfit(program=program, why=done.stderr.strip()[-300:] or "the loader can't read it")
    return listed(done.stdout, program)


def listed(text: str, program: Path) -> list[Path]:
    """The files that the loader lists: `NAME => PATH (ADDRESS)`, or `PATH (ADDRESS)`. Raises ProgramUnfit."""
    paths = []
    for line in text.splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        path = (rest if arrow else name).rpartition(" (")[0]
        if arrow and not path:
            raise ProgramUnfit(program=program, why=f"its library {name} isn't installed")
        if path.startswith("/"):  # linux-vdso.so.1 is the kernel's
            paths.append(Path(path))
    return paths
