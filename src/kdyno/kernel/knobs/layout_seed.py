"""layout_seed = 7: the seed of a link order, by which `lkd` shuffles the kernel's functions; see docs/layout.md."""

from __future__ import annotations

from kdyno.kernel.delegate import LINKER_WORD, environment, find_lkd
from kdyno.kernel.knobs.base import Ask, Context, Contribution, Knob

FLAG = "-ffunction-sections"
LTO = ("LTO_CLANG_FULL", "LTO_CLANG_THIN")
"""Link-time optimisation orders functions itself, before lkd sees them."""


def contribute(value: int | None, context: Context) -> Contribution:
    """The same objects whatever the seed is: it is only in the environment, which none but lkd reads."""
    if value is None:
        return Contribution()
    find_lkd()
    return Contribution(
        kcflags=(FLAG,),
        make=(LINKER_WORD,),
        asks=tuple(Ask(symbol=symbol, value="n", by=f"layout_seed = {value}") for symbol in LTO),
        environment=environment(value, context.toolchain),
    )


KNOB = Knob("layout_seed", contribute)
