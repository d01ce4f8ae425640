"""The files that belong to a bzImage, at their places: its configuration, its symbols, its modules.

Distributions have two layouts. In one, `config-RELEASE` and `System.map-RELEASE` lie next to `vmlinuz-RELEASE` in
/boot. In the other, all lie in /usr/lib/modules/RELEASE, and the machine starts a copy of the kernel in /boot.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from kdyno.base.files import read_whole
from kdyno.kernel.knobs.kconfig import MOST_BYTES

BUILD_TREE = ("arch", "x86", "boot", "bzImage")
MODULES = ("lib/modules", "usr/lib/modules")


def config_of(kernel: Path) -> Path | None:
    """Return the kernel's configuration, or .config of the build tree; None if there is none."""
    candidates = list(_places(kernel, "config"))
    if kernel.parts[-len(BUILD_TREE) :] == BUILD_TREE:
        config = kernel.parents[len(BUILD_TREE) - 1] / ".config"
        # One that was changed after the build says nothing about the kernel.
        if config.is_file() and config.stat().st_mtime <= kernel.stat().st_mtime:
            candidates.append(config)
    return next((path for path in candidates if _is_config(path)), None)


def system_maps_of(kernel: Path) -> list[Path]:
    """Return the places where the kernel's System.map may be, the nearest first."""
    return list(_places(kernel, "System.map"))


def module_directory(kernel: Path, release: str) -> Path | None:
    """Return the directory with the kernel's modules; None if there is none."""
    return next((place for place in _module_directories(kernel, release) if place.is_dir()), None)


def _places(kernel: Path, name: str) -> Iterator[Path]:
    for path in dict.fromkeys((kernel, kernel.resolve())):
        _, dash, release = path.name.partition("-")
        yield path.with_name(f"{name}-{release}" if dash else name)
        if dash:
            yield from (directory / name for directory in _module_directories(path, release))


def _module_directories(kernel: Path, release: str) -> list[Path]:
    own = kernel.resolve().parent
    return [*([own] if own.name == release else []), *(own.parent / below / release for below in MODULES)]


def _is_config(path: Path) -> bool:
    """Return whether it is a kernel configuration: many other files are called `config`."""
    try:
        return b"\nCONFIG_X86=y\n" in read_whole(path, MOST_BYTES)
    except OSError:
        return False
