"""kdyno: a dynamometer for Linux kernels. For programs there are `ab`, `run` and `Machine`: see cli/api.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kdyno.base.version import __version__

if TYPE_CHECKING:
    from kdyno.cli.api import CommandResult, Machine, Result, ab, run

__all__ = ["CommandResult", "Machine", "Result", "__version__", "ab", "run"]


def __getattr__(name: str) -> Any:
    """Import the API when it is first asked for: a command needs little of what it imports."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from kdyno.cli import api

    return getattr(api, name)
