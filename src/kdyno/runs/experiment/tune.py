"""[tune]: what `kdyno tune delegation` may choose from, and what it must not have chosen by."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from kdyno.base.frozen import Frozen
from kdyno.kernel.delegation.plan_file import CompilerName, Words
from kdyno.measure.workload.lmbench import LmbenchWorkload

MOST_CHOICES = 20

ChoiceName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]*$", max_length=80)]


class CompilerChoice(Frozen):
    """A compiler and flags that a file of the kernel may be given to: a rule of a delegation plan."""

    compiler: CompilerName
    """`clang-19`, `gcc-12`, `zig`."""
    add: Words = ()
    """Flags that are appended, as this compiler spells them."""
    remove: Words = ()
    """Words of the call that are taken away, as Kbuild spells them."""


class TuneConfig(Frozen):
    """What is searched, and how hard."""

    choices: Annotated[dict[ChoiceName, CompilerChoice], Field(min_length=1, max_length=MOST_CHOICES)]
    """By name, what each hot file may be given to; the baseline's own compiler and flags are always among them."""
    held_out: LmbenchWorkload
    """Tests that nothing is chosen by: the result must hold there too."""
    hot: Annotated[float, Field(gt=0, le=1)] = 0.95
    """Files are tried that together hold this share of what C code of the kernel takes of the modelled cycles."""
    replicates: Annotated[int, Field(ge=2, le=100)] = 4
    """Link orders in which every trial is built, each booted once."""
