"""The two roots of every error that a user can meet; each error is a class with a message and a hint.

Both are templates, filled from the keyword arguments of the constructor. Messages say what happened, in lower case;
hints say what to do about it. Each package defines its errors itself, below one of these roots.
"""

from __future__ import annotations

from typing import ClassVar


class KdynoError(Exception):
    """An expected failure: shown as one message and a hint, never as a traceback."""

    exit_code: ClassVar[int] = 3
    message: ClassVar[str] = "{what}"
    hint: ClassVar[str] = ""

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        self.advice = self.hint.format(**facts)
        super().__init__(self.message.format(**facts))


class UserError(KdynoError):
    """A request that can't be carried out as it stands; the user can change it. Exit code 1."""

    exit_code = 1


class Unbuildable(UserError):
    """A source that can't become the requested kernel; another revision of it may."""


class InfrastructureError(KdynoError):
    """A failure of the surroundings: a tool, the disk, a machine. Exit code 3."""

    exit_code = 3
