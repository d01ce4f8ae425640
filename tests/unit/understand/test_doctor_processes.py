"""What doctor finds of the needs of kernels that are processes of this host (machine `uml`)."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdyno.boot import uml
from kdyno.boot.host import quiet
from kdyno.understand import doctor
from kdyno.understand.doctor import DoctorFinding


def stand_in(directory: Path, name: str, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Put a shell script in the place of a program."""
    program = directory / name
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}{os.pathsep}{os.environ['PATH']}")


def test_a_user_mode_emulator_that_loads_the_plugin_is_ok(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stand_in(tmp_path, uml.QEMU_USER, "echo kdyno-pmu: no options >&2; exit 1", monkeypatch)
    expected = DoctorFinding("QEMU user plugins", "ok", "qemu-x86_64 loads the PMU plugin")
    assert doctor._qemu_user_loads_plugins() == expected


def test_a_user_mode_emulator_without_plugins_is_optional_and_the_fix_names_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(tmp_path, uml.QEMU_USER, "echo no such option >&2; exit 1", monkeypatch)
    result = doctor._qemu_user_loads_plugins()
    assert (result.status, result.mend) == ("optional", uml.QemuUserWithoutPlugins.hint)
    assert result.detail.endswith("it ended with status 1: no such option")


def test_a_host_without_an_executable_tmpfs_gets_the_command_that_mounts_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"tmpfs {tmp_path} tmpfs rw,noexec 0 0\n")
    monkeypatch.setattr(
        uml, "writable_tmpfs", lambda what, executable: quiet.writable_tmpfs(what, mounts, executable=executable)
    )
    result = doctor._memory_of_processes()
    assert (result.status, result.mend) == ("optional", quiet.NoTmpfs.hint)


def test_a_tmpfs_without_room_for_a_kernel_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uml, "MIB", 1 << 40)
    result = doctor._memory_of_processes()
    assert result.status == "optional"
    assert result.mend.startswith("remove files there")


@pytest.mark.parametrize(("script", "status"), [('shift; exec "$@"', "ok"), ("exit 1", "optional")])
def test_fixed_addresses_are_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, status: str) -> None:
    stand_in(tmp_path, "setarch", script, monkeypatch)
    assert doctor._fixed_addresses().status == status
