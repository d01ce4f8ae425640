"""Fixtures of the machine `metal`: a box that isn't one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.boot.base import BootLimits
from kdyno.boot.metal import box as box_module
from kdyno.boot.metal import lease as lease_module
from kdyno.boot.metal import machine as machine_module
from kdyno.boot.metal import way_back
from kdyno.boot.metal.machine import MetalMachine
from kdyno.boot.metal.settings import MetalConfig
from tests.unit.boot.fake_box import FakeBox


def quick_box(directory: Path, patch: pytest.MonkeyPatch) -> FakeBox:
    """A box that ssh reaches, and that is waited for in seconds."""
    fake = FakeBox(directory)
    patch.setenv("PATH", fake.path)
    patch.setattr(machine_module, "find_agent", lambda: fake.agent)
    patch.setattr(machine_module, "REACHED_AGAIN_SECONDS", 1.0)
    patch.setattr(way_back, "REACHED_AGAIN_SECONDS", 1.0)
    patch.setattr(way_back, "LAST_LOOK_SECONDS", 2.0)
    patch.setattr(box_module, "POLL_SECONDS", 0.05)
    patch.setattr(lease_module, "AGAIN_SECONDS", 0.05)
    return fake


@pytest.fixture
def box(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeBox:
    return quick_box(tmp_path / "box", monkeypatch)


@pytest.fixture
def machine(box: FakeBox) -> Iterator[MetalMachine]:  # noqa: ARG001
    opened = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=3, total=20)))
    yield opened
    opened.way_back.lease.release()
