"""march = "x86-64-v3": the instruction set for kernel code, in KCFLAGS.

KCFLAGS goes last into KBUILD_CFLAGS, after the -march of arch/x86/Makefile, and the last -march counts. The kernel's
own -mno-sse, -mno-avx and so on are separate flags and stay in force. KCPPFLAGS isn't needed: the preprocessor of C
files gets KBUILD_CFLAGS as well, and assembly files don't ask for the instruction set. Boot, real mode and purgatory
code has flags of its own and stays generic.
"""

from __future__ import annotations

from kdyno.kernel.knobs.base import Context, Contribution
from kdyno.kernel.knobs.cpu import check_cpu, native_facts


def contribute(value: str | None, context: Context) -> Contribution:
    """`native` is this host's CPU; what the compiler takes that for is part of the image's key."""
    if value is None:
        return Contribution()
    check_cpu("march", value, context.toolchain)
    facts = native_facts("march", context.toolchain) if value == "native" else ()
    return Contribution(kcflags=(f"-march={value}",), facts=facts)
