"""What the user said about the files; everything else is guessed, and the guess is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from kdyno.measurement import Correction, Direction

Format = Literal["csv", "table", "hyperfine", "pyperf", "lmbench", "stress-ng", "perf"]
FORMATS: tuple[Format, ...] = ("csv", "table", "hyperfine", "pyperf", "lmbench", "stress-ng", "perf")


@dataclass(frozen=True)
class Asked:
    format: Format | None = None
    """None: find it out."""
    baseline: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    """Role -> column, of the roles in roles.ROLES and of mean, sd."""
    values: tuple[str, ...] = ()
    """Columns with values; several of them are several benchmarks."""
    n: str | None = None
    """What summaries sum up: a number, or the column that has it."""
    unit: str = ""
    direction: Direction | None = None
    margin: float = 0.01
    alpha: float = 0.05
    correction: Correction = "holm"
