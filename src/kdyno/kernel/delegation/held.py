"""The configuration of a kernel that several compilers make: the options that they must agree on, and those that can't
be shared at all.
"""

from __future__ import annotations

from collections.abc import Mapping

from kdyno.base.errors import UserError
from kdyno.kernel.delegation.resolved import Resolved

UNSHARED = {
    "LTO_CLANG_FULL": "link-time optimisation needs the intermediate code of one compiler for all objects",
    "LTO_GCC": "link-time optimisation needs the intermediate code of one compiler for all objects",
    "CFI_CLANG": "the hashes that kCFI checks before an indirect call come from one compiler's idea of types",
    "CFI": "the hashes that kCFI checks before an indirect call come from one compiler's idea of types",
    "RANDSTRUCT_FULL": "compilers shuffle the fields of structures in orders of their own",
    "RANDSTRUCT_PERFORMANCE": "compilers shuffle the fields of structures in orders of their own",
    "GCC_PLUGIN_STACKLEAK": "plugins of gcc work on what gcc compiles, and on nothing else",
    "GCC_PLUGIN_LATENT_ENTROPY": "plugins of gcc work on what gcc compiles, and on nothing else",
}
"""Symbols that a kernel of several compilers can't have, and why."""
ONE_CLANG = "ld.lld takes the intermediate code of one clang, and beside it the objects of gcc"
LTO = ("LTO_CLANG_FULL", "LTO_CLANG_THIN", "LTO_GCC")


class MixRefused(UserError):
    message = "CONFIG_{symbol} can't be had with the compilers {compilers} in one kernel: {why}"
    hint = "switch it off (kconfig = {{{symbol} = false}}), or take one compiler for all files"


class LtoByAssembler(UserError):
    message = "CONFIG_{symbol} can't be had by way of assembler: such a compiler does not write assembler"
    hint = "switch it off (kconfig = {{{symbol} = false}}), or leave by_assembler out"


def refuse_unshared(config: Mapping[str, str], plan: Resolved) -> None:
    """Raise MixRefused or LtoByAssembler if the final .config holds options that this plan rules out."""
    for symbol, why in UNSHARED.items():
        if config.get(symbol) == "y" and len(plan.compilers) > 1:
            raise MixRefused(symbol=symbol, compilers=" and ".join(plan.compilers), why=why)
    clangs = sorted(name for name, compiler in plan.compilers.items() if compiler.family == "clang")
    if config.get("LTO_CLANG_THIN") == "y" and len(clangs) > 1:
        raise MixRefused(symbol="LTO_CLANG_THIN", compilers=" and ".join(clangs), why=ONE_CLANG)
    for symbol in LTO:
        if config.get(symbol) == "y" and any(rule.by_assembler for rule in plan.rules):
            raise LtoByAssembler(symbol=symbol)


def held_symbols(alone: Mapping[str, str], together: Mapping[str, str]) -> list[tuple[str, str, str]]:
    """Return the symbols that differ with the reference alone: name, value alone, value of all together. Pure."""
    names = sorted({*alone, *together})
    values = ((name, alone.get(name, "n"), together.get(name, "n")) for name in names)
    return [(name, before, after) for name, before, after in values if before != after]


def note(held: list[tuple[str, str, str]], plan: Resolved) -> str:
    """Return the note on them for an image's record."""
    compilers = " and ".join(plan.compilers)
    listed = ", ".join(f"{name} is {after} ({before} with {plan.reference} alone)" for name, before, after in held)
    return f"the configuration is held to what {compilers} all support: {listed or 'nothing differs'}"
