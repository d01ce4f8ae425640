"""A disk that is nearly full."""

from __future__ import annotations

from typing import NamedTuple

import pytest


class Usage(NamedTuple):
    """What shutil.disk_usage gives."""

    total: int
    used: int
    free: int


def leave(free: int, patch: pytest.MonkeyPatch) -> None:
    """Let every disk have so many bytes free."""
    patch.setattr("kdyno.base.state.shutil.disk_usage", lambda _path: Usage(free, 0, free))
