"""layout_seed = 7: the seed of a link order, by which `lkd` shuffles the kernel's functions; see docs/layout.md."""

from __future__ import annotations

from kdyno.kernel import lkd
from kdyno.kernel.knobs.base import Contribution, KconfigRequest, Knob, KnobContext

FLAG = "-ffunction-sections"
FULL_LTO = "LTO_CLANG_FULL"
"""One compile of the whole kernel orders functions itself, before lkd sees them."""


def contribute(value: int | None, context: KnobContext) -> Contribution:
    """Return the contribution; objects are the same whatever the seed is: it is only in the environment, which only lkd
    reads.
    """
    if value is None:
        return Contribution()
    environment = {**lkd.environment(context.linker), lkd.SEED: str(value)}
    return ordered(f"layout_seed = {value}", context).model_copy(update={"environment": environment})


def ordered(by: str, context: KnobContext) -> Contribution:
    """Return the common contribution of every knob that orders functions, which `combined` takes once. Raise
    ProgramMissing.
    """
    lkd.find_lkd()
    return Contribution(
        kcflags=(FLAG,),
        make=lkd.words(context.arch),
        asks=(KconfigRequest(symbol=FULL_LTO, value="n", by=by),),
    )


KNOB = Knob("layout_seed", contribute)
