"""The initramfs of a guest: agent, busybox and job. The same content always has the same bytes.

The format is cpio "newc" of the kernel's Documentation/driver-api/early-userspace/buffer-format.rst.
"""

from __future__ import annotations

import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.installed import find_program
from kdyno.base.packages import install_advice
from kdyno.base.process import output
from kdyno.measure.guest.agent import find_agent
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.loads import LOADS, find_loads, uses_loads


@dataclass(frozen=True)
class InitramfsEntry:
    """A file, directory, symbolic link or device of the initramfs."""

    name: str
    mode: int
    data: bytes = b""
    device: tuple[int, int] = (0, 0)


def directory(name: str) -> InitramfsEntry:
    return InitramfsEntry(name, stat.S_IFDIR | 0o755)


def file(name: str, data: bytes, mode: int = 0o755) -> InitramfsEntry:
    return InitramfsEntry(name, stat.S_IFREG | mode, data)


def link(name: str, target: str) -> InitramfsEntry:
    return InitramfsEntry(name, stat.S_IFLNK | 0o777, target.encode())


def newc(entries: list[InitramfsEntry]) -> bytes:
    """Return the entries as a cpio archive. Every date is 0, so that only content determines the bytes."""
    archive = bytearray()
    for inode, entry in enumerate([*entries, InitramfsEntry("TRAILER!!!", 0)], start=1):
        name = entry.name.encode() + b"\0"
        links = 1 if entry.mode else 0
        fields = (inode, entry.mode, 0, 0, links, 0, len(entry.data), 0, 0, *entry.device, len(name), 0)
        archive += b"070701" + b"".join(b"%08x" % field for field in fields) + name
        archive += b"\0" * (-len(archive) % 4)
        archive += entry.data
        archive += b"\0" * (-len(archive) % 4)
    return bytes(archive)


START = "/kdyno/start"
"""The path of the script that loads modules."""
START_WORD = f"rdinit={START}"
"""The kernel parameter of a guest with this script."""
NOT_LINKED = ("busybox", "init", "linuxrc")
"""Applets that are omitted: a kernel that doesn't find the agent must report it, not start busybox's init."""


def find_busybox() -> Path:
    """Return the path of Debian's busybox-static: a real shell for lat_proc and for people. Raises ProgramMissing."""
    return find_program("busybox", "a guest", install_advice("busybox-static"))


def guest_tools() -> list[InitramfsEntry]:
    """Return all entries except the job: the agent as /init, busybox and its applets in /bin."""
    busybox = find_busybox()
    applets = output([busybox, "--list"]).split()
    return [
        *(directory(name) for name in ("bin", "dev", "proc", "sys", "tmp", "kdyno", "root")),
        InitramfsEntry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1)),
        InitramfsEntry("dev/null", stat.S_IFCHR | 0o666, device=(1, 3)),
        file("init", find_agent().read_bytes()),
        file("bin/busybox", busybox.read_bytes()),
        *(link(f"bin/{applet}", "busybox") for applet in applets if applet not in NOT_LINKED),
    ]


def loader(modules: Mapping[str, bytes]) -> list[InitramfsEntry]:
    """Return modules, and the script that the kernel starts instead of the agent: it loads them and executes the agent.

    The console names a module that can't be loaded. Without a port the agent then reports what is missing.
    """
    files = [f"/kdyno/modules/{name}.ko" for name in modules]
    lines = ["#!/bin/sh", *(f"/bin/busybox insmod {path}" for path in files)]
    # The kernel sets these two variables for the script, as for an agent that it starts itself.
    lines += [f"/bin/busybox rm -r /kdyno/modules {START}", "exec /bin/busybox env -i HOME=/ TERM=linux /init"]
    contents = zip(files, modules.values(), strict=True)
    return [
        directory("kdyno/modules"),
        *(file(path.lstrip("/"), content, 0o644) for path, content in contents),
        file(START.lstrip("/"), "".join(f"{line}\n" for line in lines).encode()),
    ]


def initramfs(
    tools: list[InitramfsEntry], job: Job, root: Path | None = None, modules: Mapping[str, bytes] | None = None
) -> bytes:
    """Return the archive for one job, with a root file system for its programs, and modules in loading order.

    Tests only need the applet sh, and each link costs the guest 13,000 instructions.
    """
    if uses_loads(job.programs):
        tools = [*tools, file(f"bin/{LOADS}", find_loads().read_bytes())]
    if not job.programs and not job.interactive:
        tools = [entry for entry in tools if not stat.S_ISLNK(entry.mode) or entry.name == "bin/sh"]
    if root and any(program.in_root for program in job.programs):
        tools = [*tools, file("kdyno/root.squashfs", root.read_bytes(), 0o644)]
    if modules:
        tools = [*tools, *loader(modules)]
    return newc([*tools, file("kdyno/job.json", job.encode(), 0o644)])
