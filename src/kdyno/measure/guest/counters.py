"""The counts of an instrumented kernel: snapshots that the agent took before the tests of a boot and after each.

The file comes from a guest: a line of JSON before the bytes of each item, and one at the end. An item is repeated only
if it differs from the snapshot before. The first two snapshots are taken one right after the other, so that their
difference is what taking one adds.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter, ValidationError

from kdyno.base.errors import InfrastructureError
from kdyno.base.files import read_whole
from kdyno.base.frozen import Frozen
from kdyno.measure.guest.job import PROTOCOL

COUNTERS = "counters.bin"
"""Name of the file in the directory of a boot."""
MOST_BYTES = 1 << 28
"""Bytes of the file."""
MOST_ITEMS, MOST_SNAPSHOTS = 20_000, 200
"""An item has a place in each snapshot, however little the file says of it."""
LONGEST_LINE = 4096
BEFORE = 2
"""Snapshots before the first test."""


class CountersUnsound(InfrastructureError):
    message = "{path} is not a valid file of a guest's counters: {why}"
    hint = "a kernel that damages its own counters can't be trained; train another use, such as autofdo"


class _Item(Frozen):
    v: Literal[1] = PROTOCOL
    snapshot: Annotated[int, Field(ge=0, lt=MOST_SNAPSHOTS)]
    after: Annotated[str, Field(max_length=80)]
    name: Annotated[str, Field(min_length=1, max_length=2000)]
    bytes: Annotated[int, Field(ge=0, le=MOST_BYTES)]


class _End(Frozen):
    v: Literal[1] = PROTOCOL
    snapshots: Annotated[int, Field(ge=BEFORE, le=MOST_SNAPSHOTS)]


_LINE: TypeAdapter[_Item | _End] = TypeAdapter(_Item | _End)


@dataclass(frozen=True)
class Snapshots:
    """The counters of one boot."""

    items: dict[str, tuple[bytes, ...]]
    """The content in each snapshot, by name. The first two are before the first test, the others after one each."""


def read_snapshots(path: Path) -> Snapshots:
    """Return the snapshots in a file. Raise CountersUnsound."""
    try:
        data = read_whole(path, MOST_BYTES)
    except OSError as error:
        raise CountersUnsound(path=path, why=error.strerror) from error
    contents: dict[str, list[bytes]] = {}
    after: dict[int, str] = {}
    place, snapshot = 0, 0
    while True:
        end = data.find(b"\n", place, place + LONGEST_LINE)
        if end < 0:
            raise CountersUnsound(path=path, why="it ends early")
        line = _line(data[place:end], path)
        place = end + 1
        if isinstance(line, _End):
            break
        content = data[place : place + line.bytes]
        if len(content) < line.bytes:
            raise CountersUnsound(path=path, why="it ends early")
        if line.snapshot < snapshot or after.setdefault(line.snapshot, line.after) != line.after:
            raise CountersUnsound(path=path, why=f"snapshot {line.snapshot} is out of order")
        place, snapshot = place + line.bytes, line.snapshot
        history = contents.setdefault(line.name, [])
        if (not history and snapshot > 0) or len(history) > snapshot:
            raise CountersUnsound(path=path, why=f"{line.name!r} is not in the first snapshot, or twice in one")
        if len(contents) > MOST_ITEMS:
            raise CountersUnsound(path=path, why=f"it has more than {MOST_ITEMS:,} items")
        history += history[-1:] * (snapshot - len(history))
        history.append(content)
    if place < len(data) or snapshot >= line.snapshots or not contents:
        raise CountersUnsound(path=path, why="its last line doesn't match its content")
    whole = {name: (*history, *history[-1:] * (line.snapshots - len(history))) for name, history in contents.items()}
    return Snapshots(whole)


def _line(text: bytes, path: Path) -> _Item | _End:
    try:
        return _LINE.validate_json(text)
    except ValidationError as error:
        raise CountersUnsound(path=path, why=f"a line of it is {text[:60]!r}") from error
