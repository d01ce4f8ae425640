"""Kernel parameters that a running kernel accepts, too: their files and values.

Sources: Documentation/admin-guide/kernel-parameters.txt, admin-guide/mm/transhuge.rst, admin-guide/pm/cpufreq.rst. No
kernel has the parameter `block.DISK.SETTING=`: it represents a file of Documentation/block/queue-sysfs.rst.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.boot.host import files
from kdyno.boot.host.knobs import GOVERNORS, QUEUES, SYSCTLS, THP, THP_SIZES

SYSCTL = re.compile(r"[A-Za-z0-9_-]{1,64}(?:[./][A-Za-z0-9_-]{1,64}){1,5}")
BLOCK = re.compile(r"([A-Za-z0-9_-]{1,32})\.(scheduler|read_ahead_kb)")
SIZE = re.compile(r"(\d{1,6})([KMG]?)", re.IGNORECASE)
KIB = {"": 1 / 1024, "K": 1, "M": 1024, "G": 1024 * 1024}
THP_MODES = ("always", "inherit", "madvise", "never")


class NeedsBoot(UserError):
    message = "`{word}` cannot be set on a running kernel"
    hint = (
        "a machine of type `local` supports transparent_hugepage=, thp_anon=, sysctl.NAME=, block.DISK.SETTING= and "
        'cpufreq.default_governor=; for all other parameters set type = "qemu" in [machine]'
    )


class HostLacks(UserError):
    message = "`{word}` is not available on this host: {why}"
    hint = "{way_out}"


def values_of(words: Iterable[str], root: Path = Path("/")) -> dict[str, str]:
    """Return the values to write for these words by file below the root, in order. Raises NeedsBoot and HostLacks."""
    values: dict[str, str] = {}
    for word in words:
        name, _, value = word.partition("=")
        values |= _values_of(word, name, value, root)
    if f"{THP}/enabled" in values and not any(path.startswith(f"{THP}/hugepages-") for path in values):
        values |= _sizes_at_boot(root)
    return values


def _values_of(word: str, name: str, value: str, root: Path) -> dict[str, str]:
    if name == "transparent_hugepage":
        path = f"{THP}/enabled"
        _require(
            root / path,
            word,
            "this kernel has no transparent huge pages",
            "measure on a kernel with CONFIG_TRANSPARENT_HUGEPAGE",
        )
        return {path: value}
    if name == "thp_anon":
        return _sizes(word, value, root)
    if name == "cpufreq.default_governor":
        policies = files.matching(root, GOVERNORS)
        if not policies:
            raise HostLacks(word=word, why="no CPU here lets the kernel choose its frequency", way_out="remove it")
        return {path.relative_to(root).as_posix(): value for path in policies}
    if name.startswith("sysctl.") and SYSCTL.fullmatch(setting := name.removeprefix("sysctl.")):
        path = f"{SYSCTLS}/{setting.replace('.', '/')}"
        _require(root / path, word, f"/{path} does not exist", "`sysctl -a` lists the settings")
        return {path: value}
    if name.startswith("block.") and (match := BLOCK.fullmatch(name.removeprefix("block."))):
        return _disk_values(word, match[1], match[2], value, root)
    raise NeedsBoot(word=word)


def _disk_values(word: str, disk: str, setting: str, value: str, root: Path) -> dict[str, str]:
    path = f"{QUEUES.replace('*', disk)}/{setting}"
    disks = ", ".join(place.parent.name for place in files.matching(root, QUEUES))
    _require(root / path, word, f"/{path} does not exist", f"disks here: {disks or 'none'}")
    if setting == "scheduler":
        known = (files.text(root / path) or "").replace("[", "").replace("]", "").split()
        if value not in known:
            raise HostLacks(word=word, why=f"{disk} has no {value}", way_out=f"schedulers here: {', '.join(known)}")
    return {path: value}


def _require(path: Path, word: str, why: str, way_out: str) -> None:
    if not path.exists():
        raise HostLacks(word=word, why=why, way_out=way_out)


def _sizes(word: str, value: str, root: Path) -> dict[str, str]:
    """Parse `64K,128K:always;2M:inherit`; the other sizes get `never`, as at boot."""
    paths = {_kib(path): path for path in files.matching(root, f"{THP_SIZES}/enabled")}
    if not paths:
        raise HostLacks(
            word=word,
            why="this kernel has no huge pages of several sizes",
            way_out="use Linux 6.8 or newer",
        )
    modes = dict.fromkeys(paths, "never")
    for part in value.split(";"):
        sizes, _, mode = part.rpartition(":")
        if mode not in THP_MODES or not sizes:
            raise HostLacks(word=word, why=f"{part!r} is not SIZE:MODE", way_out=f"modes: {', '.join(THP_MODES)}")
        for size in sizes.split(","):
            match = SIZE.fullmatch(size)
            kib = int(int(match[1]) * KIB[match[2].upper()]) if match else 0
            if kib not in paths:
                known = ", ".join(f"{kib}K" for kib in sorted(paths))
                raise HostLacks(word=word, why=f"it has no huge pages of {size}", way_out=f"sizes here: {known}")
            modes[kib] = mode
    return {path.relative_to(root).as_posix(): modes[kib] for kib, path in paths.items()}


def _sizes_at_boot(root: Path) -> dict[str, str]:
    """Return the modes of a boot without parameters: the largest size follows `enabled`, the others are unused."""
    largest = files.number(root / THP / "hpage_pmd_size") or 0
    paths = files.matching(root, f"{THP_SIZES}/enabled")
    return {path.relative_to(root).as_posix(): "inherit" if _kib(path) * 1024 == largest else "never" for path in paths}


def _kib(path: Path) -> int:
    """Return the size in the name of a file, in KiB: 64 of `hugepages-64kB/enabled`."""
    return int(path.parent.name.removeprefix("hugepages-").removesuffix("kB"))
