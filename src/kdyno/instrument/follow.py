"""Following an agent stream while it grows, to show what a command in the guest says as it says it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Event
from typing import BinaryIO

from kdyno.instrument.stream import OutputRecord, StreamFault, parse_record

POLL_SECONDS = 0.05


def follow_output(stream: Path, ended: Event, stdout: BinaryIO, stderr: BinaryIO) -> None:
    """Copy the command's output to `stdout` and `stderr` until `ended` is set and the stream is used up.

    Stops at the first unsound record: what is wrong with it is said by whoever reads the stream as a whole.
    """
    number, rest = 0, b""
    position = 0
    while True:
        last_look = ended.is_set()
        if stream.exists():
            with stream.open("rb") as file:
                file.seek(position)
                rest += file.read()
                position = file.tell()
        *lines, rest = rest.split(b"\n")
        for line in lines:
            try:
                record = parse_record(line + b"\n", number)
            except StreamFault:
                return
            number += 1
            if isinstance(record, OutputRecord):
                target = stdout if record.stream == "stdout" else stderr
                target.write(bytes.fromhex(record.hex))
                target.flush()
        if last_look:
            return
        time.sleep(POLL_SECONDS)


def is_interactive() -> bool:
    """Whether a person is there to talk to a guest's console."""
    return os.isatty(0) and os.isatty(1)
