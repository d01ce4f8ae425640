"""Recordings to replay: three real boots, and what is made of them so that they end differently."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path

DATA = Path(__file__).parent.parent / "data"
BLOCKS = range(3)
CUT_AFTER = 40
"""Records that a boot still sent before something happened to it."""

Change = Callable[[Path], None]
"""Changes the files of one recorded boot."""


class Recording:
    """A directory that the machine `fake` replays; it starts with the variant `baseline`, as recorded."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        shutil.copytree(DATA / "recording" / "baseline", directory / "baseline")

    def add(self, variant: str, *changes: Change, blocks: Iterable[int] = BLOCKS) -> None:
        """A variant that is the baseline but for the changes, in these blocks."""
        shutil.copytree(self.directory / "baseline", self.directory / variant)
        self.change(variant, *changes, blocks=blocks)

    def change(self, variant: str, *changes: Change, blocks: Iterable[int] = BLOCKS) -> None:
        """Change what was recorded of a variant, in these blocks."""
        for block in blocks:
            for change in changes:
                change(self.directory / variant / str(block))


def slower(benchmark: str, percent: int) -> Change:
    """Every sample of one benchmark takes so many percent longer."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        records = [json.loads(line) for line in stream.read_text().splitlines()]
        for record in records:
            if record["type"] == "sample" and record["benchmark"] == benchmark:
                record["elapsed"] = record["elapsed"] * (100 + percent) // 100
        stream.write_text("".join(json.dumps(record) + "\n" for record in records))

    return change


def ran(stdout: str, *, status: int = 0, stderr: str = "") -> Change:
    """The agent ran a command instead of tests: what it wrote, and how it ended."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        hello, *_ = map(json.loads, stream.read_text().splitlines())
        outputs = [
            {"v": 1, "type": "output", "stream": name, "hex": text.encode().hex()}
            for name, text in (("stdout", stdout), ("stderr", stderr))
            if text
        ]
        exited = {
            "v": 1,
            "type": "exited",
            "status": status,
            "elapsed": 5,
            "user": 2,
            "system": 1,
            "busy_user": 4,
            "busy_system": 3,
        }
        step = {"v": 1, "type": "step", "program": "command", "phase": "command", "run": 0}
        left = {"v": 1, "type": "left", "program": "command", "processes": 0}
        records = [hello, step, *outputs, exited, left]
        records.append({"v": 1, "type": "end", "records": len(records)})
        stream.write_text("".join(json.dumps(record) + "\n" for record in records))

    return change


def ended(**how: str) -> Change:
    """The machine itself says how it ended: `lost` or `stopped`; the stream breaks off between two records."""

    def change(boot: Path) -> None:
        (boot / "exit.json").write_text(json.dumps({"seconds": 31.5, **how}))
        cut(boot)

    return change


def died(console: str) -> Change:
    """The kernel dies with a console of tests/data/consoles."""

    def change(boot: Path) -> None:
        shutil.copyfile(DATA / "consoles" / console, boot / "console.log")
        cut(boot)

    return change


def cut(boot: Path) -> None:
    stream = boot / "stream.jsonl"
    stream.write_bytes(b"".join(stream.read_bytes().splitlines(keepends=True)[:CUT_AFTER]))


def truncated(boot: Path) -> None:
    """The stream breaks off within a record."""
    stream = boot / "stream.jsonl"
    stream.write_bytes(stream.read_bytes()[:-30])


def silent(boot: Path) -> None:
    """No word from the agent."""
    (boot / "stream.jsonl").write_bytes(b"")


def line(number: int, content: bytes) -> Change:
    """One record of the stream is another one."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        lines = stream.read_bytes().splitlines(keepends=True)
        lines[number] = content + b"\n"
        stream.write_bytes(b"".join(lines))

    return change


UNSOUND: dict[str, tuple[Change, str]] = {
    "panics": (died("init-exited.log"), "panic: Kernel panic - not syncing: Attempted to kill init!"),
    "runs-out-of-memory": (died("out-of-memory.log"), "out of memory: Out of memory: Killed process 28 (tail)"),
    "hangs": (ended(stopped="hung: silent for 90 s"), "hung: silent for 90 s"),
    "floods": (ended(stopped="console flooded: more than 4 MB"), "console flooded: more than 4 MB"),
    "is-cut-short": (cut, "the guest ended before the agent was done"),
    "is-truncated": (truncated, "agent record 265 is truncated"),
    "is-newer": (line(5, b'{"v":2,"type":"sample"}'), "agent record 5: version 2, but this kdyno reads version 1"),
    "is-not-utf-8": (line(5, b'{"v":1,"type":"\xff"}'), "agent record 5 is not UTF-8 (byte 15)"),
    "is-not-json": (line(5, b"Segmentation fault"), "agent record 5: the record: it is no JSON"),
    "steers": (line(5, rb'{"v":1,"type":"\u001b[31mred\u202e"}'), "agent record 5: "),
    "says-nothing": (silent, "the guest ended before the agent said hello"),
}
"""Variants whose boots fail, and what the reason starts with."""
