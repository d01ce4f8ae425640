"""The machine `fake`: replays a recording. It decides how a boot ended with the same code as the real ones."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, ValidationError

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen, digest
from kdyno.base.host import host_facts
from kdyno.base.mistakes import first_fault
from kdyno.base.names import absolute
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder, Description, MachineSettings, NoShell
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.platforms import Output
from kdyno.measure.guest.agent import expected_records
from kdyno.measure.guest.pmu import RECORD
from kdyno.measure.guest.stream import read_stream
from kdyno.measure.workload.needs import Needs

LARGEST_FILE = 1 << 27
"""Bytes of a file in a recording: more than any machine keeps of a boot."""


class FakeConfig(MachineSettings):
    """Replays recorded boots; for tests and for looking again at what a machine did."""

    type: Literal["fake"] = "fake"
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


class RecordingUnfit(UserError):
    message = "can't replay {path}: {why}"
    hint = "a recording holds the files that a boot left"


class BadExit(UserError):
    message = "{path} does not say how a boot ended: {why}"
    hint = "it holds an object with `stopped`, `lost`, `seconds` and `ready_seconds`, all optional"


class RecordingOfOtherLane(UserError):
    message = "the boot recorded in {place} was measured in lane {recorded}, the experiment says {asked}"
    hint = 'say lane = "{recorded}" in [machine]'


RecordedSeconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class RecordedExit(Frozen):
    """exit.json: what can't be read off console and stream."""

    stopped: str | None = None
    lost: str | None = None
    seconds: RecordedSeconds = 1.0
    ready_seconds: RecordedSeconds | None = None


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
            facts={"type": self.config.type},
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

    def require_cmdline(self, words: Sequence[str], what: str) -> None:
        """A recording runs nothing."""

    def provide(self, needs: Needs, state: State, talk: Talk) -> None:
        """A recording runs nothing."""

    def stand_in(self, variant: str, block: int) -> str:
        """Digest of the boot's name and the files that it replays."""
        recorded = self._find(variant, block)
        replayed = {name: _content(recorded / name) for name in ("console.log", "stream.jsonl", "exit.json", RECORD)}
        files = {name: content.hex() for name, content in replayed.items() if content is not None}
        return digest({"variant": variant, "block": block, "files": files})

    def converse(self, order: BootOrder) -> int:  # noqa: ARG002
        raise NoShell(type=self.config.type)

    def boot(self, order: BootOrder) -> BootEnd:
        recorded = self._find(order.variant, order.block)
        console, stream = order.directory / "console.log", order.directory / "stream.jsonl"
        for target in (console, stream):
            target.write_bytes(_content(recorded / target.name) or b"")
        ended = self._exit(recorded)
        report = read_stream(stream, expected_records(order.job))
        if report.hello and report.hello.lane != self.config.lane:
            raise RecordingOfOtherLane(place=recorded, recorded=report.hello.lane, asked=self.config.lane)
        status, reason = verdict_on_boot(Exit(ended.stopped, ended.lost), report, console)
        pmu = None
        if status == "ok" and (counted := _content(recorded / RECORD)) is not None:
            pmu = order.directory / RECORD
            pmu.write_bytes(counted)
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
            content = _content(path)
            return RecordedExit() if content is None else RecordedExit.model_validate_json(content)
        except ValidationError as error:
            raise BadExit(path=path, why=first_fault(error)) from None


def _content(path: Path) -> bytes | None:
    """A file of a recording, if it is there. Raises RecordingUnfit."""
    try:
        return read_whole(path, LARGEST_FILE)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RecordingUnfit(path=path, why=error.strerror) from error
