"""QEMU confines itself where it can: its system calls are filtered, and nothing that is measured depends on it."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from kdyno.base.process import spawn
from kdyno.boot.base import BootOrder
from kdyno.boot.qemu import QEMU, QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.sandbox import SANDBOX, why_no_sandbox
from tests.unit.boot.test_machine import order

CAN, CAN_NOT = "exit 0", 'echo "-sandbox support is not enabled in this QEMU binary" >&2; exit 1'


def qemu(directory: Path, patch: pytest.MonkeyPatch, sandbox: str) -> None:
    """Let a program stand where QEMU is looked for, which does this when it is to confine itself."""
    program = directory / QEMU
    program.write_text(
        f'#!/bin/sh\ncase "$*" in\n--version) echo "QEMU emulator version 9.9.9";;\n*-sandbox*) {sandbox};;\nesac\n'
    )
    program.chmod(0o755)
    patch.setenv("PATH", f"{directory}:/usr/bin:/bin")


def words(machine: QemuMachine, of: BootOrder) -> tuple[str, ...]:
    return machine.command(of, Path("/i"), serial="null", stream=Path("/s"))


def test_a_qemu_that_can_confine_itself_does_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu(tmp_path, monkeypatch, CAN)
    assert why_no_sandbox(QEMU) is None
    assert set(SANDBOX) <= set(words(QemuMachine(QemuConfig()), order(tmp_path)))


def test_one_that_can_not_boots_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    qemu(tmp_path, monkeypatch, CAN_NOT)
    assert why_no_sandbox(QEMU) == "it ended with status 1: -sandbox support is not enabled in this QEMU binary"
    assert "-sandbox" not in words(QemuMachine(QemuConfig()), order(tmp_path))


def test_no_boot_is_another_one_for_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    facts = []
    for sandbox in (CAN, CAN_NOT):
        qemu(tmp_path, monkeypatch, sandbox)
        facts.append(QemuMachine(QemuConfig()).describe().facts)
    assert facts[0] == facts[1]


def test_the_kernel_filters_the_system_calls_of_a_confined_qemu() -> None:
    command = [QEMU, *SANDBOX, "-nodefaults", "-no-user-config", "-M", "none", "-display", "none", "-S"]
    with spawn(command) as guest:
        for _ in range(500):
            if "Seccomp:\t2" in Path(f"/proc/{guest.pid}/status").read_text():
                return
            time.sleep(0.02)
    raise AssertionError("no filter was installed within 10 s")
