"""Tells whether a .config holds the requested options, and why not. Requested must be a subset of final."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path

from kdyno.base.errors import Unbuildable
from kdyno.base.frozen import Frozen
from kdyno.kernel.arch import X86_64
from kdyno.kernel.kconfig_expr import parse
from kdyno.kernel.kconfig_tree import KconfigEntry, KconfigTree, read_tree
from kdyno.kernel.knobs.base import KconfigRequest
from kdyno.kernel.knobs.kconfig import SET, UNSET, refuse_commands

VALUES = {
    "bool": (re.compile("[yn]"), "y or n"),
    "tristate": (re.compile("[ymn]"), "y, m or n"),
    "int": (re.compile(r"-?[0-9]+"), "a whole number"),
    "hex": (re.compile(r"(?:0[xX])?[0-9A-Fa-f]+"), "a number such as 0x1000"),
}
"""Type of a symbol -> its values as .config spells them, and in words; a string may be any."""


class ConfigRefused(Unbuildable):
    message = "the kernel's configuration didn't accept {count} of the requests:\n{list}"
    hint = "correct their values, request their dependencies as well, or drop them"


class Unmet(Frozen):
    """A request that the final .config doesn't hold, and why."""

    request: KconfigRequest
    actual: str
    why: str
    instead: str = ""
    """The member of its choice that is set instead."""

    @property
    def text(self) -> str:
        wanted = f"CONFIG_{self.request.symbol}={self.request.value}"
        return f"{wanted} (asked by {self.request.by}) is {self.actual}: {self.why}"


def read_config(text: str) -> dict[str, str]:
    """Return the symbols of a .config and their values; what is not set is n."""
    config = {}
    for line in text.split("\n"):  # as Kconfig does: other line ends are part of a value
        if match := SET.fullmatch(line):
            config[match[1]] = match[2]
        elif match := UNSET.fullmatch(line):
            config[match[1]] = "n"
    return config


def refuse_what_runs(config: Mapping[str, str]) -> None:
    """Raise ValueRuns if a value of the final .config could reach a command of the build, whoever it is from."""
    refuse_commands(KconfigRequest(symbol=symbol, value=value, by=".config") for symbol, value in config.items())


def unmet(asks: Iterable[KconfigRequest], config: Mapping[str, str], tree: Path, srcarch: str = "x86") -> list[Unmet]:
    """Return each request that isn't met, explained from the Kconfig files of the tree, which are read only if there is
    one. `srcarch` is the architecture's directory in arch/.
    """
    missing = [request for request in asks if not is_met(request, config)]
    if not missing:
        return []
    kconfig = read_tree(tree, srcarch)
    return [
        Unmet(
            request=request,
            actual=config.get(request.symbol, "not there"),
            why=explain(request, config, kconfig),
            instead=chosen_instead(request.symbol, config, kconfig),
        )
        for request in missing
    ]


def refuse_unknown(asks: Iterable[KconfigRequest], tree: Path, srcarch: str = "x86") -> None:
    """Raise ConfigRefused for what no configuration of the tree can hold, as `refuse` does after configuring: symbols
    that no Kconfig file defines, values that the type of a symbol doesn't have, and two members of one choice.

    A symbol that isn't there is n, so that may be requested.
    """
    kconfig = kconfig_of(tree, srcarch)
    requests = list(asks)
    failures = [
        Unmet(request=ask, actual="not there", why=explain(ask, {}, kconfig))
        for ask in requests
        if ask.symbol not in kconfig.entries and not is_met(ask, {})
    ]
    failures += [
        Unmet(request=ask, actual="not possible", why=why)
        for ask in requests
        if (why := _wrong_value(ask, kconfig) or _rival(ask, requests, kconfig))
    ]
    if kconfig.is_whole:
        refuse(failures)


def _wrong_value(request: KconfigRequest, kconfig: KconfigTree) -> str:
    """Return why a symbol of this type can't have the requested value; empty if it may."""
    types = {entry.type for entry in kconfig.entries.get(request.symbol, []) if entry.type}
    kind = types.pop() if len(types) == 1 else ""
    if kind not in VALUES or request.value == "n":
        return ""
    pattern, expected = VALUES[kind]
    return "" if pattern.fullmatch(request.value) else f"it is of type {kind}: expected {expected}"


def _rival(request: KconfigRequest, requests: Iterable[KconfigRequest], kconfig: KconfigTree) -> str:
    """Return why a choice can't have this member and another one that is requested as well; empty if there is none."""
    choice = _choice_of(request.symbol, kconfig)
    rivals = [
        other.symbol
        for other in requests
        if choice
        and other.symbol > request.symbol
        and other.value == "y"
        and _choice_of(other.symbol, kconfig) == choice
    ]
    if request.value != "y" or not rivals:
        return ""
    return f"{', '.join(rivals)} is requested as well, and only one member of their choice can be set"


def _choice_of(symbol: str, kconfig: KconfigTree) -> str:
    """Return the place of the only choice that a symbol is a member of; empty if it is in none, or in several."""
    choices = {entry.choice for entry in kconfig.entries.get(symbol, [])}
    return next(iter(choices)) if len(choices) == 1 else ""


@lru_cache(maxsize=4)
def kconfig_of(tree: Path, srcarch: str) -> KconfigTree:
    """Return the Kconfig files of a tree, read once for the variants of an experiment, whose trees are the same as long
    as it is planned.
    """
    return read_tree(tree, srcarch)


def refuse(failures: Iterable[Unmet]) -> None:
    """Raise ConfigRefused, which names every one of them, if there are any."""
    if texts := [f"  {failure.text}" for failure in failures]:
        raise ConfigRefused(count=len(texts), list="\n".join(texts))


def is_met(request: KconfigRequest, config: Mapping[str, str]) -> bool:
    """Return whether a request is met. Numbers are compared as numbers; a symbol that isn't there is n, or an empty
    text.
    """
    actual = config.get(request.symbol, '""' if request.value == '""' else "n")
    if actual == request.value:
        return True
    try:
        return int(actual, 0) == int(request.value, 0)
    except ValueError:
        return False


def explain(request: KconfigRequest, config: Mapping[str, str], kconfig: KconfigTree) -> str:
    """Return why a symbol doesn't have the requested value. Pure."""
    entries = kconfig.entries.get(request.symbol)
    if not entries:
        near = difflib.get_close_matches(request.symbol, kconfig.entries, n=1, cutoff=0.75)
        near = near or difflib.get_close_matches(request.symbol.upper(), kconfig.entries, n=1, cutoff=0.75)
        place = "" if kconfig.srcarch == X86_64.source else f" for ARCH={kconfig.srcarch}"
        return f"this source has no such symbol{place}" + (f"; did you mean {near[0]}?" if near else "")
    selecting = selectors(request.symbol, config, kconfig)
    if request.value == "n" and selecting:
        return f"it is selected by {', '.join(selecting)}"
    settable = [entry for entry in entries if entry.prompts]
    if not settable:
        all_selectors = sorted({symbol for symbol, _ in kconfig.selects.get(request.symbol, [])})
        listed = f"; it is selected by {', '.join(all_selectors[:8])}" if all_selectors else ""
        return f"it has no prompt ({entries[0].place}), so it can't be set directly{listed}"
    reasons = min((blamed(entry, config) for entry in settable), key=len)
    if reasons:
        deeper = [f"{reason}{_behind(reason, config, kconfig)}" for reason in reasons]
        return f"unmet dependency: {'; '.join(deeper)} ({settable[0].place})"
    return _other_reason(request, settable[0], config, kconfig)


def _behind(reason: str, config: Mapping[str, str], kconfig: KconfigTree) -> str:
    """Return what a symbol without a prompt, which nobody can set, lacks in its turn."""
    entries = kconfig.entries.get(reason.partition(" ")[0], [])
    if not entries or any(entry.prompts for entry in entries):
        return ""
    lacking = min((blamed(entry, config) for entry in entries), key=len)
    return f" for want of {', '.join(lacking)}" if lacking else ""


def _other_reason(request: KconfigRequest, entry: KconfigEntry, config: Mapping[str, str], kconfig: KconfigTree) -> str:
    if entry.choice:
        if request.value == "n":
            return f"one of its choice must be set: {', '.join(_members(entry.choice, kconfig)[:8])}"
        if chosen := chosen_instead(request.symbol, config, kconfig):
            return f"its choice has one member that is set, and that is {chosen}"
    if request.value == "m":
        return "it can't be a module here"
    return f"its dependencies are met, but Kconfig doesn't take this value; see its type and range at {entry.place}"


def _members(choice: str, kconfig: KconfigTree) -> list[str]:
    return [name for name, entries in kconfig.entries.items() if any(entry.choice == choice for entry in entries)]


def chosen_instead(symbol: str, config: Mapping[str, str], kconfig: KconfigTree) -> str:
    """Return the other member of this symbol's choice that is set; empty if there is none."""
    choices = {entry.choice for entry in kconfig.entries.get(symbol, []) if entry.choice}
    others = (name for choice in choices for name in _members(choice, kconfig) if name != symbol)
    return next((name for name in others if config.get(name) == "y"), "")


def selectors(symbol: str, config: Mapping[str, str], kconfig: KconfigTree) -> list[str]:
    """Return the symbols that select this one now."""
    return sorted(
        {
            name
            for name, condition in kconfig.selects.get(symbol, [])
            if config.get(name, "n") != "n" and _level(condition, config)
        }
    )


def blamed(entry: KconfigEntry, config: Mapping[str, str]) -> list[str]:
    """Return the leaves of an entry's dependencies and prompt that aren't y, without repetition."""
    texts = [text for text in (*entry.depends, *entry.prompts[:1]) if _level(text, config) != 2]
    return list(dict.fromkeys(leaf for text in texts for leaf in parse(text).blame(config, wanted=True)))


def _level(text: str, config: Mapping[str, str]) -> int:
    try:
        return parse(text).level(config)
    except ValueError:
        return 2
