"""The Kconfig symbols and kernel parameters that kdyno knows as knobs of a search: data/search-knobs.toml, and the
options that protect a kernel in data/hardening.txt.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import get_args

from kdyno.base import toml
from kdyno.base.errors import UserError
from kdyno.base.frozen import Frozen
from kdyno.kernel.hardening import table as protecting_options
from kdyno.runs.experiment.space import Risk

MITIGATION = "MITIGATION"
"""A part of the name of each option that is a mitigation."""
RISKS: tuple[Risk, ...] = get_args(Risk)
"""From none to the worst."""
GUARDED_SYSCTL = "kernel"
"""The directory of sysctl that has settings of protection."""


class UnlistedKnob(UserError):
    message = "[space.knobs] {key}: kdyno's list of knobs has no {name}"
    hint = 'if you know what it does, write what it risks: {{ choices = [...], risk = "none" }}; risks: {risks}'


class ListedKnob(Frozen):
    """A symbol or a parameter."""

    name: str
    what: str
    """Its effect, in a few words."""
    risk: Risk
    at: tuple[str, ...] = ()
    """The values that have the risk; empty: all that set it."""
    says: str
    """Who says so."""

    def risk_of(self, value: str) -> Risk:
        """Return the risk of a value as Kconfig or the command line has it."""
        return self.risk if not self.at or value in self.at else "none"


class _ListFile(Frozen):
    symbol: tuple[ListedKnob, ...]
    parameter: tuple[ListedKnob, ...]
    flag: tuple[ListedKnob, ...]


@cache
def _file() -> _ListFile:
    text = files("kdyno").joinpath("data", "search-knobs.toml").read_text(encoding="utf-8")
    return _ListFile.model_validate(toml.parse(text))


@cache
def symbols() -> dict[str, ListedKnob]:
    """Return the Kconfig symbols by name, those that protect a kernel included."""
    protecting = {
        name: ListedKnob(
            name=name,
            what=row.what,
            risk="mitigation" if MITIGATION in row.option else "hardening",
            at=("n",),
            says="data/hardening.txt",
        )
        for row in protecting_options().values()
        for name in row.names
    }
    return protecting | {row.name: row for row in _file().symbol}


@cache
def parameters() -> dict[str, ListedKnob]:
    """Return the kernel parameters by name."""
    return {row.name: row for row in _file().parameter}


@cache
def flags() -> dict[str, ListedKnob]:
    """Return the flags of compilers by name."""
    return {row.name: row for row in _file().flag}


def risk_of(field: str, name: str, value: str, key: str) -> Risk:
    """Return the risk of a value of a knob: the worst one of several words. Raises UnlistedKnob."""
    match field:
        case "kconfig":
            if name not in symbols():
                raise _unlisted(key, f"Kconfig symbol {name}")
            return symbols()[name].risk_of(value)
        case "sysctl":
            if name.replace("/", ".").startswith(f"{GUARDED_SYSCTL}."):
                raise _unlisted(key, f"setting {name}")
            return "none"
        case "cmdline":
            return _worst(_risk_of_parameter(word, key) for word in value.split())
        case "cflags":
            return _worst(_risk_of_flag(word) for word in value.split())
        case _:
            return "none"


def _risk_of_parameter(word: str, key: str) -> Risk:
    name, _, value = word.partition("=")
    if name not in parameters():
        raise _unlisted(key, f"kernel parameter {name}")
    return parameters()[name].risk_of(value)


def _risk_of_flag(word: str) -> Risk:
    name, _, value = word.partition("=")
    return flags()[name].risk_of(value) if name in flags() else "none"


def _worst(risks: Iterable[Risk]) -> Risk:
    return max(risks, key=RISKS.index, default="none")


def _unlisted(key: str, name: str) -> UnlistedKnob:
    return UnlistedKnob(key=key, name=name, risks=", ".join(RISKS))
