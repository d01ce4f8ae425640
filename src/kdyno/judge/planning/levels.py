"""How much of the noise comes from where: components of variance of layouts, boots and iterations.

Nested analysis of variance by its moments (Searle, Casella & McCulloch 1992, 3.4), after Kalibera & Jones (ISMM 2013).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdyno.arrays import Values
from kdyno.frozen import Frozen


class Components(Frozen):
    """Variances of the logarithm of one value, by the level that makes them; what comes out negative is 0."""

    layout: float | None
    """Between layouts of one variant; None where fewer than two were measured: it is then part of nothing."""
    boot: float
    iteration: float | None
    """Within a boot; None where each boot has a single reading: it is then part of `boot`."""
    layouts: int
    boots: int
    iterations: float
    """Readings of a boot, on (harmonic) average."""


def components(nested: Sequence[Sequence[Values]]) -> Components | None:
    """Return the components from logarithms, [layout][boot] -> readings of shape (iterations,).

    Levels need not be balanced. For a comparison pass differences of logarithms, variant minus baseline, boot by boot:
    what blocks share is then gone. None with fewer than two boots in all, or without two in any layout.
    """
    boots = [[readings for readings in layout if len(readings)] for layout in nested]
    boots = [layout for layout in boots if layout]
    sizes = np.array([len(readings) for layout in boots for readings in layout], dtype=float)
    df_boot = len(sizes) - len(boots)
    if df_boot < 1:
        return None
    df_iteration = int(sizes.sum()) - len(sizes)
    within = sum(float(((readings - readings.mean()) ** 2).sum()) for layout in boots for readings in layout)
    iteration = within / df_iteration if df_iteration else None
    means = [np.array([readings.mean() for readings in layout]) for layout in boots]
    # from unweighted means of boots: with medians or means per boot this is what the judge compares
    between_boots = sum(float(((of_layout - of_layout.mean()) ** 2).sum()) for of_layout in means) / df_boot
    share = float((1 / sizes).mean())
    boot = max(0.0, between_boots - share * (iteration or 0.0))
    layout = None
    if len(boots) > 1:
        centres = np.array([of_layout.mean() for of_layout in means])
        per_layout = float(np.mean([1 / len(of_layout) for of_layout in means]))
        layout = max(0.0, float(np.var(centres, ddof=1)) - per_layout * between_boots)
    return Components(
        layout=layout,
        boot=boot,
        iteration=iteration,
        layouts=len(boots),
        boots=len(sizes),
        iterations=1 / share,
    )
