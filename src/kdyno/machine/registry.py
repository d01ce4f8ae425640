"""Which machine an experiment means."""

from __future__ import annotations

from kdyno.machine.base import Machine
from kdyno.machine.config import FakeConfig, QemuConfig
from kdyno.machine.fake import FakeMachine
from kdyno.machine.qemu import QemuMachine


def open_machine(config: QemuConfig | FakeConfig) -> Machine:
    match config:
        case QemuConfig():
            return QemuMachine(config)
        case FakeConfig():
            return FakeMachine(config)
