"""What many unit tests begin with."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.kernel.source import Source
from kdyno.state import State
from tests.unit.kernel_toy import toy_source


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state directory with nothing in it."""
    return State(tmp_path / "state")


@pytest.fixture
def source(tmp_path: Path, state: State) -> Source:
    """The toy Kbuild's tree."""
    return toy_source(tmp_path, state)
