"""What a knob is: a function (value of the recipe, Context) -> Contribution, called before anything is built.

It checks the value, and raises a UserError if it can't be had with this source or compiler.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pydantic import Field

from kdyno.frozen import Frozen
from kdyno.kernel.patches import Patch
from kdyno.kernel.source import Source
from kdyno.state import State
from kdyno.toolchain import Toolchain


class Ask(Frozen):
    """A Kconfig symbol (without CONFIG_) and the value that it must have, as .config spells it; `n` is not set."""

    symbol: str
    value: str
    by: str
    """Who asked, for people: `opt = "Os"`, `kconfig`, `small.config:3`."""


class Contribution(Frozen):
    """What one value of one knob adds to a build."""

    kcflags: tuple[str, ...] = ()
    kcppflags: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    asks: tuple[Ask, ...] = ()
    patches: tuple[Patch, ...] = ()
    cmdline: tuple[str, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    """Set for every make. It may decide the last link, and is part of the image's key; no object may depend on it."""
    facts: tuple[str, ...] = ()
    """What else decides the image, such as what `native` stands for here; part of its key."""
    needs: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo without which the image meets an illegal instruction."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how the value was understood."""


@dataclass(frozen=True)
class Context:
    """What a knob may look at."""

    source: Source
    toolchain: Toolchain
    state: State


def combined(contributions: Iterable[Contribution]) -> Contribution:
    """All contributions as one, in order."""
    parts = list(contributions)
    return Contribution(
        kcflags=tuple(word for part in parts for word in part.kcflags),
        kcppflags=tuple(word for part in parts for word in part.kcppflags),
        make=tuple(word for part in parts for word in part.make),
        asks=tuple(ask for part in parts for ask in part.asks),
        patches=tuple(patch for part in parts for patch in part.patches),
        cmdline=tuple(word for part in parts for word in part.cmdline),
        environment={name: value for part in parts for name, value in part.environment.items()},
        facts=tuple(fact for part in parts for fact in part.facts),
        needs=tuple(flag for part in parts for flag in part.needs),
        notes=tuple(note for part in parts for note in part.notes),
    )
