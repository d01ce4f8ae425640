"""Files that an experiment or a kernel brings along and that are none, or far too large."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import inputs
from kdyno.kernel.files_of import config_of


def test_a_pipe_beside_a_kernel_is_no_configuration(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "config")
    assert config_of(tmp_path / "bzImage") is None
    (tmp_path / "config-6.12").symlink_to("/dev/zero")
    assert config_of(tmp_path / "vmlinuz-6.12") is None


def test_an_input_is_a_file_with_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "MOST_BYTES", 10)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "long").write_bytes(b"x" * 11)
    for path in (tmp_path / "pipe", Path("/dev/zero"), tmp_path / "long"):
        with pytest.raises(inputs.InputUnreadable):
            inputs.read_input("order", path, State(tmp_path / "state"))
