"""Looking at this host: what kdyno needs, what is here, and the one command that mends each lack."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdyno.host import host_facts
from kdyno.instrument.agent import AgentMissing, find_agent
from kdyno.instrument.pmu import PluginMissing, find_plugin
from kdyno.kernel.delegate import DelegateMissing, find_lkd
from kdyno.machine.kvm import why_not_kvm
from kdyno.machine.plugin import why_no_plugin
from kdyno.machine.qemu import QEMU
from kdyno.process import attempt
from kdyno.state import State

DISK_NEEDED_MB = 8_000
"""One kernel tree (2 GB), the objects of one build, images and samples."""
MEMORY_NEEDED_MB = 3_000
"""Two compilers and a link of the dyno configuration, or two guests."""

Status = Literal["ok", "missing", "optional"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. `missing` stops kdyno; `optional` takes something from it."""

    name: str
    status: Status
    detail: str
    mend: str = ""
    """A command, where a command mends it."""


@dataclass(frozen=True)
class Tool:
    """A program, what it is for, and the Debian package that has it."""

    program: str
    package: str
    purpose: str
    optional: bool = False


TOOLS = (
    Tool("make", "make", "runs Kbuild"),
    Tool("gcc", "gcc", "compiles kernels, and the kernel's own host programs"),
    Tool("ld", "binutils", "links kernels"),
    Tool("flex", "flex", "builds the kernel's Kconfig reader"),
    Tool("bison", "bison", "builds the kernel's Kconfig reader"),
    Tool("bc", "bc", "computes kernel/time/timeconst.h"),
    Tool("perl", "perl", "runs some of the kernel's scripts"),
    Tool("lz4", "lz4", "compresses bzImage of the dyno configuration"),
    Tool("tar", "tar", "unpacks kernel sources"),
    Tool("xz", "xz-utils", "unpacks kernel sources"),
    Tool("git", "git", "applies patches, reads sources from repositories"),
    Tool(QEMU, "qemu-system-x86", "boots kernels"),
    Tool("busybox", "busybox-static", "is the guests' shell"),
    Tool("qemu-x86_64", "qemu-user", "runs the programs that `kdyno calibrate` fits weights to", optional=True),
    Tool("ccache", "ccache", "makes the second build of a similar kernel several times faster", optional=True),
    Tool("clang-19", "clang-19", 'compiles variants with toolchain = "clang-19"', optional=True),
    Tool("ld.lld-19", "lld-19", 'links variants with toolchain = "clang-19"', optional=True),
    Tool("llvm-ar-19", "llvm-19", 'archives variants with toolchain = "clang-19"', optional=True),
)

HEADERS = (
    Tool("/usr/include/gelf.h", "libelf-dev", "objtool, which the kernel builds for itself, needs libelf"),
    Tool("/usr/include/openssl/ssl.h", "libssl-dev", "kernels that sign modules need OpenSSL", optional=True),
)

SOURCE = Tool("/usr/src/linux-source-6.12.tar.xz", "linux-source-6.12", "the kernel of the demo", optional=True)


def examine(state: State) -> Iterator[Finding]:
    """Look at everything, one finding after the other; the proof of KVM takes up to two seconds."""
    for tool in TOOLS:
        yield _present(tool, shutil.which)
    for file in (*HEADERS, SOURCE):
        yield _present(file, lambda path: path if Path(path).exists() else None)
    yield _busybox_is_static()
    yield _agent()
    yield _delegate()
    yield _plugin()
    yield _qemu_loads_plugins()
    yield _rust()
    yield _disk(state)
    yield _memory()
    yield _kvm()


def _present(tool: Tool, find: Callable[[str], str | None]) -> Finding:
    name = Path(tool.program).name
    if found := find(tool.program):
        return Finding(name, "ok", found)
    status: Status = "optional" if tool.optional else "missing"
    return Finding(name, status, tool.purpose, f"sudo apt-get install -y {tool.package}")


def _busybox_is_static() -> Finding:
    busybox = shutil.which("busybox")
    if busybox and b"/ld-linux" in Path(busybox).read_bytes()[:65536]:
        detail = f"{busybox} is linked dynamically and can't run in a guest"
        return Finding("static busybox", "missing", detail, "sudo apt-get install -y busybox-static")
    return Finding("static busybox", "ok" if busybox else "missing", busybox or "see busybox")


def _agent() -> Finding:
    try:
        return Finding("kdyno-agent", "ok", str(find_agent()))
    except AgentMissing as error:
        return Finding("kdyno-agent", "missing", str(error), "pip install .")


def _delegate() -> Finding:
    try:
        return Finding("kdyno-delegate", "ok", str(find_lkd()))
    except DelegateMissing as error:
        return Finding("kdyno-delegate", "optional", str(error), "pip install .")


def _plugin() -> Finding:
    try:
        return Finding("PMU plugin", "ok", str(find_plugin()))
    except PluginMissing as error:
        return Finding("PMU plugin", "missing", str(error), "pip install .")


def _qemu_loads_plugins() -> Finding:
    """Most of kdyno works without: the counts of [machine.pmu], `explain` and `profile` don't."""
    name = "QEMU plugins"
    try:
        plugin = find_plugin()
    except PluginMissing:
        return Finding(name, "optional", "can't be tried without the PMU plugin")
    if shutil.which(QEMU) is None:
        return Finding(name, "optional", f"can't be tried without {QEMU}")
    if (why := why_no_plugin(QEMU, plugin)) is None:
        return Finding(name, "ok", f"{QEMU} loads the PMU plugin")
    mend = "sudo apt-get install -y qemu-system-x86"
    return Finding(name, "optional", f"{QEMU} can't load the PMU plugin: {why}", mend)


def _rust() -> Finding:
    """Only those who build kdyno itself need Rust."""
    needed = (1, 88)
    mend = "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"
    if shutil.which("cargo") is None:
        return Finding("rust", "optional", "no cargo; building kdyno itself needs Rust 1.88 or newer", mend)
    said = attempt(["cargo", "--version"]).stdout
    version = re.search(r"(\d+)\.(\d+)", said)
    if version and (int(version[1]), int(version[2])) >= needed:
        return Finding("rust", "ok", said.strip())
    return Finding("rust", "optional", f"{said.strip()}: building kdyno itself needs Rust 1.88 or newer", mend)


def _disk(state: State) -> Finding:
    place = next(path for path in (state.root, *state.root.parents) if path.exists())
    free = shutil.disk_usage(place).free // 1_000_000
    detail = f"{free} MB free for {state.root}"
    if free >= DISK_NEEDED_MB:
        return Finding("disk", "ok", detail)
    return Finding("disk", "missing", f"{detail}; {DISK_NEEDED_MB} MB needed", "export KDYNO_STATE=/path/with/space")


def _memory() -> Finding:
    have = host_facts().get("memory_mb", 0)
    if have >= MEMORY_NEEDED_MB:
        return Finding("memory", "ok", f"{have} MB, {os.cpu_count()} CPUs")
    return Finding("memory", "optional", f"{have} MB; builds and guests want {MEMORY_NEEDED_MB} MB")


def _kvm() -> Finding:
    if shutil.which(QEMU) is None:
        return Finding("KVM", "optional", f"can't be proven without {QEMU}")
    if (why := why_not_kvm(QEMU)) is None:
        return Finding("KVM", "ok", "a guest booted under it")
    mend = "sudo usermod -aG kvm $USER" if "group kvm" in why else ""
    return Finding("KVM", "optional", f"{why}; the model lane does not need it, the wall lane falls back to TCG", mend)
