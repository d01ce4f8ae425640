"""Listing the mappings of device-mapper by /sys and dmsetup, and creating one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.boot.blockmap.table import Mapper, parse_targets
from kdyno.boot.host import files


class MappingFailed(InfrastructureError):
    message = "device-mapper refused the table: {output}"
    hint = "{mend}"


class DiskTaken(MappingFailed):
    hint = (
        "print the table, unmount the disk, and pass the table to `dmsetup create`: the kernel refuses mounted "
        "disks, except those of device-mapper itself (LVM)"
    )


def names(root: Path) -> dict[str, str]:
    """Return the names of mappings by device (MAJOR:MINOR)."""
    pairs = {
        files.text(directory / "dev"): files.text(directory / "dm/name")
        for directory in files.matching(root / "sys/block", "dm-*")
    }
    return {device: name or "?" for device, name in pairs.items() if device}


def mappers(root: Path) -> dict[str, Mapper]:
    """Return the existing mappings by device. Requires root. Raises ToolMissing and ToolFailed."""
    return {device: Mapper(name, parse_targets(_table(device))) for device, name in names(root).items()}


def create(name: str, table: Sequence[str]) -> None:
    """Create a mapping. Raises MappingFailed and DiskTaken, and what `process.attempt` raises."""
    result = process.attempt(["dmsetup", "create", name], stdin="".join(f"{line}\n" for line in table))
    if result.returncode != 0:
        output = " ".join((result.stderr or result.stdout).split()) or "dmsetup printed no reason"
        if "busy" in output.lower():
            raise DiskTaken(output=output)
        raise MappingFailed(output=output, mend="read the log of the kernel (`sudo dmesg`)")


def _table(device: str) -> str:
    major, _, minor = device.partition(":")
    return process.output(["dmsetup", "table", "--major", major, "--minor", minor])
