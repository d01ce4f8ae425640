"""The work of a build, guessed from its configuration, until a similar one was built here. Pure.

All figures are of Linux 6.12, for x86_64 unless another architecture is named; each has its source next to it.
"""

from __future__ import annotations

from kdyno.kernel.image import ArchName
from kdyno.kernel.kconfig import Base
from kdyno.kernel.plan import BuildPlan

OPTIONS: dict[ArchName, dict[str, int]] = {
    "x86_64": {
        "dyno": 524,
        "make:tinyconfig": 387,
        "make:allnoconfig": 465,
        "make:defconfig": 1583,
        "make:allyesconfig": 14_520,
    },
    "um": {"paths": 212},
}
"""Options that are y, counted in the final .config: these bases don't show it before they are configured."""

WHOLE = "Automatically generated file"
"""A text in the header of every .config, but not in the output of savedefconfig, which lists only options that aren't
default.
"""

FILES_PER_OPTION: dict[ArchName, float] = {"x86_64": 1.9, "um": 6.4}
"""Files that are compiled for vmlinux and bzImage: 506 with tinyconfig, 696 with allnoconfig, 757 with dyno, 2,875 with
defconfig, 24,300 with allyesconfig (dyno was built, the others were counted with make -n). This line is within 13 % of
each. Modules aren't built, so options that are m don't count. um: 717 files with `paths`, which was built; it has few
options without files."""
BARREN_OPTIONS = 100
"""Options that only say what compiler and architecture can do: no file depends on them. They begin like this."""

LINES_PER_FILE = 1.15
OTHER_LINES = 440
"""Lines of output: dyno has 1,315 for its 757 files; most of the others come from directories without any (AR)."""

SECONDS_PER_FILE = {"gcc": 1.0, "clang": 2.1}
"""Seconds of one core for each compiled file, by compiler family. gcc: dyno with line tables, -O2, without ccache's
help, took gcc 12 about 6.4 minutes on two cores of a cloud machine (Xeon, Emerald Rapids). clang: 13 to 15 minutes
for clang 19, seen on other hosts of that size. Levels and LTO aren't told apart."""
SERIAL_SECONDS = 20.0
"""Configuring and linking, on the same machine; further cores don't help there."""


def options_on(config: str) -> int:
    """Return the number of options that are y in the text of a .config."""
    return sum(line.endswith("=y") for line in config.splitlines())


def options_of(base: Base, arch: ArchName = "x86_64") -> int | None:
    """Return the number of options that are y before anything was configured; None: only configuring tells."""
    if base.kind != "fragment" and WHOLE in base.text:
        return options_on(base.text)
    return OPTIONS[arch].get(base.spec)


def files(options: int, arch: ArchName = "x86_64") -> int:
    """Return the number of files that are compiled with so many options."""
    return round(FILES_PER_OPTION[arch] * max(0, options - BARREN_OPTIONS))


def lines(options: int, arch: ArchName = "x86_64") -> int:
    """Return the number of lines of output of a build with so many options."""
    return lines_of_files(files(options, arch))


def lines_of_files(compiled: int) -> int:
    """Return the number of lines of output of a build that compiles so many files."""
    return round(LINES_PER_FILE * compiled) + OTHER_LINES


def files_of(plan: BuildPlan) -> int | None:
    """Return the number of files that a plan compiles, to the nearest ten: the base's, and those of requested options;
    None: not known.
    """
    options = options_of(plan.base, plan.arch_name)
    if options is None:
        return None
    set_already = set(plan.base.text.splitlines())
    asked = sum(request.value == "y" and f"CONFIG_{request.symbol}=y" not in set_already for request in plan.asks)
    return round(files(options + asked, plan.arch_name), -1)


def seconds(compiled: int, family: str, cores: int) -> float:
    """Return the seconds that compiling so many files, and linking them, takes."""
    return SERIAL_SECONDS + compiled * SECONDS_PER_FILE[family] / cores
