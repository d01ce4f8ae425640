"""Which symbols of a configuration stay, which may go, and why: from what ran, and from what Kconfig says. Pure."""

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
"""What may go, in the order in which it is tried."""
FIRM: tuple[Why, ...] = ("load", "asked", "dependency", "culprit", "untried")
"""What a smaller kernel must still have. The others go with what they belong to."""


class SymbolReason(Frozen):
    """Why a symbol stays or may go."""

    why: Why
    """`load`: the load ran code of it. `asked`: kdyno, the workload or the user wants it. `kind`: fit-kinds.toml keeps
    it. `choice`: it is one of several of which one must be set. `derived`: Kconfig sets it by others. `no code`: there
    is nothing of it that could run. `dependency`: what stays depends on it. `selected`: what stays selects it.
    `culprit`: without it the kernel doesn't build, boot or pass. `untried`: no kernel was left to try it with. `start`:
    its code ran only as often as without the load. `never`: none of its code ran. `along`: it went with another."""
    text: str
    firm: bool = False
    """Whether a kernel without it won't do."""


def find_reasons(
    config: Mapping[str, str], kconfig: KconfigTree, evidence: Mapping[str, Evidence], required: Mapping[str, str]
) -> dict[str, SymbolReason]:
    """Why each symbol that is y in the configuration stays or may go; `required` says of some who wants them."""
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
    """The symbols that may go: what never ran first, neighbours in Kconfig beside each other."""

    def place(symbol: str) -> tuple[int, str, int]:
        file, _, line = kconfig.entries[symbol][0].place.partition(":")
        return REMOVABLE.index(reasons[symbol].why), file, int(line or 0)

    return sorted((symbol for symbol, reason in reasons.items() if reason.why in REMOVABLE), key=place)


def find_dependencies(
    candidates: Collection[str], reasons: Mapping[str, SymbolReason], config: Mapping[str, str], kconfig: KconfigTree
) -> dict[str, SymbolReason]:
    """Of the candidates those that firm symbols can't do without, as far as this reader of Kconfig can tell."""
    removed = set(candidates)
    dependencies: dict[str, SymbolReason] = {}
    waiting = [symbol for symbol, reason in reasons.items() if reason.firm and symbol not in removed]
    while waiting:
        without = {**config, **dict.fromkeys(removed, "n")}
        for symbol in waiting:
            for needed, text in _needed(symbol, removed, config, without, kconfig).items():
                dependencies.setdefault(needed, SymbolReason(why="dependency", text=text, firm=True))
        new = removed & dependencies.keys()
        removed -= new
        waiting = [*waiting, *sorted(new)] if new else []
    return dependencies


def _needed(
    symbol: str, removed: Collection[str], config: Mapping[str, str], without: Mapping[str, str], kconfig: KconfigTree
) -> dict[str, str]:
    """The symbols in `removed` that this one depends on, or is selected by, and why."""
    entries = kconfig.entries.get(symbol, [])
    able = [entry for entry in entries if not blamed(entry, config)]
    needed: dict[str, str] = {}
    if able and all(blamed(entry, without) for entry in able):
        fewest = min((_leaves(entry, without) & set(removed) for entry in able), key=len)
        needed = dict.fromkeys(sorted(fewest), f"{symbol} depends on it")
    selecting = selectors(symbol, config, kconfig)
    is_derived = not any(entry.prompts for entry in entries)
    if is_derived and selecting and not selectors(symbol, without, kconfig):
        chosen = next(name for name in selecting if name in removed)
        needed.setdefault(chosen, f"it selects {symbol}")
    return needed


def _leaves(entry: KconfigEntry, config: Mapping[str, str]) -> set[str]:
    """The symbols that lack for an entry's dependencies to hold."""
    return {text.partition(" ")[0].partition("=")[0] for text in blamed(entry, config) if not text.startswith("!")}


def find_selected(reasons: Mapping[str, SymbolReason], config: Mapping[str, str], kconfig: KconfigTree) -> list[str]:
    """Firm symbols that others select, and that could be set by their own prompt: they needn't go with who selects."""
    return [
        symbol
        for symbol, reason in reasons.items()
        if reason.firm
        and any(entry.prompts and not entry.choice for entry in kconfig.entries.get(symbol, []))
        and selectors(symbol, config, kconfig)
    ]


def missing_firm(reasons: Mapping[str, SymbolReason], config: Mapping[str, str]) -> list[str]:
    """Firm symbols that a configuration doesn't have any more."""
    return [symbol for symbol, reason in reasons.items() if reason.firm and config.get(symbol) != "y"]


def with_whom(symbol: str, config: Mapping[str, str], final: Mapping[str, str], kconfig: KconfigTree) -> str:
    """The symbols with which one went that nobody switched off: it depends on them, or they selected it."""
    entries = [entry for entry in kconfig.entries.get(symbol, []) if not blamed(entry, config)]
    leaves = min((_leaves(entry, final) for entry in entries), key=len, default=set[str]())
    depended_on = sorted(leaf for leaf in leaves if config.get(leaf, "n") != "n")
    return ", ".join(depended_on or selectors(symbol, config, kconfig))
