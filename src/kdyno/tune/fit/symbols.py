"""Decides which symbols of a configuration stay and which may go, from executed code and from Kconfig. Pure."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.base.text import format_count
from kdyno.kernel.kconfig_check import blamed, selectors
from kdyno.kernel.kconfig_tree import KconfigEntry, KconfigTree
from kdyno.tune.fit.evidence import Evidence
from kdyno.tune.fit.kinds import kind_of

Why = Literal[
    "load",
    "asked",
    "kind",
    "choice",
    "derived",
    "no code",
    "dependency",
    "selected",
    "culprit",
    "untried",
    "start",
    "never",
    "along",
]
REMOVABLE: tuple[Why, ...] = ("never", "start")
"""The reasons of symbols that may go, in the order of the trials."""
FIRM: tuple[Why, ...] = ("load", "asked", "dependency", "culprit", "untried")
"""The reasons of symbols that a smaller kernel must have. Other symbols go with those that they belong to."""


class SymbolReason(Frozen):
    """The reason why a symbol stays or may go."""

    why: Why
    """`load`: the load ran code of it. `asked`: kdyno, the workload or the user needs it. `kind`: fit-kinds.toml keeps
    it. `choice`: it is a member of a choice. `derived`: Kconfig sets it by others. `no code`: it has no code that could
    run. `dependency`: a symbol that stays depends on it. `selected`: a symbol that stays selects it. `culprit`: without
    it the kernel doesn't build, boot or pass. `untried`: no kernel was left to try it with. `start`: its code ran only
    as often as without the load. `never`: none of its code ran. `along`: it went with another symbol."""
    text: str
    firm: bool = False
    """Whether a kernel without it fails."""


def find_reasons(
    config: Mapping[str, str], kconfig: KconfigTree, evidence: Mapping[str, Evidence], required: Mapping[str, str]
) -> dict[str, SymbolReason]:
    """Return the reason of each symbol that is y in the configuration. `required` has by symbol who needs it."""
    return {
        symbol: _reason(symbol, kconfig.entries.get(symbol, []), evidence.get(symbol, Evidence()), required)
        for symbol, value in config.items()
        if value == "y"
    }


def _reason(symbol: str, entries: list[KconfigEntry], evidence: Evidence, required: Mapping[str, str]) -> SymbolReason:
    if symbol in required:
        return SymbolReason(why="asked", text=required[symbol], firm=True)
    if evidence.load:
        return SymbolReason(why="load", text=f"the load ran {evidence.load.text}", firm=True)
    if not any(entry.prompts for entry in entries):
        return SymbolReason(why="derived", text="Kconfig sets it by other symbols")
    if any(entry.choice for entry in entries):
        return SymbolReason(why="choice", text="one of its choice must be set")
    if kind := kind_of(symbol, {entry.place.partition(":")[0] for entry in entries}):
        return SymbolReason(why="kind", text=kind.reason, firm=kind.firm)
    if not evidence.lines:
        return SymbolReason(why="no code", text="it has no code that could be seen to run")
    if evidence.start:
        return SymbolReason(
            why="start", text=f"only the start of the kernel ran code of it, such as {evidence.start.text}"
        )
    return SymbolReason(why="never", text=f"none of its {format_count(evidence.lines, 'line')} of code ran")


def removal_order(reasons: Mapping[str, SymbolReason], kconfig: KconfigTree) -> list[str]:
    """Return the symbols that may go: those that never ran first, neighbours in Kconfig side by side."""

    def place(symbol: str) -> tuple[int, str, int]:
        file, _, line = kconfig.entries[symbol][0].place.partition(":")
        return REMOVABLE.index(reasons[symbol].why), file, int(line or 0)

    return sorted((symbol for symbol, reason in reasons.items() if reason.why in REMOVABLE), key=place)


def find_dependencies(
    candidates: Collection[str], reasons: Mapping[str, SymbolReason], config: Mapping[str, str], kconfig: KconfigTree
) -> dict[str, SymbolReason]:
    """Return the reasons of the candidates that firm symbols need, as far as this reader of Kconfig shows it."""
    removed = set(candidates)
    dependencies: dict[str, SymbolReason] = {}
    waiting = [symbol for symbol, reason in reasons.items() if reason.firm and symbol not in removed]
    while waiting:
        reduced_config = {**config, **dict.fromkeys(removed, "n")}
        for symbol in waiting:
            for dependency, text in _needed_symbols(symbol, removed, config, reduced_config, kconfig).items():
                dependencies.setdefault(dependency, SymbolReason(why="dependency", text=text, firm=True))
        new = removed & dependencies.keys()
        removed -= new
        waiting = [*waiting, *sorted(new)] if new else []
    return dependencies


def _needed_symbols(
    symbol: str,
    removed: Collection[str],
    config: Mapping[str, str],
    reduced_config: Mapping[str, str],
    kconfig: KconfigTree,
) -> dict[str, str]:
    """Return the symbols in `removed` that this one depends on, or is selected by, with the reasons."""
    entries = kconfig.entries.get(symbol, [])
    able = [entry for entry in entries if not blamed(entry, config)]
    reason_by_symbol: dict[str, str] = {}
    if able and all(blamed(entry, reduced_config) for entry in able):
        fewest = min((_leaves(entry, reduced_config) & set(removed) for entry in able), key=len)
        reason_by_symbol = dict.fromkeys(sorted(fewest), f"{symbol} depends on it")
    selecting = selectors(symbol, config, kconfig)
    is_derived = not any(entry.prompts for entry in entries)
    if is_derived and selecting and not selectors(symbol, reduced_config, kconfig):
        selector = next(name for name in selecting if name in removed)
        reason_by_symbol.setdefault(selector, f"it selects {symbol}")
    return reason_by_symbol


def _leaves(entry: KconfigEntry, config: Mapping[str, str]) -> set[str]:
    """Return the missing symbols of an entry's dependencies."""
    return {text.partition(" ")[0].partition("=")[0] for text in blamed(entry, config) if not text.startswith("!")}


def find_selected(reasons: Mapping[str, SymbolReason], config: Mapping[str, str], kconfig: KconfigTree) -> list[str]:
    """Return firm symbols that others select, but that have a prompt: they needn't go with their selectors."""
    return [
        symbol
        for symbol, reason in reasons.items()
        if reason.firm
        and any(entry.prompts and not entry.choice for entry in kconfig.entries.get(symbol, []))
        and selectors(symbol, config, kconfig)
    ]


def missing_firm(reasons: Mapping[str, SymbolReason], config: Mapping[str, str]) -> list[str]:
    """Return the firm symbols that a configuration lacks."""
    return [symbol for symbol, reason in reasons.items() if reason.firm and config.get(symbol) != "y"]


def removal_causes(symbol: str, config: Mapping[str, str], final: Mapping[str, str], kconfig: KconfigTree) -> str:
    """Return the symbols with which one went along: it depends on them, or they selected it."""
    entries = [entry for entry in kconfig.entries.get(symbol, []) if not blamed(entry, config)]
    leaves = min((_leaves(entry, final) for entry in entries), key=len, default=set[str]())
    dependencies = sorted(leaf for leaf in leaves if config.get(leaf, "n") != "n")
    return ", ".join(dependencies or selectors(symbol, config, kconfig))
