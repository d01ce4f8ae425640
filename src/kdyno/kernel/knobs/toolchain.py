"""toolchain = "gcc-12": which compiler builds the kernel; clang brings all of LLVM (ld.lld, llvm-ar ...)."""

from __future__ import annotations

from kdyno.kernel.knobs.base import Contribution, Knob, KnobContext


def contribute(value: str, context: KnobContext) -> Contribution:
    """Return no contribution: the toolchain itself was found before; a recipe that names another one is a bug."""
    assert value == context.toolchain.identity.name
    return Contribution(make=context.toolchain.make)


KNOB = Knob("toolchain", contribute, in_matrix=True)
