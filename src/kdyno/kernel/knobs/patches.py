"""patches = ["a.patch"]: applied in order to a private copy of the source; see kernel/patches.py."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.kernel.knobs.base import Context, Contribution
from kdyno.kernel.patches import read_patch


def contribute(value: Sequence[str], context: Context) -> Contribution:  # noqa: ARG001
    """The content of a patch counts, not its name."""
    return Contribution(patches=tuple(read_patch(Path(path).expanduser().absolute()) for path in value))
