"""block = { "vda.scheduler" = "none" }: settings of this host's disks, for the machine `local` alone.

Linux takes none of them on its command line: a disk gets its own when it is found.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext


class BlockNeedsLocal(UserError):
    message = "block: {name} cannot be set for a kernel that is booted, since no parameter of its command line sets it"
    hint = (
        'use type = "local" in [machine]; in a guest the command of a workload may write it into '
        "/sys/block/DEVICE/queue itself"
    )


def check(value: Mapping[str, str | int], host: Host) -> None:  # noqa: ARG001
    """Raise BlockNeedsLocal."""
    for name in value:
        raise BlockNeedsLocal(name=name)


def contribute(value: Mapping[str, str | int], context: KnobContext) -> Contribution:  # noqa: ARG001
    return Contribution()


KNOB = Knob("block", contribute, check)
