"""The mappings that device-mapper has, as /sys and dmsetup tell them, and making one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base import process
from kdyno.base.errors import InfrastructureError
from kdyno.boot.blockmap.table import Mapper, parse_targets
from kdyno.boot.host import files


class MappingFailed(InfrastructureError):
    message = "device-mapper didn't take the table: {output}"
    hint = "{mend}"


class DiskTaken(MappingFailed):
    hint = (
        "the kernel gives device-mapper no disk that is mounted, unless the disk is device-mapper's own (LVM): print "
        "the table, unmount the disk, and give the table to `dmsetup create`"
    )


def names(root: Path) -> dict[str, str]:
    """The mappings' names, by their devices (MAJOR:MINOR)."""
    pairs = {
        files.text(directory / "dev"): files.text(directory / "dm/name")
        for directory in files.matching(root / "sys/block", "dm-*")
    }
    return {device: name or "?" for device, name in pairs.items() if device}


def mappers(root: Path) -> dict[str, Mapper]:
    """The mappings that are there, by their devices. Needs root; raises ToolMissing and ToolFailed."""
    return {device: Mapper(name, parse_targets(_table(device))) for device, name in names(root).items()}


def create(name: str, table: Sequence[str]) -> None:
    """Make a mapping. Raises MappingFailed and DiskTaken, and what `process.attempt` raises."""
    done = process.attempt(["dmsetup", "create", name], stdin="".join(f"{line}\n" for line in table))
    if done.returncode != 0:
        output = " ".join((done.stderr or done.stdout).split()) or "dmsetup doesn't say why"
        if "busy" in output.lower():
            raise DiskTaken(output=output)
        raise MappingFailed(output=output, mend="the kernel's log (`sudo dmesg`) may say more")


def _table(device: str) -> str:
    major, _, minor = device.partition(":")
    return process.output(["dmsetup", "table", "--major", major, "--minor", minor])
