"""What a room says of a format that crosses a process boundary. Each room has its own in its formats.py."""

from __future__ import annotations

from typing import Literal, NamedTuple


class Format(NamedTuple):
    type: str
    """`MODULE:NAME` of what pydantic makes a schema of. It is not imported before somebody asks for the schema."""
    what: str
    """For `kdyno schema --help`."""
    mode: Literal["serialization", "validation"] = "serialization"
    """Verbs print it with --json: every key is always there. Or it is read: what has a default may be left out."""
