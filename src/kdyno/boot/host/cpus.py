"""Sets of CPUs as the kernel writes them: lists (`0-3,8`) and masks (`ff,00000000`)."""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path

from kdyno.boot.host import files

MOST_CPUS = 8192
"""The largest NR_CPUS of Linux on x86; a list with a higher number is invalid."""


def parse_list(text: str) -> frozenset[int]:
    """Parse `0-3,8` as {0, 1, 2, 3, 8}; an invalid list is empty."""
    cpus: set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        ends = re.fullmatch(r"([0-9]{1,5})(?:-([0-9]{1,5}))?", part)
        if ends is None or int(ends[2] or ends[1]) >= MOST_CPUS:
            return frozenset()
        cpus.update(range(int(ends[1]), int(ends[2] or ends[1]) + 1))
    return frozenset(cpus)


def format_list(cpus: Collection[int]) -> str:
    """Format {0, 1, 2, 3, 8} as `0-3,8`."""
    runs: list[list[int]] = []
    for cpu in sorted(cpus):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def format_mask(cpus: Collection[int]) -> str:
    """Format {0, 1, 33} as `2,00000003`: words of 32 bits, the highest first."""
    digits = f"{sum(1 << cpu for cpu in cpus):x}"
    head = len(digits) % 8
    words = [digits[:head]] if head else []
    return ",".join(words + [digits[at : at + 8] for at in range(head, len(digits), 8)])


def same_list(text: str) -> str:
    """Return a list in canonical form, for comparisons; an invalid list is unchanged."""
    return format_list(parse_list(text)) or text


def mask_as_list(text: str) -> str:
    """Return a mask as a list, for comparisons; an invalid mask is unchanged."""
    digits = text.replace(",", "")
    if not re.fullmatch(r"[0-9a-fA-F]{1,2048}", digits):
        return text
    mask = int(digits, 16)
    return format_list([cpu for cpu in range(mask.bit_length()) if mask >> cpu & 1])


def isolated(root: Path) -> frozenset[int]:
    """Return the CPUs that the scheduler doesn't use (isolcpus=)."""
    return parse_list(files.text(root / "sys/devices/system/cpu/isolated") or "")


def housekeeping(root: Path) -> frozenset[int]:
    """Return the CPUs for interrupts: online and not isolated."""
    return parse_list(files.text(root / "sys/devices/system/cpu/online") or "") - isolated(root)
