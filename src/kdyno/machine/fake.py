"""The machine `fake`: replays a recording. It decides how a boot ended with the same code as the real ones."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from kdyno.errors import UserError
from kdyno.frozen import Frozen, digest
from kdyno.instrument.pmu import RECORD
from kdyno.instrument.stream import read_stream
from kdyno.machine.base import BootEnd, BootOrder, Description
from kdyno.machine.config import FakeConfig
from kdyno.machine.ending import Exit, verdict_on_boot


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
        files = sorted(path for path in self.config.recording.rglob("*") if path.is_file())
        content = digest({str(path.relative_to(self.config.recording)): path.read_bytes().hex() for path in files})
        return Description(
            lane=self.config.lane,
            parallel=1,
            facts={"type": "fake", "recording": content},
            notices=("these samples are replayed from a recording",),
        )

    def require_cpu(self, flags: Sequence[str], what: str) -> None:
        """A recording runs nothing."""

    def boot(self, order: BootOrder) -> BootEnd:
        recorded = self._find(order)
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

    def _find(self, order: BootOrder) -> Path:
        root = self.config.recording
        for place in (root / order.variant / str(order.block), root / order.variant, root):
            if (place / "stream.jsonl").exists() or (place / "exit.json").exists():
                return place
        raise NoRecording(variant=order.variant, block=order.block, recording=root)

    @staticmethod
    def _exit(recorded: Path) -> RecordedExit:
        path = recorded / "exit.json"
        try:
            return RecordedExit.model_validate_json(path.read_bytes()) if path.exists() else RecordedExit()
        except ValidationError as error:
            raise BadExit(path=path, why=error.errors(include_url=False)[0]["msg"]) from None
