"""The command line as these tests run it: in this process or in another, with a state directory of its own."""

from __future__ import annotations

import io
import logging
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from kdyno.base.measurement import DISTURBED_PATHS
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.boot.fake import FakeMachine
from kdyno.cli.main import main
from kdyno.store.records import BootRecord
from kdyno.store.store import Store
from tests.cli.replay import Recording

EXPERIMENT = """\
name = "replay"
source = "a-tree"
baseline = "baseline"
blocks = {blocks}

[machine]
type = "fake"
recording = "recording"

"""
DISTURBED = "other work was on its core"
AS_RECORDED = FakeMachine.boot


@dataclass(frozen=True)
class CommandResult:
    """What came of a command."""

    status: int
    out: str
    err: str


class Lab:
    """A directory with a recording, experiments on it, and the state that kdyno keeps of them."""

    def __init__(self, directory: Path, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch) -> None:
        self.directory, self.capsys, self.patch = directory, capsys, patch
        self.recording = Recording(directory / "recording")
        self.environment = {**os.environ, "KDYNO_STATE": str(self.state), "COLUMNS": "110"}

    @property
    def state(self) -> Path:
        return self.directory / "state"

    def experiment(self, *variants: str, blocks: int | str = 3, more: str = "") -> str:
        """An experiment that compares variants of the recording with its baseline; returns the file's path."""
        tables = "".join(f"[variants.{variant}]\n" for variant in ("baseline", *variants))
        path = self.directory / "experiment.toml"
        path.write_text(EXPERIMENT.format(blocks=blocks) + tables + more)
        return str(path)

    def __call__(self, *words: str, stdin: str = "") -> CommandResult:
        """Run a command in this process."""
        self.patch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        self.capsys.readouterr()
        try:
            status = main(words)
        except SystemExit as exit_:  # argparse
            status = int(exit_.code or 0)
        out, err = self.capsys.readouterr()
        return CommandResult(status, out, err)

    def start(self, *words: str, script: str = "") -> subprocess.Popen[str]:
        """Run a command in another process; the script is executed before kdyno's main."""
        code = f"{script}\nimport sys\nfrom kdyno.cli.main import main\nraise SystemExit(main(sys.argv[1:]))\n"
        return subprocess.Popen(
            [sys.executable, "-c", code, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment,
        )

    def boots(self) -> list[BootRecord]:
        """All boots on record, of all runs."""
        with Store(f"sqlite:///{self.state}/store.sqlite") as store:
            return [boot for run in store.runs() for boot in store.boots(run.id)]

    def cells(self) -> list[tuple[str, int]]:
        """Variant and block of every boot on record, sorted; one that is on record twice is there twice."""
        return sorted((boot.variant, boot.block) for boot in self.boots())

    def on_boot(self, ends: Sequence[BaseException | str | None]) -> list[BootOrder]:
        """Let the machine's first boots end so: an exception, lost with a reason, as recorded (None) or so but
        DISTURBED.

        Returns the list of all orders that it is given from now on.
        """
        orders: list[BootOrder] = []

        def boot(machine: FakeMachine, order: BootOrder) -> BootEnd:
            orders.append(order)
            how = ends[len(orders) - 1] if len(orders) <= len(ends) else None
            if isinstance(how, BaseException):
                raise how
            end = AS_RECORDED(machine, order)
            if how is None:
                return end
            if how == DISTURBED:
                return replace(end, conditions={DISTURBED_PATHS: 2.0}, disturbance=how)
            return BootEnd("lost", how, 1.0, None, (), end.console, end.stream, end.report)

        self.patch.setattr(FakeMachine, "boot", boot)
        return orders


@pytest.fixture
def lab(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    monkeypatch.setenv("KDYNO_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "110")
    monkeypatch.delenv("KDYNO_STORE", raising=False)
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    log = logging.getLogger("kdyno")  # --verbose is for the rest of a process
    monkeypatch.setattr(log, "handlers", [])
    yield Lab(tmp_path, capsys, monkeypatch)
    log.setLevel(logging.NOTSET)
