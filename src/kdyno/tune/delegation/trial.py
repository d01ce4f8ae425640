"""A trial: an assignment of files to choices, and the cost of its kernel. Pure.

A cost is a part of the reference's modelled cycles or of its time: 1 is the whole reference, 0.01 a hundredth of it.
Every benchmark has the same weight, as in the geometric mean of the verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""One value for each replicate, of shape (R,). Replicate r has link order r and boot seed r in every trial."""

Assignment = Mapping[str, str]
"""The choice by source file; the reference compiles all other files."""


Ratios = Sequence[Mapping[str, float]]
"""By replicate, and in it by benchmark: the time of an operation, as a part of the reference's."""


@dataclass(frozen=True, eq=False)
class CostTrial:
    """The cost of one kernel."""

    total: Values
    by_file: Mapping[str, Values]
    """The cost of the code of each source file. The cost of code without a file is only in the total."""

    def cost_of(self, file: str) -> Values:
        """Return the cost of a file; zeros if its code was not executed."""
        return self.by_file.get(file, np.zeros_like(self.total))


def gain(reference: Values, candidate: Values) -> float:
    """Return the mean saving; positive if `candidate` costs less."""
    return float(np.mean(reference - candidate))
