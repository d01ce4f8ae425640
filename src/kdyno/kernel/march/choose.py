"""march = "auto": the name to compile for, given a CPU and a compiler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from kdyno.base.cpu import Cpu, identify, level_of
from kdyno.base.cpu_families import March, levels, table
from kdyno.kernel.march.compiler import refusal, used_in_kernel
from kdyno.kernel.toolchain import Toolchain

KERNEL_LEVEL = 3
"""x86-64-v4 adds nothing but SIMD to x86-64-v3, and kernel code has none: the code is the same."""


@dataclass(frozen=True)
class MarchChoice:
    """A name for -march, and how it came to it."""

    march: str
    why: str


def choose(cpu: Cpu, toolchain: Toolchain) -> MarchChoice:
    """Return the CPU's family if the compiler knows it and the CPU really has what it would use; else the next best.

    That is an older family all of whose instructions this one has, or in the end an ISA level that the CPU has.
    """
    identity = identify(cpu)
    reasons = [identity.why]
    for candidate in _candidates(identity.family, level_of(cpu.flags)):
        if refusal("march", candidate.name, toolchain) is not None:
            reasons.append(f"{toolchain.identity.name} {toolchain.identity.version} doesn't know {candidate.name}")
        elif lacking := [flag for flag in used_in_kernel(candidate.name, toolchain) if flag not in cpu.flags]:
            by = "the hypervisor hides" if cpu.is_guest else "this CPU doesn't show"
            reasons.append(f"{by} {', '.join(lacking)} of {candidate.name}")
        else:
            return MarchChoice(candidate.name, "; ".join(reasons))
    return MarchChoice("x86-64", "; ".join(reasons))


def _candidates(family: March | None, level: int) -> Iterator[March]:
    """Yield the family and those before it, newest first; then the ISA levels that the CPU has, highest first."""
    while family and not family.is_level:
        yield family
        family = table().get(family.after or "")
    yield from (row for row in reversed(levels()) if row.level <= min(level, KERNEL_LEVEL))
