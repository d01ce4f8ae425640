"""The user's settings of the judge; everything else is guessed, and the report shows the guess."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kdyno.base.measurement import Correction, Direction


@dataclass(frozen=True)
class JudgeRequest:
    """The options of `kdyno judge`."""

    format: str | None = None
    """The name of a reader; None: recognise the format."""
    baseline: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """Role -> column, for the roles in roles.ROLES and for mean and sd; `test,host` for a benchmark of two columns."""
    pooled: tuple[str, ...] = ()
    """Columns whose values are taken together."""
    values: tuple[str, ...] = ()
    """Columns with values; several columns are several benchmarks."""
    wide: bool = False
    """Whether columns of numbers are variants."""
    decimal: Literal["", ".", ","] = ""
    """The decimal mark; empty: found out."""
    n: str | None = None
    """The number of values that a summary sums up: a number, or the column that holds it."""
    unit: str = ""
    """The unit of values that come without one."""
    direction: Direction | None = None
    margin: float = 0.01
    alpha: float = 0.05
    correction: Correction = "holm"
