"""A knob: one field of the recipe, the contribution of its value to a build, and its role in an experiment."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field

from kdyno.base.cpu import Cpu
from kdyno.base.frozen import Frozen
from kdyno.base.state import State
from kdyno.kernel.arch import X86_64, Arch
from kdyno.kernel.delegation.plan_file import DelegationPlan
from kdyno.kernel.delegation.resolved import ProfileUse
from kdyno.kernel.inputs import Input
from kdyno.kernel.patches import Patch
from kdyno.kernel.recipe import RUNTIME, Training
from kdyno.kernel.source import KernelSource
from kdyno.kernel.toolchain import Toolchain


class KconfigRequest(Frozen):
    """A Kconfig symbol (without CONFIG_) and the value that it must have, as .config spells it; `n` is not set."""

    symbol: str
    value: str
    by: str
    """The origin, for people: `opt = "Os"`, `kconfig`, `small.config:3`."""


class Contribution(Frozen):
    """The contribution of one value of one knob to a build."""

    kcflags: tuple[str, ...] = ()
    kcppflags: tuple[str, ...] = ()
    make: tuple[str, ...] = ()
    asks: tuple[KconfigRequest, ...] = ()
    patches: tuple[Patch, ...] = ()
    environment: dict[str, str] = Field(default_factory=dict)
    """Variables set for every make. They may decide the last link, and are part of the image's key; no object may
    depend on them.
    """
    inputs: tuple[Input, ...] = ()
    """Files that words of make or values of the environment name by their placeholders, `@order@`."""
    delegation: DelegationPlan | None = None
    """The files for which ccd makes another choice, as written."""
    profiles: tuple[ProfileUse, ...] = ()
    """Profiles of which ccd gives clang a part for each source; their inputs are among `inputs`."""
    facts: tuple[str, ...] = ()
    """Other facts that decide the image, such as the meaning of `native` here; part of its key."""
    needs: tuple[str, ...] = ()
    """Flags of /proc/cpuinfo without which the image meets an illegal instruction."""
    notes: tuple[str, ...] = ()
    """Notes for a reader on how the value was understood."""


Trained = Callable[[str, Training, str], Input]
"""From the name of an input, its training and its exporter (by its name in runs/exporters.py) to the input."""


def no_boots(name: str, training: Training, exporter: str) -> Input:  # noqa: ARG001
    """Raise an error: the training function of a Context that can't plan boots."""
    raise AssertionError(f"only runs/prepare.py can plan the training on {training.variant} that {name} needs")


@dataclass(frozen=True)
class Host:
    """The facts that a knob may use before there is a source."""

    toolchain: Toolchain
    state: State


@dataclass(frozen=True, kw_only=True)
class KnobContext(Host):
    """The facts that a knob may use when it contributes."""

    source: KernelSource
    cpu: Callable[[], Cpu]
    """Reads the CPU of the host that will boot the image."""
    trained: Trained = no_boots
    """The input that a training gives: its digest is known, and it is made before the build."""
    patches: tuple[str, ...] = ()
    """The patches of the recipe: another knob may use one."""
    arch: Arch = X86_64

    @property
    def linker(self) -> str:
        """Return the program that makes the last link."""
        return self.arch.linker(self.toolchain)


def as_it_is(value: Any, base: Path) -> Any:  # noqa: ARG001
    """Return the value unchanged: most values hold no paths."""
    return value


def every_value(value: Any, host: Host) -> None:
    """Accept every value: most values cannot be checked before the source is known."""


@dataclass(frozen=True)
class Knob:
    """One field of the recipe. The field's type is in recipe.py."""

    field: str
    contribute: Callable[[Any, KnobContext], Contribution]
    """Called before anything is built, after `check`; raises UserError if the value can't be had with this source."""
    check: Callable[[Any, Host], None] = every_value
    """Called before a source is unpacked, which may take a minute; raises UserError for what can be refused by then."""
    in_matrix: bool = False
    """Whether a matrix may vary it: it has one value, which can be part of a variant's name."""
    located: Callable[[Any, Path], Any] = as_it_is
    """The value with its paths absolute; relative ones start from the second argument."""

    @property
    def runtime(self) -> bool:
        """Return whether the knob only affects the start of an image: it can be set for a running or a given kernel,
        too.
        """
        return self.field in RUNTIME


def combined(contributions: Iterable[Contribution]) -> Contribution:
    """Return all contributions as one, in order. Arguments that two knobs share go to the compiler or make once."""
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
