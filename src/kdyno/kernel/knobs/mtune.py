"""mtune = "znver4": which CPU's timings the compiler optimises for; the kernel still runs on any. See march."""

from __future__ import annotations

from kdyno.kernel.knobs.base import Contribution, Host, Knob, KnobContext
from kdyno.kernel.march.compiler import check_cpu, native_facts


def check(value: str | None, host: Host) -> None:
    """Raise the compiler's refusal."""
    if value is not None:
        check_cpu("mtune", value, host.toolchain)


def contribute(value: str | None, context: KnobContext) -> Contribution:
    """Tune for a CPU like march, without its instruction set."""
    if value is None:
        return Contribution()
    facts = native_facts("mtune", context.toolchain) if value == "native" else ()
    return Contribution(kcflags=(f"-mtune={value}",), facts=facts)


KNOB = Knob("mtune", contribute, check, in_matrix=True)
