"""lkd: the linker's delegate, which makes a link order of a seed, a file, or both. The program is crates/delegate."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from kdyno.base.errors import InfrastructureError
from kdyno.base.installed import find_program
from kdyno.kernel.arch import Arch
from kdyno.kernel.toolchain import Toolchain

BINARY = "kdyno-delegate"
"""The installed program. Called as `lkd` it is the linker's delegate."""
LINKER_WORD = "LD=lkd"
"""Stands in a plan for the linker's delegate, wherever that is installed."""
DRIVER_WORD = "KDYNO_LINK=lkd"
"""The same for kernels that the compiler links (ARCH=um): their makefiles give the value to the compiler."""
DRIVER_DIRECTORY = "linker"
"""The directory in the build directory where a compiler finds the delegate by the name `ld`."""
FORMAT = "1"
"""The version of lkd's layouts; lkd refuses any other, and raises it with every change. Part of an image's key."""
SCRIPT = ".kdyno-layout.lds"
"""The path of lkd's linker script in the object directory."""
SECTIONS = ".kdyno-sections.jsonl"
"""Beside it: the sections of the functions that compilers called hot or cold."""
SEED, ORDER = "KDYNO_LAYOUT_SEED", "KDYNO_ORDER"
"""The variables that ask lkd for an order: a number, and a file of functions that come first."""
DATA = "KDYNO_DATA_SECTIONS"
"""The variable with names of sections that become part of the kernel's data, with blanks between them."""
LINKER = "KDYNO_LD"
"""The variable that names the linker itself, which makes the last link."""
LTO_LINKER = "KDYNO_LTO_LD"
"""The variable that names the linker of everything else, if that is another: where ld.lld compiles, with lto, and the
compiler makes the last link by `ld` (ARCH=um)."""
LTO_WORDS = "KDYNO_LTO_WORDS"
"""Begins the names of variables whose words lkd adds to the link of vmlinux.o: where ld.lld compiles, with lto."""
HEADER = re.compile(
    r"/\* kdyno layout: format (?P<format>\d+), order (?P<order>[\w.-]+), seed (?P<seed>\w+), \d+ sections; "
    r"placed (?P<placed>\d+) of (?P<listed>\d+), (?P<elsewhere>\d+) without a section; added (?P<added>[\w.* ]+) \*/\n"
)
NONE = "none"


class LayoutNotMade(InfrastructureError):
    message = "vmlinux was linked without the requested layout ({asked}; {made})"
    hint = "see {log}: this kernel's makefiles call the linker in a way that lkd doesn't know"


def find_lkd() -> Path:
    """Return the delegate's binary, which has to be called by the name `lkd`; raises ProgramMissing."""
    return find_program(BINARY, "a layout")


def environment(linker: str) -> dict[str, str]:
    """Return the environment of lkd, besides the requested order."""
    return {"KDYNO_LAYOUT_FORMAT": FORMAT, LINKER: linker}


def lto_words(toolchain: Toolchain, name: str, words: str) -> dict[str, str]:
    """Return the variable that gives the link of vmlinux.o these words; none for linkers that compile nothing."""
    return {f"{LTO_WORDS}_{name.upper()}": words} if toolchain.linker.startswith("ld.lld") else {}


def words(arch: Arch) -> tuple[str, ...]:
    """Return the words of make, as a plan has them, by which Kbuild calls the delegate."""
    return (LINKER_WORD,) if arch.linked_by == "linker" else (LINKER_WORD, DRIVER_WORD)


def make_words(words: Sequence[str], build: Path) -> tuple[str, ...]:
    """Put the delegate's path, a link in the build directory, where the plan has its name."""
    if LINKER_WORD not in words:
        return tuple(words)
    link, directory = build / "lkd", build / DRIVER_DIRECTORY
    if not link.is_symlink():
        link.symlink_to(find_lkd())
    if DRIVER_WORD in words and not directory.is_dir():
        directory.mkdir()
        (directory / "ld").symlink_to(find_lkd())
    placed = {LINKER_WORD: f"LD={link}", DRIVER_WORD: f"KDYNO_LINK=-B{directory}"}
    return tuple(placed.get(word, word) for word in words)


def forget(objects: Path) -> None:
    """Remove what an earlier link left, so that the next one can be checked."""
    for name in (SCRIPT, SECTIONS):
        (objects / name).unlink(missing_ok=True)


def check(objects: Path, environment: Mapping[str, str], log: Path) -> None:
    """Raise LayoutNotMade unless vmlinux was just linked as this environment asks for, if it does."""
    order, seed = environment.get(ORDER), environment.get(SEED)
    if order is None and seed is None and DATA not in environment:
        return
    asked = _layout(FORMAT, Path(order).name if order else NONE, seed or NONE)
    try:
        header = _header(objects)
    except FileNotFoundError:
        raise LayoutNotMade(asked=asked, made="none was made", log=log) from None
    made = _layout(header["format"], header["order"], header["seed"]) if header else "unreadable"
    if made != asked:
        raise LayoutNotMade(asked=asked, made=made, log=log)


def notes(objects: Path) -> tuple[str, ...]:
    """Return notes for a reader on the layout that was just made: which functions of an order it couldn't place."""
    try:
        header = _header(objects)
    except FileNotFoundError:
        return ()
    sentences = []
    if header and (listed := int(header["listed"])):
        placed, elsewhere = int(header["placed"]), int(header["elsewhere"])
        sentences.append(
            f"order: {placed:,} of its {listed:,} functions come first; {listed - placed:,} "
            f"({100 * (listed - placed) / listed:.1f} %) were not placed: {elsewhere:,} have no section of their own "
            f"(assembly code, .init.text), {listed - placed - elsewhere:,} are not in this kernel"
        )
    if header and header["added"] != NONE:
        sentences.append(f"layout: the linker script had no place for {header['added']}; lkd gave them one")
    return tuple(sentences)


def _layout(form: str, order: str, seed: str) -> str:
    return f"format {form}, order {order}, seed {seed}"


def _header(objects: Path) -> re.Match[str] | None:
    """Return the first line of what lkd has left; None if that isn't lkd's. Raise FileNotFoundError."""
    with (objects / SCRIPT).open(encoding="utf-8", errors="replace") as file:
        return HEADER.match(file.readline())
