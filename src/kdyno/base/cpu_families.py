"""The table of x86-64 ISA levels and CPU families: data/march.toml, checked."""

from __future__ import annotations

import tomllib
from functools import cache
from importlib.resources import files
from typing import Annotated

from pydantic import Field, TypeAdapter

from kdyno.base.frozen import Frozen

COMPILERS = ("gcc", "clang")
GENERATIONS = (
    "avx",
    "avx2",
    "sha_ni",
    "vaes",
    "gfni",
    "avx_vnni",
    "serialize",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_tile",
)
"""Flags of /proc/cpuinfo that came with a generation of CPUs: older CPUs can't show them."""
NATIVE = ("native", "nativeintel", "nativeamd")
"""This host's CPU, as kernel patches call it."""
Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")]


class March(Frozen):
    """One name that -march can be given: an ISA level or a CPU family."""

    name: str
    title: str
    """The name that people use."""
    vendor: str | None = None
    """The vendor; None: this is an ISA level."""
    level: Annotated[int, Field(ge=1, le=4)]
    """The highest N of x86-64-vN whose instructions this CPU has."""
    after: str | None = None
    """A name for a compiler that doesn't know this one: this CPU has all of its instructions."""
    cpuid: tuple[Annotated[str, Field(pattern=r"^\w+ \d+ \d+(-\d+)?$")], ...] = ()
    """Vendor, family and models, decimal, as in /proc/cpuinfo."""
    told_by: tuple[str, ...] = ()
    """Flags that distinguish it from another family with the same CPUID model."""
    features: tuple[str, ...] = ()
    """The features that compilers use in kernel code, as flags of /proc/cpuinfo."""
    has: tuple[str, ...] | None = None
    """For families: the flags of GENERATIONS that the silicon has; None: not known."""
    flags: tuple[str, ...] = ()
    """For ISA levels: all flags of /proc/cpuinfo that the level adds to the one below it (System V psABI)."""
    gcc: Version | None = None
    """The first gcc that knows it; None: no gcc does."""
    clang: Version | None = None
    gcc_until: Version | None = None
    """The last major release of gcc that knows it; None: the newest does."""
    clang_until: Version | None = None
    aliases: tuple[str, ...] = ()
    """Other names that a compiler takes for the same CPU."""
    spellings: tuple[str, ...] = ()
    """Names that people and kernel patches use, and no compiler does."""

    @property
    def is_level(self) -> bool:
        return self.vendor is None

    @property
    def symbol(self) -> str:
        """The Kconfig symbol, without CONFIG_: `MARCH_ZNVER4`."""
        return f"MARCH_{self.name.upper().replace('-', '_')}"

    @property
    def whole_title(self) -> str:
        """The title with the vendor: `AMD Zen 4 (Ryzen 7000, EPYC 9004)`."""
        return f"{self.vendor} {self.title}" if self.vendor else self.title

    @property
    def level_name(self) -> str:
        """The name of the ISA level: `x86-64-v3`."""
        return level_name(self.level)

    @property
    def needed(self) -> str:
        """The compilers that know it, in words: `gcc 12.3 or clang 16`."""
        return " or ".join(releases for compiler in COMPILERS if (releases := self._releases(compiler)))

    def _releases(self, compiler: str) -> str:
        first, last = getattr(self, compiler), getattr(self, f"{compiler}_until")
        if first is None:
            return ""
        return f"{compiler} {first}" + (f" to {last}" if last else "")


Marches = tuple[March, ...]
"""The document that `kdyno march list --json` prints."""


def level_name(level: int) -> str:
    """Return the name of a level; that of the first one is `x86-64`."""
    return "x86-64" if level == 1 else f"x86-64-v{level}"


@cache
def table() -> dict[str, March]:
    """Return all rows, by name, in the order of the file: levels, then families by vendor, older ones first."""
    text = files("kdyno").joinpath("data/march.toml").read_text(encoding="utf-8")
    rows = {name: {"name": name, **row} for name, row in tomllib.loads(text).items()}
    return TypeAdapter(dict[str, March]).validate_python(rows)


def families() -> list[March]:
    return [row for row in table().values() if not row.is_level]


def levels() -> list[March]:
    """Return the four ISA levels, lowest first."""
    return [row for row in table().values() if row.is_level]


def compiler_names(name: str) -> list[str]:
    """Return the compiler names for a name as people write it: `zen4`, `MZEN4`, `GENERIC_CPU3`, `x86-64_v3`; empty if
    there are none. Pure.

    Kernel patches put an M before their symbols; case, dashes and underscores don't matter.
    """
    plain = _plain(name.removeprefix("CONFIG_"))
    for wanted in (plain, plain.removeprefix("m")):
        if wanted in NATIVE:
            return ["native"]
        rows = [row.name for row in table().values() if wanted in map(_plain, (row.name, *row.aliases, *row.spellings))]
        if rows:
            return rows
    return []


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum() or letter == "+")


def find(name: str) -> March | None:
    """Return the row of this name or alias; None if there is none."""
    return table().get(name) or next((row for row in table().values() if name in row.aliases), None)
