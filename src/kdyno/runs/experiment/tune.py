"""The table [tune]: the choices of `kdyno tune delegation`, and the tests that it must not choose by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from kdyno.base.frozen import Frozen, one_of
from kdyno.kernel.delegation.plan_file import CompilerName, Words
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.lmbench import LmbenchWorkload
from kdyno.measure.workload.paths import PathsWorkload

MOST_CHOICES = 20

ChoiceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]


if TYPE_CHECKING:
    HeldOut = WorkloadSettings
else:
    HeldOut = one_of({"lmbench": LmbenchWorkload, "paths": PathsWorkload})


class CompilerChoice(Frozen):
    """A compiler and flags for files of the kernel: a rule of a delegation plan."""

    compiler: CompilerName
    """`clang-19`, `gcc-12`, `zig`."""
    add: Words = ()
    """Flags that are appended, in the spelling of this compiler."""
    remove: Words = ()
    """Words of the call that are removed, in the spelling of Kbuild."""


class TuneConfig(Frozen):
    """The choices and the effort of a search."""

    choices: Annotated[dict[ChoiceName, CompilerChoice], Field(min_length=1, max_length=MOST_CHOICES)]
    """By name, the choices for each hot file. The compiler and flags of the baseline are always among them."""
    held_out: HeldOut | None = None
    """Tests that the search doesn't use: the result must hold for them, too. None is for paths alone: the search uses
    one half of them."""
    hot: Annotated[float, Field(gt=0, le=1)] = 0.95
    """The share of the modelled cycles of the kernel's C code that the tried files hold together."""
    replicates: Annotated[int, Field(ge=2, le=100)] = 4
    """The number of link orders of every trial, each booted once."""
