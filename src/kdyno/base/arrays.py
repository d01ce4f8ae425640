"""Types of NumPy's arrays, by what is in them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
"""Measurements."""
Labels = NDArray[np.int64]
"""Numbers of blocks, boots, clusters: of what each value is."""
