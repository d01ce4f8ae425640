"""The machine `fake`: replays a recording. It decides how a boot ended with the same code as the real ones."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Self

from pydantic import ValidationError

from kdyno.errors import UserError
from kdyno.frozen import Frozen, digest
from kdyno.host import host_facts
from kdyno.instrument.pmu import RECORD
from kdyno.instrument.stream import read_stream
from kdyno.lanes import Lane
from kdyno.machine.base import BootEnd, BootOrder, Description, MachineSettings, NoShell
from kdyno.machine.ending import Exit, verdict_on_boot
from kdyno.machine.platforms import Output
from kdyno.march.cpu import Cpu, read_cpu
from kdyno.names import absolute


class FakeConfig(MachineSettings):
    """Replays recorded boots; for tests and for looking again at what a machine did."""

    type: Literal["fake"] = "fake"
    lane: Lane = "model"
    recording: Path
    """Directory: VARIANT/BLOCK, VARIANT or the directory itself holds console.log, stream.jsonl and exit.json."""

    def located(self, base: Path) -> Self:
        return self.model_copy(update={"recording": Path(absolute(self.recording, base))})


class NoRecording(UserError):
    message = "no recorded boot of {variant}, block {block}, in {recording}"
    hint = "a recording holds VARIANT/BLOCK/stream.jsonl, VARIANT/stream.jsonl or stream.jsonl"


class RecordingMissing(UserError):
    message = "there is no recording in {recording}"
    hint = "`recording` names a directory; a relative one starts from the experiment file's"


class BadExit(UserError):
    message = "{path} does not say how a boot ended: {why}"
    hint = "it holds an object with `stopped`, `lost`, `seconds` and `ready_seconds`, all optional"


class OtherLane(UserError):
    message = "the boot recorded in {place} was measured in lane {recorded}, the experiment says {asked}"
    hint = 'say lane = "{recorded}" in [machine]'


class RecordedExit(Frozen):
    """exit.json: what can't be read off console and stream."""

    stopped: str | None = None
    lost: str | None = None
    seconds: float = 1.0
    ready_seconds: float | None = None


class FakeMachine:
    """Replays boots from a directory."""

    def __init__(self, config: FakeConfig) -> None:
        self.config = config

    def describe(self) -> Description:
        if not self.config.recording.is_dir():
            raise RecordingMissing(recording=self.config.recording)
        return Description(
            lane=self.config.lane,
            parallel=1,
            facts={"type": "fake"},
            host=host_facts(),
            needs_images=False,
            notices=("these samples are replayed from a recording",),
        )

    def cpu(self) -> Cpu:
        return read_cpu()

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        """A recording runs nothing."""

    def require_options(self, kernel: Path, output: Output) -> None:
        """A recording runs nothing."""

    def stand_in(self, variant: str, block: int) -> str:
        """Digest of the boot's name and the files that it replays."""
        recorded = self._find(variant, block)
        replayed = (recorded / name for name in ("console.log", "stream.jsonl", "exit.json", RECORD))
        files = {path.name: path.read_bytes().hex() for path in replayed if path.is_file()}
        return digest({"variant": variant, "block": block, "files": files})

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.config.type)

    def boot(self, order: BootOrder) -> BootEnd:
        recorded = self._find(order.variant, order.block)
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        for target in (console, stream):
            if (recorded / target.name).exists():
                shutil.copyfile(recorded / target.name, target)
            else:
                target.touch()
        ended = self._exit(recorded)
        report = read_stream(stream)
        if report.hello and report.hello.lane != self.config.lane:
            raise OtherLane(place=recorded, recorded=report.hello.lane, asked=self.config.lane)
        status, reason = verdict_on_boot(Exit(ended.stopped, ended.lost), report, console)
        pmu = None
        if status == "ok" and (recorded / RECORD).exists():
            pmu = shutil.copyfile(recorded / RECORD, order.directory / RECORD)
        return BootEnd(status, reason, ended.seconds, ended.ready_seconds, (), console, stream, report, pmu)

    def _find(self, variant: str, block: int) -> Path:
        root = self.config.recording
        for place in (root / variant / str(block), root / variant, root):
            if (place / "stream.jsonl").exists() or (place / "exit.json").exists():
                return place
        raise NoRecording(variant=variant, block=block, recording=root)

    @staticmethod
    def _exit(recorded: Path) -> RecordedExit:
        path = recorded / "exit.json"
        try:
            return RecordedExit.model_validate_json(path.read_bytes()) if path.exists() else RecordedExit()
        except ValidationError as error:
            raise BadExit(path=path, why=error.errors(include_url=False)[0]["msg"]) from None
