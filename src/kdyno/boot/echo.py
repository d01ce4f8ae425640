"""The machine `echo`: replays a recording, as `fake` does."""

from __future__ import annotations

from typing import Literal

from kdyno.boot.fake import FakeConfig, FakeMachine


class EchoConfig(FakeConfig):
    """Replays recorded boots."""

    type: Literal["echo"] = "echo"  # type: ignore[assignment]


class EchoMachine(FakeMachine):
    """Replays boots from a directory."""
