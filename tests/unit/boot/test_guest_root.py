"""Making the root file system of a guest, with an mmdebstrap that fails in the ways of the real one."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import DiskFull, State
from kdyno.base.talk import Talk
from kdyno.boot.guest_root import NoUserNamespace, RootFailed, guest_root
from tests.unit.base.test_process import is_running, wait_until

PACKER = "cat > /dev/null"


@pytest.fixture
def state(tmp_path: Path) -> State:
    return State(tmp_path / "state")


def stand_in(directory: Path, monkeypatch: pytest.MonkeyPatch, unpacker: str, packer: str = PACKER) -> None:
    """Shell scripts for mmdebstrap and tar2sqfs."""
    directory.mkdir(exist_ok=True)
    for name, script in {"mmdebstrap": unpacker, "tar2sqfs": packer}.items():
        (directory / name).write_text(f"#!/bin/sh\n{script}\n")
        (directory / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}:{os.environ['PATH']}")


def archive(path: Path, megabytes: int) -> Path:
    with tarfile.open(path, mode="w") as tar:
        entry = tarfile.TarInfo("./usr/bin/x")
        entry.size = megabytes << 20
        tar.addfile(entry, io.BytesIO(bytes(entry.size)))
    return path


def left_behind(state: State) -> list[Path]:
    """Files of roots, and of scratch directories."""
    return [path for part in ("roots", "boots") for path in (state.root / part).rglob("*")]


@pytest.mark.parametrize(
    ("complaints", "error", "why"),
    [
        (
            ["E: Write error - write (28: No space left on device)", "E: mmdebstrap failed to run"],
            DiskFull,
            "is full",
        ),
        (["W: /etc/subuid is empty", "E: failed to parse /etc/subuid and /etc/subgid"], NoUserNamespace, "subgid"),
        (["E: unshare() failed: No space left on device"], NoUserNamespace, "unshare"),
        (["E: Unable to locate package no-such-thing"], RootFailed, "Unable to locate package no-such-thing"),
    ],
)
def test_why_no_root_could_be_made_is_said_and_nothing_is_left(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    state: State,
    complaints: list[str],
    error: type[KdynoError],
    why: str,
) -> None:
    script = "echo half > root; " + "; ".join(f'echo "{complaint}" >&2' for complaint in complaints) + "; exit 25"
    stand_in(tmp_path / "bin", monkeypatch, script)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(error, match=why):
        guest_root(["hello"], {}, state, Talk(quiet=True))
    assert left_behind(state) == []


@pytest.mark.usefixtures("interruptible")
def test_an_interrupt_ends_mmdebstrap_with_all_that_it_has_started_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State
) -> None:
    pids = tmp_path / "pids"
    script = f'sleep 1000 & echo "$$ $!" > {pids}; kill -INT {os.getpid()}; echo half > "$TMPDIR/half"; wait'
    stand_in(tmp_path / "bin", monkeypatch, script)
    with pytest.raises(KeyboardInterrupt):
        guest_root(["hello"], {}, state, Talk(quiet=True))
    started = pids.read_text().split()
    wait_until(lambda: not any(map(is_running, started)))
    assert left_behind(state) == []


def test_a_packer_that_ends_early_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: State) -> None:
    plain = archive(tmp_path / "plain.tar", 4)
    for complaint, error in {"no such compressor": RootFailed, "write: No space left on device": DiskFull}.items():
        stand_in(tmp_path / "bin", monkeypatch, f"cat {plain}", f'echo "{complaint}" >&2; exit 1')
        with pytest.raises(error):
            guest_root(["hello"], {}, state, Talk(quiet=True))
        assert left_behind(state) == []
