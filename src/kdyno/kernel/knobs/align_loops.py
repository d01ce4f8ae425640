"""align_loops = 32: where loops of kernel code begin. clang has had the flag since 13."""

from __future__ import annotations

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Context, Contribution, Host, Knob

OLDEST_CLANG = 13


class ClangTooOld(UserError):
    message = "align_loops = {value} needs clang 13 or newer, and {name} is {version}"
    hint = "take another compiler (toolchain), or leave align_loops out"


def check(value: int | None, host: Host) -> None:
    """Raises ClangTooOld."""
    identity = host.toolchain.identity
    if value is not None and host.toolchain.is_clang and int(identity.version.partition(".")[0]) < OLDEST_CLANG:
        raise ClangTooOld(value=value, name=identity.name, version=identity.version)


def contribute(value: int | None, context: Context) -> Contribution:  # noqa: ARG001
    return Contribution(kcflags=(f"-falign-loops={value}",) if value is not None else ())


KNOB = Knob("align_loops", contribute, check, in_matrix=True)
