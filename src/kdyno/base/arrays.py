"""Types of NumPy arrays, by what they hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""Measurements."""
Labels = NDArray[np.int64]
"""Numbers of blocks, boots or clusters: which one each value belongs to."""
