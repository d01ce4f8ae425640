"""Mitigations and hardening: those that a kernel has, and those that the dyno configuration can't expect of a source.

They are listed in data/hardening.txt.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.kernel.kconfig_check import is_met, read_config
from kdyno.kernel.kconfig_tree import KconfigEntry, read_tree
from kdyno.kernel.knobs.base import KconfigRequest

Place = Literal["on", "left", "more"]
"""The treatment in the dyno configuration; hardening.txt explains each word."""
State = Literal["on", "off", "no such option"]

MENUS = {"CPU_MITIGATIONS", "SPECULATION_MITIGATIONS"}
"""The option that all questions of the menu "Mitigations for CPU vulnerabilities" depend on; the second name is the
older.
"""
HARDENING_MENU = "security/Kconfig.hardening"
RECOMMENDED = ("kernel/configs/hardening.config", "arch/x86/configs/hardening.config")
"""The kernel's own fragments, since 6.7."""
ELSEWHERE = re.compile(
    r"CPU_MITIGATIONS|SPECULATION_MITIGATIONS|STACKPROTECTOR\w*|VMAP_STACK|RANDOMIZE_\w+|STRICT_\w+|DEBUG_WX|"
    r"SLAB_FREELIST_\w+|HARDENED_\w+|FORTIFY_SOURCE|SECCOMP\w*|SYN_COOKIES|"
    r"X86_KERNEL_IBT|X86_SMAP|X86_UMIP|X86_USER_SHADOW_STACK"
)
"""Protecting options of other menus, or of a kernel without hardening.config as well."""


class HardeningRow(Frozen):
    """A line of hardening.txt."""

    dyno: Place
    option: str
    names: tuple[str, ...]
    """The option, then its names in older kernels."""
    needs: tuple[str, ...]
    what: str


class Protection(Frozen):
    """A mitigation or a hardening, and whether a kernel has it."""

    option: str
    """Its name in this kernel, without CONFIG_."""
    state: State
    """`no such option`: the kernel is too old for it or too new, or has nothing that it would guard."""
    what: str
    """Its effect, in a few words; empty for a MITIGATION_ that hardening.txt doesn't have."""
    dyno: Place


@cache
def table() -> dict[str, HardeningRow]:
    """Return the rows of hardening.txt in their order, by the option's name of today."""
    text = files("kdyno").joinpath("data", "hardening.txt").read_text(encoding="utf-8")
    lines = [line.split(maxsplit=3) for line in text.splitlines() if line and not line.startswith("#")]
    older: dict[str, list[str]] = {}
    for _, name, option, *_ in (words for words in lines if words[0] == "was"):
        older.setdefault(option, []).append(name)
    return {
        option: HardeningRow(
            dyno=place,
            option=option,
            names=(option, *older.get(option, ())),
            needs=() if needs == "-" else tuple(needs.split(",")),
            what=what[0],
        )
        for place, option, needs, *what in lines
        if place != "was"
    }


def protections(config: Mapping[str, str]) -> tuple[Protection, ...]:
    """Return the protections in a final .config that kconfig_check.read_config() read, in the order of hardening.txt.
    Pure.

    Mitigations that only a newer kernel has, and the list doesn't, come last.
    """
    listed = [
        Protection(option=_name_in(row, config), state=_state(row, config), what=row.what, dyno=row.dyno)
        for row in table().values()
    ]
    names = {name for row in table().values() for name in row.names}
    unlisted = [
        Protection(option=symbol, state="on" if value == "y" else "off", what="", dyno="more")
        for symbol, value in config.items()
        if symbol.startswith("MITIGATION_") and symbol not in names
    ]
    return (*listed, *unlisted)


def _name_in(row: HardeningRow, config: Mapping[str, str]) -> str:
    return next((name for name in row.names if name in config), row.option)


def _state(row: HardeningRow, config: Mapping[str, str]) -> State:
    values = [config[name] for name in row.names if name in config]
    if values:
        return "on" if "y" in values else "off"
    return "no such option" if all(_is_on(need, config) for need in row.needs) else "off"


def _names_of(option: str) -> tuple[str, ...]:
    return table()[option].names if option in table() else (option,)


def _is_on(option: str, config: Mapping[str, str]) -> bool:
    return any(config.get(name) == "y" for name in _names_of(option))


def to_be_met(
    asks: Collection[KconfigRequest], config: Mapping[str, str], overruled: Collection[str], tree: Path
) -> list[KconfigRequest]:
    """Return the requests of a base that must be met: without those for hardening whose absence is allowed.

    These are requests that are met under another name, those that went with an option which the recipe itself turned
    off, and those that the source in `tree` doesn't know: each source has other mitigations.
    """
    option_of = {name: option for option, row in table().items() for name in row.names}
    others = [request for request in asks if request.symbol not in option_of]
    hardening = {
        request: option_of[request.symbol]
        for request in asks
        if request.symbol in option_of and not is_met(request, config)
    }
    missed = [
        request
        for request, option in hardening.items()
        if not _is_on(option, config) and not _is_turned_off(option, config, overruled)
    ]
    known = read_tree(tree).entries if missed else {}
    return [*others, *(request for request in missed if request.symbol in known)]


def _is_turned_off(option: str, config: Mapping[str, str], overruled: Collection[str]) -> bool:
    """Return whether the recipe asked about this option, or one that it needs, and it is not on."""
    if _is_on(option, config):
        return False
    needs = table()[option].needs if option in table() else ()
    asked = any(name in overruled for name in _names_of(option))
    return asked or any(_is_turned_off(need, config, overruled) for need in needs)


def candidates(tree: Path) -> set[str]:
    """Return the options of a kernel source that hardening.txt must have if `make defconfig` turns them on."""
    entries = read_tree(tree).entries
    asked = {
        symbol
        for symbol, definitions in entries.items()
        if any(_protects(entry) for entry in definitions if entry.prompts)
    }
    fragments = [tree / path for path in RECOMMENDED if (tree / path).is_file()]
    wanted = [read_config(path.read_text(encoding="utf-8")) for path in fragments]
    recommended = {symbol for config in wanted for symbol, value in config.items() if value == "y"}
    return {symbol for symbol in asked | recommended if not symbol.endswith("_NONE")}


def _protects(entry: KconfigEntry) -> bool:
    in_menu = MENUS & set(entry.depends) or entry.place.startswith(f"{HARDENING_MENU}:")
    return bool(in_menu or ELSEWHERE.fullmatch(entry.symbol))
