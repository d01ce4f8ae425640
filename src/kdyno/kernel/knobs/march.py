"""march = "x86-64-v3": the CPU that kernel code is compiled for.

    march = "x86-64-v3" | "znver4"      an ISA level or a CPU family, as the compiler spells it
    march = "native"                    this host's CPU, as the compiler finds it out
    march = "auto"                      this host's CPU, as kdyno finds it out: the best name that the compiler knows
    march = "patch:znver4"              the same code through Kconfig: the tree gets the patch of `kdyno march patch`

Without the patch the flags go into KCFLAGS, which comes last into KBUILD_CFLAGS, after the -march and -mtune of
arch/x86/Makefile, and the last ones count. The kernel's own -mno-sse, -mno-avx and so on are separate flags and stay in
force. KCPPFLAGS isn't needed: the preprocessor of C files gets KBUILD_CFLAGS as well, and assembly files don't ask for
the instruction set. Boot, real mode and purgatory code has flags of its own and stays generic, either way.
"""

from __future__ import annotations

import hashlib

from kdyno.base.errors import UserError
from kdyno.kernel.knobs.base import Contribution, Host, KconfigRequest, Knob, KnobContext
from kdyno.kernel.march.choose import choose
from kdyno.kernel.march.compiler import check_cpu, flags, native_facts, used_in_kernel
from kdyno.kernel.march.kernel_tree import AlreadyPatched
from kdyno.kernel.march.patch import patch_of, symbol_in, write
from kdyno.kernel.patches import Patch

PATCH = "patch:"
AUTO = "auto"


class NotInPatch(UserError):
    message = 'march = "{value}": the patch has no entry for {cpu}'
    hint = (
        "run `kdyno march list` to see the names that it has entries for; without `patch:` any name of the "
        "compiler will do"
    )


def check(value: str | None, host: Host) -> None:
    """Raise the compiler's refusal; the name that `auto` stands for is always one that it knows."""
    if value is not None and (cpu := value.removeprefix(PATCH)) != AUTO:
        check_cpu("march", cpu, host.toolchain)


def contribute(value: str | None, context: KnobContext) -> Contribution:
    """Return the contribution; the name that the CPU's name stands for here is part of the image's key, and its needs
    of the target are on record.
    """
    if value is None:
        return Contribution(needs=used_in_kernel(None, context.toolchain))
    through_patch = value.startswith(PATCH)
    cpu, notes = value.removeprefix(PATCH), tuple[str, ...]()
    if cpu == AUTO:
        choice = choose(context.cpu(), context.toolchain)
        cpu, notes = choice.march, (f"march=auto is {choice.march}: {choice.why}",)
    made = _patched(value, cpu, context) if through_patch else Contribution(kcflags=flags(cpu, context.toolchain))
    facts = native_facts("march", context.toolchain) if cpu == "native" else ()
    needs = used_in_kernel(cpu, context.toolchain)
    return made.model_copy(update={"facts": facts, "needs": needs, "notes": notes})


def _patched(value: str, cpu: str, context: KnobContext) -> Contribution:
    """Ask for the symbol; and for the patch, unless the tree has it already."""
    symbol = symbol_in(context.source.tree, cpu)
    if symbol is None:
        raise NotInPatch(value=value, cpu=cpu)
    asks = (KconfigRequest(symbol=symbol, value="y", by=f'march = "{value}"'),)
    try:
        text = patch_of(context.source.tree)
    except AlreadyPatched:
        return Contribution(asks=asks)  # Kconfig says so if it is another patch, with other symbols
    digest = hashlib.sha256(text.encode(errors="surrogateescape")).hexdigest()
    path = context.state.patches / f"march-{digest[:32]}.patch"
    write(text, path)
    return Contribution(asks=asks, patches=(Patch(path=path, digest=digest),))


KNOB = Knob("march", contribute, check, in_matrix=True)
