"""What is tried and what comes of it: files given to choices, and the cost of the kernel that this makes. Pure.

A cost is a part of the reference's modelled cycles: 1 is the reference, whole; 0.01 is a hundredth of it. Every
benchmark weighs alike, as it does in the geometric mean that the verdict is about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""One for each replicate, of shape (R,): replicate r has link order r and boot seed r, in every trial."""

Assignment = Mapping[str, str]
"""By source file, the choice that compiles it; the reference compiles all others."""


@dataclass(frozen=True, eq=False)
class CostTrial:
    """The cost of one kernel."""

    total: Values
    by_file: Mapping[str, Values]
    """Of the code that each source file became; what no file's code did itself is in the total alone."""

    def cost_of(self, file: str) -> Values:
        """Zeros for a file whose code was not executed."""
        return self.by_file.get(file, np.zeros_like(self.total))


def gain(before: Values, after: Values) -> float:
    """Mean saving; positive where `after` costs less."""
    return float(np.mean(before - after))
