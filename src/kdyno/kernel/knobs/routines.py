"""routines = { memset = "rep-stosb" }: library routines in the place of those that the kernel takes by itself.

The families and their candidates are those of `kdyno lab`; the change of the source is a patch that is made for it.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext
from kdyno.kernel.made_patches import keep
from kdyno.kernel.routines.patch import find_choice, routines_patch


def check(value: Mapping[str, str], host: Host) -> None:  # noqa: ARG001
    """Raise UnknownRoutine and UnknownCandidate."""
    for family, name in value.items():
        find_choice(family, name)


def contribute(value: Mapping[str, str], context: KnobContext) -> Contribution:
    """Return the contribution: a patch. Raise NoRoutinePatch, and RoutineUnfit if it can't be made for this source."""
    if not value:
        return Contribution()
    patch = keep("routines", routines_patch(value, context.source, context.arch.name), context.state)
    needs = {flag for item in value.items() for flag in find_choice(*item)[1].cpu_flags}
    return Contribution(patches=(patch,), needs=tuple(sorted(needs)))


KNOB = Knob("routines", contribute, check)
