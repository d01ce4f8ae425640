"""The content of a directory that guests can read is a part of what their boots are known by."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot import share
from kdyno.boot.base import BootOrder
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.share import ShareChanged, ShareMissing, ShareTooLarge, read_share
from kdyno.measure.guest.job import Job
from kdyno.measure.workload.needs import Needs
from kdyno.runs.keys import boot_key
from tests.unit.fake_qemu import FakeQemu

JOB = Job(lane="model", icount_shift=5, iterations=1)


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "given"
    (made / "sub").mkdir(parents=True)
    (made / "input").write_text("1\n")
    (made / "sub" / "program").write_text("#!/bin/sh\n")
    (made / "link").symlink_to("input")
    return made


def settled(directory: Path) -> None:
    """Let a tree look as if it was written long ago, as far as its owner can set times."""
    for path in (directory, *directory.rglob("*")):
        os.utime(path, (1, 1), follow_symlinks=False)


def given(directory: Path, state: State) -> QemuMachine:
    machine = QemuMachine(QemuConfig(share=directory))
    machine.provide(Needs(), state, Talk())
    return machine


def key_of(directory: Path, state: State) -> str:
    return boot_key("image", (), JOB, given(directory, state).describe(), seed=1, replicate={})


def rewritten(directory: Path) -> None:
    (directory / "input").write_text("2\n")


def added(directory: Path) -> None:
    (directory / "sub" / "new").touch()


def renamed(directory: Path) -> None:
    (directory / "input").rename(directory / "other")


def made_executable(directory: Path) -> None:
    (directory / "sub" / "program").chmod(0o755)


def linked_elsewhere(directory: Path) -> None:
    (directory / "link").unlink()
    (directory / "link").symlink_to("sub")


def removed(directory: Path) -> None:
    (directory / "sub" / "program").unlink()


CHANGES = (rewritten, added, renamed, made_executable, linked_elsewhere, removed)


@pytest.mark.parametrize("change", CHANGES)
def test_another_content_is_another_boot(
    directory: Path, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    FakeQemu(tmp_path, monkeypatch)
    before = key_of(directory, state)
    settled(directory)
    assert key_of(directory, state) == before
    change(directory)
    settled(directory)
    assert key_of(directory, state) != before


def test_the_digest_is_of_the_content_not_of_the_place_or_the_times(directory: Path, state: State) -> None:
    before = read_share(directory, state)
    moved = directory.rename(directory.with_name("moved"))
    settled(moved)
    assert read_share(moved, state).digest == before.digest


def test_a_digest_that_is_remembered_reads_no_file(
    directory: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kdyno.base.digests.SETTLED_SECONDS", -1)
    before = read_share(directory, state)
    monkeypatch.setattr(share, "_described", None)
    assert read_share(directory, state) == before


@pytest.mark.parametrize("change", CHANGES)
def test_a_boot_during_which_the_content_changed_is_not_kept(
    directory: Path, state: State, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    FakeQemu(tmp_path, monkeypatch)
    machine = given(directory, state)

    def boot(name: str) -> None:
        (place := tmp_path / name).mkdir()
        machine.boot(BootOrder("a boot", Path("/k"), (), JOB, 1, place))

    boot("first")
    change(directory)
    with pytest.raises(ShareChanged, match="given, which guests can read, changed during the run"):
        boot("second")


def test_a_directory_without_an_end_is_refused(directory: Path, state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ShareMissing):
        read_share(directory / "nowhere", state)
    monkeypatch.setattr(share, "MOST_ENTRIES", 4)
    with pytest.raises(ShareTooLarge, match="more than 4 files"):
        read_share(directory, state)
    monkeypatch.setattr(share, "MOST_ENTRIES", 5)
    monkeypatch.setattr(share, "MOST_BYTES", 1)
    with pytest.raises(ShareTooLarge):
        read_share(directory, state)


def test_a_pipe_in_it_is_not_waited_for(directory: Path, state: State) -> None:
    before = read_share(directory, state).digest
    os.mkfifo(directory / "pipe")
    assert read_share(directory, state).digest != before
