"""Following an agent stream while it grows, to show a command's output in the guest as it comes."""

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

    Stop at the first unsound record: the reader of the whole stream reports what is wrong with it.
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
