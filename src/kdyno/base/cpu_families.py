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
"""Flags of /proc/cpuinfo that came with a generation of CPUs: older ones can't show them."""
NATIVE = ("native", "nativeintel", "nativeamd")
"""This host's CPU, as kernel patches write it."""
Version = Annotated[str, Field(pattern=r"^\d+(\.\d+)?$")]


class March(Frozen):
    """One name that -march may be given: an ISA level or a CPU family."""

    name: str
    title: str
    """As people call it."""
    vendor: str | None = None
    """None: an ISA level."""
    level: Annotated[int, Field(ge=1, le=4)]
    """The highest N of x86-64-vN whose instructions it has."""
    after: str | None = None
    """A name for a compiler that doesn't know this one: this CPU has all instructions of that."""
    cpuid: tuple[Annotated[str, Field(pattern=r"^\w+ \d+ \d+(-\d+)?$")], ...] = ()
    """Vendor, family and models, decimal, as in /proc/cpuinfo."""
    told_by: tuple[str, ...] = ()
    """Flags that tell it from another family with the same CPUID model."""
    features: tuple[str, ...] = ()
    """What compilers use of it in kernel code, as flags of /proc/cpuinfo."""
    has: tuple[str, ...] | None = None
    """Families: the flags of GENERATIONS that its silicon has; None: not known."""
    flags: tuple[str, ...] = ()
    """ISA levels: all flags of /proc/cpuinfo that the level adds to the one below it (System V psABI)."""
    gcc: Version | None = None
    """First gcc that knows it; None: none does."""
    clang: Version | None = None
    gcc_until: Version | None = None
    """Last major release of gcc that knows it; None: the newest does."""
    clang_until: Version | None = None
    aliases: tuple[str, ...] = ()
    """Other names that a compiler takes for the same."""
    spellings: tuple[str, ...] = ()
    """What people and kernel patches call it, and no compiler does."""

    @property
    def is_level(self) -> bool:
        return self.vendor is None

    @property
    def symbol(self) -> str:
        """Its Kconfig symbol, without CONFIG_: `MARCH_ZNVER4`."""
        return f"MARCH_{self.name.upper().replace('-', '_')}"

    @property
    def whole_title(self) -> str:
        """With the vendor: `AMD Zen 4 (Ryzen 7000, EPYC 9004)`."""
        return f"{self.vendor} {self.title}" if self.vendor else self.title

    @property
    def level_name(self) -> str:
        """The name of its ISA level: `x86-64-v3`."""
        return level_name(self.level)

    @property
    def needed(self) -> str:
        """Which compilers know it, for people: `gcc 12.3 or clang 16`."""
        return " or ".join(releases for compiler in COMPILERS if (releases := self._releases(compiler)))

    def _releases(self, compiler: str) -> str:
        first, last = getattr(self, compiler), getattr(self, f"{compiler}_until")
        if first is None:
            return ""
        return f"{compiler} {first}" + (f" to {last}" if last else "")


def level_name(level: int) -> str:
    """`x86-64` is the first level's."""
    return "x86-64" if level == 1 else f"x86-64-v{level}"


@cache
def table() -> dict[str, March]:
    """All rows, by name, in the order of the file: levels, then families by vendor, older ones first."""
    text = files("kdyno").joinpath("data/march.toml").read_text(encoding="utf-8")
    rows = {name: {"name": name, **row} for name, row in tomllib.loads(text).items()}
    return TypeAdapter(dict[str, March]).validate_python(rows)


def families() -> list[March]:
    return [row for row in table().values() if not row.is_level]


def levels() -> list[March]:
    """Return the four ISA levels, lowest first."""
    return [row for row in table().values() if row.is_level]


def spelled(name: str) -> list[str]:
    """What compilers call what people write so: `zen4`, `MZEN4`, `GENERIC_CPU3`, `x86-64_v3`; else nothing. Pure.

    Kernel patches put an M before their symbols; case, dashes and underscores tell nothing.
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
    """Return the row of this name or alias."""
    return table().get(name) or next((row for row in table().values() if name in row.aliases), None)
