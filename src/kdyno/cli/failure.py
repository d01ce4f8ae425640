"""What a command with --json prints on standard output if it fails: its message and hint as JSON."""

from __future__ import annotations

from kdyno.base.frozen import Frozen


class CommandError(Frozen):
    """The message, the hint and the exit code of a command that failed."""

    message: str
    hint: str
    """An action or a command that fixes it; empty if none is known."""
    exit_code: int


class FailedCommand(Frozen):
    """The output of a command that failed."""

    error: CommandError
