"""What many unit tests begin with."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import toy_source


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state directory with nothing in it."""
    return State(tmp_path / "state")


@pytest.fixture
def source(tmp_path: Path, state: State) -> KernelSource:
    """The toy Kbuild's tree."""
    return toy_source(tmp_path, state)


@pytest.fixture
def interruptible() -> Iterator[None]:
    """SIGINT raises KeyboardInterrupt, even where the tests run in a shell's background job, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
