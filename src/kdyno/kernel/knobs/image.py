"""image = "/boot/vmlinuz-6.12": a kernel that is built already, instead of a recipe; see docs/built-kernels.md.

It is read before everything else (see kernel/built_kernels), and adds nothing to a build, since there is none.
"""

from __future__ import annotations

from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.names import absolute
from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext

DEBIAN = "debian:"
"""The prefix of the name of a package."""


class NothingToBuild(UserError):
    message = "{image} is a built kernel, and this needs one that kdyno builds"
    hint = "use a variant without `image`"


def check(value: str | None, host: Host) -> None:  # noqa: ARG001
    """Raise NothingToBuild: a plan of a build can't use a kernel that is built."""
    if value is not None:
        raise NothingToBuild(image=value)


def contribute(value: str | None, context: KnobContext) -> Contribution:  # noqa: ARG001
    return Contribution()


def located(value: str | None, base: Path) -> str | None:
    """Return the path made absolute, unless it is a package. Raise NameUnfit."""
    return value if value is None or value.startswith(DEBIAN) else absolute(value, base)


KNOB = Knob("image", contribute, check, in_matrix=True, located=located)
