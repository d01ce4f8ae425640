"""Examines this host: the requirements of kdyno, their status, and a fix for each missing one."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from kdyno.base.debuginfo import find_debuginfo
from kdyno.base.extras import EXTRAS, missing_libraries, way_to_install_extra
from kdyno.base.host import host_facts
from kdyno.base.installed import ProgramMissing
from kdyno.base.packages import Requirement, requirements, way_to_install
from kdyno.base.process import ToolMissing, attempt
from kdyno.base.state import State, nearest_existing, unwritable_reason
from kdyno.boot.host.quiet import NoTmpfs
from kdyno.boot.kvm import why_not_kvm
from kdyno.boot.plugin import NO_MACHINE, why_no_plugin
from kdyno.boot.qemu import QEMU
from kdyno.boot.sandbox import why_no_sandbox
from kdyno.boot.uml import FIXED_ADDRESSES, MEMORY_MB, QEMU_USER, QemuUserWithoutPlugins, TmpfsFull, memory_place
from kdyno.kernel import ccache
from kdyno.kernel.build_directory import why_unfit
from kdyno.kernel.lkd import find_lkd
from kdyno.measure.guest.agent import find_agent
from kdyno.measure.guest.pmu import find_plugin
from kdyno.profile.block_order import find_blocks
from kdyno.profile.order import find_layout
from kdyno.understand.lint.run import find_lint

DISK_NEEDED_MB = 8_000
"""One kernel tree (2 GB), the objects of one build, images and samples."""
MEMORY_NEEDED_MB = 3_000
"""Two compilers and a link of the dyno configuration, or two guests."""
RUST_NEEDED = (1, 88)
"""The version in Cargo.toml and tools/setup."""

Status = Literal["ok", "missing", "optional"]
STATUS_WITHOUT: dict[str, Status] = {"needed": "missing", "wanted": "optional", "extra": "optional"}
"""The status of a missing program by its requirement; kdyno itself doesn't need programs of other requirements."""


@dataclass(frozen=True)
class DoctorFinding:
    """One finding. `missing` stops kdyno; `optional` disables a feature."""

    name: str
    status: Status
    detail: str
    mend: str = ""
    """The fix: a command, or a sentence if no command fixes it."""


Findings = tuple[DoctorFinding, ...]
"""The output of `kdyno doctor --json`."""


def examine(state: State) -> Iterator[DoctorFinding]:
    """Yield one finding after the other; the proof of KVM takes up to two seconds."""
    for requirement in requirements():
        if requirement.when in STATUS_WITHOUT:
            yield _present(requirement)
    yield _busybox_is_static()
    yield _installed("kdyno-agent", find_agent, "missing")
    yield _installed("kdyno-delegate", find_lkd, "optional")
    yield _installed("kdyno-layout", find_layout, "optional")
    yield _installed("kdyno-lint", find_lint, "optional")
    yield _installed("kdyno-blocks", find_blocks, "optional")
    yield _installed("kdyno-debuginfo", find_debuginfo, "optional")
    yield _installed("PMU plugin", find_plugin, "missing")
    yield _qemu_loads_plugins()
    yield _qemu_user_loads_plugins()
    yield _memory_of_processes()
    yield _fixed_addresses()
    yield _qemu_confines_itself()
    yield from map(_extra, EXTRAS)
    yield _rust()
    yield _state_directory(state)
    yield _temporary_directory()
    yield from _ccache()
    yield _disk(state)
    yield _memory()
    yield _kvm()


def _present(requirement: Requirement) -> DoctorFinding:
    name = Path(requirement.program).name
    if path := requirement.path():
        return DoctorFinding(name, "ok", path)
    mend = way_to_install(requirement.package, program=requirement.program)
    return DoctorFinding(name, STATUS_WITHOUT[requirement.when], requirement.purpose, mend)


def _busybox_is_static() -> DoctorFinding:
    busybox = shutil.which("busybox")
    if busybox and b"/ld-linux" in Path(busybox).read_bytes()[:65536]:
        detail = f"{busybox} is linked dynamically and can't run in a guest"
        return DoctorFinding("static busybox", "missing", detail, way_to_install("busybox-static"))
    return DoctorFinding("static busybox", "ok" if busybox else "missing", busybox or "see busybox")


def _installed(name: str, find: Callable[[], Path], without: Status) -> DoctorFinding:
    """Return the finding on a program that is built and installed with kdyno."""
    try:
        return DoctorFinding(name, "ok", str(find()))
    except ProgramMissing as error:
        return DoctorFinding(name, without, str(error), "pip install .")


def _extra(name: str) -> DoctorFinding:
    """Return the finding on the Python libraries of an extra."""
    if missing := missing_libraries(name):
        detail = f"{EXTRAS[name][0]} needs {', '.join(missing)}"
        return DoctorFinding(f"extra {name}", "optional", detail, way_to_install_extra(name))
    return DoctorFinding(f"extra {name}", "ok", ", ".join(EXTRAS[name][1]))


def _qemu_loads_plugins() -> DoctorFinding:
    """Return the finding on plugins of the system emulator. Only [machine.pmu], `explain` and `profile` need them."""
    return _loads_plugins("QEMU plugins", QEMU, way_to_install("qemu-system-x86"), words=NO_MACHINE)


def _qemu_user_loads_plugins() -> DoctorFinding:
    """Return the finding on plugins of the user-mode emulator. Only calibrations and the lane model of the machine
    `uml` need them.
    """
    return _loads_plugins("QEMU user plugins", QEMU_USER, QemuUserWithoutPlugins.hint, program=("/bin/true",))


def _loads_plugins(
    name: str, qemu: str, mend: str, words: Sequence[str] = (), program: Sequence[str] = ()
) -> DoctorFinding:
    try:
        plugin = find_plugin()
    except ProgramMissing:
        return DoctorFinding(name, "optional", "can't be tried without the PMU plugin")
    if shutil.which(qemu) is None:
        return DoctorFinding(name, "optional", f"can't be tried without {qemu}")
    if (why := why_no_plugin([qemu, *words], plugin, program)) is None:
        return DoctorFinding(name, "ok", f"{qemu} loads the PMU plugin")
    return DoctorFinding(name, "optional", f"{qemu} can't load the PMU plugin: {why}", mend)


def _memory_of_processes() -> DoctorFinding:
    """Return the finding on the place for the memory of kernels that are processes (machine `uml`)."""
    name = "tmpfs"
    try:
        place = memory_place(MEMORY_MB)
    except (NoTmpfs, TmpfsFull) as error:
        return DoctorFinding(name, "optional", str(error), error.advice)
    return DoctorFinding(name, "ok", f"{place} can hold the memory of a kernel of the machine uml")


def _fixed_addresses() -> DoctorFinding:
    """Return the finding on fixed addresses, which containers may forbid. Kernels of the machine `uml` run without."""
    name, command = "fixed addresses", " ".join(FIXED_ADDRESSES)
    try:
        tried = attempt([*FIXED_ADDRESSES, "true"])
    except ToolMissing as error:
        return DoctorFinding(name, "optional", str(error), way_to_install("util-linux"))
    if tried.returncode == 0:
        return DoctorFinding(name, "ok", f"{command} is permitted")
    detail = f"{command} is not permitted; boots of the machine uml differ more from each other"
    return DoctorFinding(name, "optional", detail, "outside of a container it is permitted")


def _qemu_confines_itself() -> DoctorFinding:
    name = "QEMU sandbox"
    if shutil.which(QEMU) is None:
        return DoctorFinding(name, "optional", f"can't be tried without {QEMU}")
    if (why := why_no_sandbox(QEMU)) is None:
        return DoctorFinding(name, "ok", f"{QEMU} filters its own system calls")
    return DoctorFinding(name, "optional", f"{QEMU} can't filter its own system calls: {why}; guests boot all the same")


def _rust() -> DoctorFinding:
    """Return the finding on Rust, which only building kdyno needs."""
    requirement = f"building kdyno itself needs Rust {'.'.join(map(str, RUST_NEEDED))} or newer"
    mend = way_to_install(*(row.package for row in requirements() if row.when == "rust"))
    if shutil.which("cargo") is None:
        return DoctorFinding("rust", "optional", f"no cargo; {requirement}", mend)
    banner = attempt(["cargo", "--version"]).stdout.strip()
    version = re.match(r"\D*(\d{1,9})\.(\d{1,9})", banner)
    if version and (int(version[1]), int(version[2])) >= RUST_NEEDED:
        return DoctorFinding("rust", "ok", banner)
    return DoctorFinding("rust", "optional", f"{banner or 'cargo does not answer'}; {requirement}", mend)


def _state_directory(state: State) -> DoctorFinding:
    """Return the finding on the state directory. All its entries are checked: those made under sudo belong to root."""
    name, mend = "state directory", "export KDYNO_STATE=/path/without/spaces/that/can/be/written"
    if why := why_unfit(state):
        return DoctorFinding(name, "missing", f"{state.root}: {why}", mend)
    if why := state.refusal_reason():
        return DoctorFinding(name, "missing", f"root can't use {state.root}: {why}", mend)
    for path in itertools.chain([state.root], state.root.glob("*")):
        if why := unwritable_reason(path):
            return DoctorFinding(name, "missing", f"can't write to {path}: {why}", mend)
    return DoctorFinding(name, "ok", str(state.root))


def _temporary_directory() -> DoctorFinding:
    name, requested = "temporary directory", os.environ.get("TMPDIR")
    try:
        directory = tempfile.gettempdir()
    except FileNotFoundError as error:
        return DoctorFinding(name, "missing", str(error.strerror), "export TMPDIR=/path/that/can/be/written")
    if requested is None or Path(requested).absolute() == Path(directory):
        return DoctorFinding(name, "ok", directory)
    return DoctorFinding(
        name, "optional", f"can't write to TMPDIR={requested}; kdyno takes {directory} instead", "unset TMPDIR"
    )


def _ccache() -> Iterator[DoctorFinding]:
    if not ccache.is_installed() or shutil.which("gcc") is None:
        return
    name = "ccache directory"
    directory = attempt(["ccache", "--get-config", "cache_dir"]).stdout.strip()
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        why = ccache.why_not("gcc", Path(scratch))
    if why is None:
        yield DoctorFinding(name, "ok", directory)
        return
    elsewhere = directory and unwritable_reason(Path(directory))
    mend = "export CCACHE_DIR=/path/that/can/be/written" if elsewhere else "export CCACHE_DISABLE=1"
    yield DoctorFinding(name, "optional", f"ccache can't be used: {why}; builds go on without it", mend)


def _disk(state: State) -> DoctorFinding:
    free = shutil.disk_usage(nearest_existing(state.root)).free // 1_000_000
    detail = f"{free} MB free for {state.root}"
    if free >= DISK_NEEDED_MB:
        return DoctorFinding("disk", "ok", detail)
    return DoctorFinding(
        "disk", "missing", f"{detail}; {DISK_NEEDED_MB} MB needed", "export KDYNO_STATE=/path/with/space"
    )


def _memory() -> DoctorFinding:
    memory_mb = host_facts().get("memory_mb", 0)
    if memory_mb >= MEMORY_NEEDED_MB:
        return DoctorFinding("memory", "ok", f"{memory_mb} MB, {os.cpu_count()} CPUs")
    return DoctorFinding("memory", "optional", f"{memory_mb} MB; builds and guests want {MEMORY_NEEDED_MB} MB")


def _kvm() -> DoctorFinding:
    if shutil.which(QEMU) is None:
        return DoctorFinding("KVM", "optional", f"can't be proven without {QEMU}")
    if (why := why_not_kvm(QEMU)) is None:
        return DoctorFinding("KVM", "ok", "a guest booted under it")
    mend = "sudo usermod -aG kvm $USER" if "group kvm" in why else ""
    return DoctorFinding(
        "KVM", "optional", f"{why}; the model lane does not need it, the wall lane falls back to TCG", mend
    )
