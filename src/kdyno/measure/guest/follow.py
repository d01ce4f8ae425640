"""Following an agent stream while it grows, to show what a command in the guest says as it says it."""

from __future__ import annotations

import os
import time
from contextlib import ExitStack
from pathlib import Path
from threading import Event
from typing import BinaryIO

from kdyno.measure.guest.stream_records import OutputRecord, RecordReader, StreamFault

POLL_SECONDS = 0.05


def follow_output(stream: Path, ended: Event, stdout: BinaryIO, stderr: BinaryIO) -> None:
    """Copy the command's output to `stdout` and `stderr` until `ended` is set and the stream is used up.

    Stops at the first unsound record: what is wrong with it is said by whoever reads the stream as a whole.
    """
    reader: RecordReader | None = None
    with ExitStack() as opened:
        while True:
            last_look = ended.is_set()
            if reader is None and stream.exists():
                reader = RecordReader(opened.enter_context(stream.open("rb")))
            if reader:
                try:
                    for record in reader.ready():
                        if isinstance(record, OutputRecord):
                            target = stdout if record.stream == "stdout" else stderr
                            target.write(bytes.fromhex(record.hex))
                            target.flush()
                except StreamFault:
                    return
            if last_look:
                return
            time.sleep(POLL_SECONDS)


def is_interactive() -> bool:
    """Return whether a person is there to talk to a guest's console."""
    return os.isatty(0) and os.isatty(1)
