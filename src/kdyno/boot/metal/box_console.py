"""The console of a box, printed by a command of the user's: a serial line, netconsole, IPMI or a virtual machine."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile

from kdyno.base.process import quote, spawn
from kdyno.base.talk import Talk
from kdyno.base.text import clean
from kdyno.boot.watch import bound_files

FAREWELL_SECONDS = 5.0
"""The time that a command has to close its session after its terminal was hung up."""
MESSAGE_SHOWN = 300


class BoxConsole:
    """Records the output of the user's command in each boot."""

    def __init__(self, command: Sequence[str], most_bytes: int) -> None:
        self.command, self.most_bytes = command, most_bytes
        self._is_reported = False

    @contextmanager
    def recording(self, target: Path, talk: Talk) -> Iterator[None]:
        """Append the command's output to a file while the body runs; without a command, do nothing.

        Its input is a terminal at which nobody types: `ipmitool sol activate` ends at the end of its input, and `virsh
        console` takes nothing else. It is hung up at the end, because a BMC refuses the next session until this one is
        closed. A command that ended by itself is reported once.
        """
        if not self.command:
            yield
            return
        keyboard, terminal = (os.fdopen(end, "wb", buffering=0) for end in os.openpty())
        with keyboard, terminal, target.open("ab") as log, TemporaryFile() as message:
            with spawn(self.command, stdin=terminal, stdout=log, stderr=message) as child:
                terminal.close()
                bound_files(child.pid, self.most_bytes)
                try:
                    yield
                finally:
                    status = child.poll()
                    keyboard.close()
                    with suppress(subprocess.TimeoutExpired):
                        child.wait(FAREWELL_SECONDS)
            message.seek(0)
            if status is not None and not self._is_reported:
                self._is_reported = True
                why = clean(message.read(self.most_bytes).decode(errors="replace"))[-MESSAGE_SHOWN:]
                talk.warn(f"`console` ended before the boot did: {quote(self.command)}: {why or f'status {status}'}")
