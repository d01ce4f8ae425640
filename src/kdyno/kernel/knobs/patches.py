"""patches = ["a.patch"]: applied in order to a private copy of the source; see kernel/patches.py.

A word without a dot and a slash names a patch of kdyno's own: patches = ["page-block"]. What the patch is configured by
is asked for, too.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kdyno.base.names import absolute
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext
from kdyno.kernel.own_patches import file_of, given_files, is_name, own
from kdyno.kernel.patches import read_patches


def check(value: Sequence[str], host: Host) -> None:  # noqa: ARG001
    """Raise UnknownPatch for a name that is not one of kdyno's own, and the errors of reading the others."""
    read_patches(given_files(value))


def contribute(value: Sequence[str], context: KnobContext) -> Contribution:
    """Return the contribution. The content of patches is checked; only applying them shows whether they apply.

    Raise UnknownPatch, and NotForVersion for a patch of kdyno's own that isn't for this source.
    """
    paths = [str(file_of(entry, context.source.identity)) if is_name(entry) else entry for entry in value]
    asks = (
        KconfigRequest(symbol=symbol, value="y", by=f'patches = ["{name}"]')
        for name in filter(is_name, value)
        for symbol in own(name).config
    )
    return Contribution(patches=read_patches(paths), asks=tuple(asks))


def located(value: Sequence[str], base: Path) -> tuple[str, ...]:
    """Return the paths of files as absolute, relative ones from `base`; the names of kdyno's own patches stay. Raise
    NameUnfit.
    """
    return tuple(entry if is_name(entry) else absolute(entry, base) for entry in value)


KNOB = Knob("patches", contribute, check, located=located)
