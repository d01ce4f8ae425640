"""What a knob is: one field of the recipe, what its value adds to a build, and what an experiment may do with it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from kdyno.base.cpu import Cpu
from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.delegation.resolved import ProfileUse
from kdyno.kernel.inputs import Input
from kdyno.kernel.patches import Patch
from kdyno.kernel.recipe import RUNTIME, Training
from kdyno.kernel.source import Source
from kdyno.kernel.toolchain import Toolchain


class KconfigRequest(Frozen):
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
    asks: tuple[KconfigRequest, ...] = ()
    patches: tuple[Patch, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    """Set for every make. It may decide the last link, and is part of the image's key; no object may depend on it."""
    inputs: tuple[Input, ...] = ()
    """Files that words of make or values of the environment name by their placeholders, `@order@`."""
    delegation: DelegationPlan | None = None
    """Which files ccd chooses otherwise for, as written."""
    profiles: tuple[ProfileUse, ...] = ()
    """What ccd gives clang a part of, for each source; their inputs are among `inputs`."""
    facts: tuple[str, ...] = ()
    """What else decides the image, such as what `native` stands for here; part of its key."""
    needs: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo without which the image meets an illegal instruction."""
    notes: tuple[str, ...] = ()
    """What a reader should know of how the value was understood."""


Trained = Callable[[str, Training, str], Input]
"""From the name of an input, its training and its exporter (by its name in run/exporters.py) to the input."""


def no_boots(name: str, training: Training, exporter: str) -> Input:  # noqa: ARG001
    """What stands in a Context where no boots can be planned."""
    raise AssertionError(f"only run/prepare.py can plan the training on {training.variant} that {name} needs")


@dataclass(frozen=True)
class Host:
    """What a knob may look at before there is a source."""

    toolchain: Toolchain
    state: State


@dataclass(frozen=True, kw_only=True)
class Context(Host):
    """What a knob may look at when it contributes."""

    source: Source
    cpu: Callable[[], Cpu]
    """Reads the CPU of the host that will boot the image."""
    trained: Trained = no_boots
    """The input that a training gives: its digest is known, and it is made before the build."""
    patches: tuple[str, ...] = ()
    """Those of the recipe: a patch may be what another knob goes by."""


def as_it_is(value: Any, base: Path) -> Any:  # noqa: ARG001
    """Most values hold no paths."""
    return value


def every_value(value: Any, host: Host) -> None:
    """Nothing can be said against most values as long as there is no source."""


@dataclass(frozen=True)
class Knob:
    """One field of the recipe. The field's type is in recipe.py."""

    field: str
    contribute: Callable[[Any, Context], Contribution]
    """Called before anything is built, after `check`; raises UserError if the value can't be had with this source."""
    check: Callable[[Any, Host], None] = every_value
    """Called before a source is unpacked, which may take a minute; raises UserError for what can be refused by then."""
    in_matrix: bool = False
    """Whether a matrix may vary it: it has one value, which can be part of a variant's name."""
    located: Callable[[Any, Path], Any] = as_it_is
    """The value with its paths absolute; relative ones start from the second argument."""

    @property
    def runtime(self) -> bool:
        """Whether it only starts an image: a kernel that runs, or is built, can be told it, too."""
        return self.field in RUNTIME


def combined(contributions: Iterable[Contribution]) -> Contribution:
    """All contributions as one, in order. What two knobs give in the same words goes to the compiler or make once."""
    parts = list(contributions)
    return Contribution(
        kcflags=tuple(word for words in dict.fromkeys(part.kcflags for part in parts) for word in words),
        kcppflags=tuple(word for part in parts for word in part.kcppflags),
        make=tuple(word for words in dict.fromkeys(part.make for part in parts) for word in words),
        asks=tuple(request for part in parts for request in part.asks),
        patches=tuple(patch for part in parts for patch in part.patches),
        environment={name: value for part in parts for name, value in part.environment.items()},
        inputs=tuple(file for part in parts for file in part.inputs),
        delegation=next((part.delegation for part in parts if part.delegation), None),
        profiles=tuple(profile for part in parts for profile in part.profiles),
        facts=tuple(fact for part in parts for fact in part.facts),
        needs=tuple(flag for part in parts for flag in part.needs),
        notes=tuple(note for part in parts for note in part.notes),
    )
