"""The recipe: everything that makes a kernel what it is, and how it is started."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kdyno.frozen import Frozen
from kdyno.kernel.delegation.plan_file import PlanOrPath

KconfigValue = str | int | bool


class Recipe(Frozen):
    """What a variant is made of. The defaults are the kernel's own; a knob left alone changes nothing."""

    source: str | None = None
    """The kernel source, where it is to be another than the experiment's."""
    config: str | None = None
    """The base configuration, where it is to be another than the experiment's."""
    toolchain: Annotated[str, Field(pattern=r"^(gcc|clang)(-\d+)?$")] = "gcc"
    """The compiler by name: `gcc`, `gcc-12`, `clang`, `clang-19`. clang brings the whole LLVM (ld.lld, llvm-ar ...)."""
    opt: Literal["O1", "O2", "O3", "Os"] | None = None
    """Optimisation level; None leaves what Kconfig chose."""
    march: str | None = None
    """The CPU that kernel code is compiled for: an ISA level or a family as the compiler spells it, `native`, or `auto`
    for the best that the compiler knows of this host's. `patch:NAME` goes through Kconfig instead of KCFLAGS."""
    mtune: str | None = None
    """-mtune for kernel code, as the compiler spells it, where it is to be another than `march` brings along."""
    lto: Literal["none", "thin", "full"] = "none"
    """clang's link-time optimisation, through Kconfig."""
    lines: bool = False
    """Line tables in vmlinux, for profiles: which source line and which inlined function an instruction is of."""
    delegation: PlanOrPath | None = None
    """Which compiler, flags and way for which files: a delegation plan, or the path of one. None: one for all."""
    layout_seed: Annotated[int, Field(ge=0, lt=2**63)] | None = None
    """Seed of the link order: how the kernel's functions lie, and how aligned. None: as the linker has them."""
    order: str | None = None
    """A file of functions that come first in the kernel's text, in its order. The rest follows as the linker has them,
    or as the seed has them if there is one."""
    kconfig: dict[str, KconfigValue] = Field(default_factory=dict)
    """Kconfig symbols without CONFIG_ and the value each must have: true/false, "y"/"m"/"n", a number or a text."""
    fragments: tuple[str, ...] = ()
    """Files of Kconfig fragments, merged in order after `kconfig`."""
    patches: tuple[str, ...] = ()
    """Files of patches (git apply semantics, -p1), applied in order to a private copy of the source."""
    cmdline: tuple[str, ...] = ()
    """Words added to the kernel command line. They don't change the image."""


class ProfileSettings(Frozen):
    """How what was trained is made use of."""

    hot: Annotated[int, Field(ge=1)] = 1000
    """Executions, in a profile of 1,000,000,000 instructions, from which on code is hot."""
    cold: Annotated[int, Field(ge=0)] = 20
    """Executions up to which code is cold, though it ran."""
    families: Annotated[tuple[str, ...], Field(min_length=1)] = ("znver4", "sapphirerapids")
    """CPU families whose caches an order is made for: each counts the same."""
    guard: Annotated[float, Field(gt=0, lt=1)] | None = 0.01
    """No benchmark may lose more than this, as a fraction, by an order; None: only the mean counts."""


class Training(Frozen):
    """An input of a build that is made of boots: which variant's image, under what workload and seeds, is recorded."""

    variant: str
    """The variant that is booted, by its name in the experiment."""
    tests: tuple[str, ...] = ("lmbench",)
    params: dict[str, dict[str, int]] = {}
    """By test: parameters that differ from the test's defaults."""
    seeds: Annotated[tuple[Annotated[int, Field(ge=0, lt=2**31)], ...], Field(min_length=1)] = (1,)
    """One boot for each."""
    settings: ProfileSettings = ProfileSettings()
    recipe: Recipe | None = None
    """What the variant is made of, with source and configuration named: filled in when the experiment is loaded."""
