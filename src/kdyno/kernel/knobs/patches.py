"""patches = ["a.patch"]: applied in order to a private copy of the source; see kernel/patches.py."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.kernel.knobs.base import Context, Contribution, Knob
from kdyno.kernel.patches import read_patches
from kdyno.names import all_absolute


def contribute(value: Sequence[str], context: Context) -> Contribution:  # noqa: ARG001
    """What they hold is checked; whether they apply comes out when they are applied."""
    return Contribution(patches=read_patches(value))


KNOB = Knob("patches", contribute, located=all_absolute)
