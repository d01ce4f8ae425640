"""The scaling of one workload: the measurements, both laws, and the law that describes them better."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdyno.base.frozen import Frozen
from kdyno.judge.stats.estimate import CONFIDENCE
from kdyno.judge.stats.scaling.bootstrap import DRAWS, SEED, Drawn, drawn_cases, no_interval_reason, resample
from kdyno.judge.stats.scaling.fit import fit_law
from kdyno.judge.stats.scaling.laws import NEEDED, TITLES, Law, LawFit
from kdyno.judge.stats.scaling.least_squares import Data
from kdyno.judge.stats.scaling.levels import ProcessLevel, ScalingPoint, points_of, require_usable

TOLD_APART = 2.0
"""Models whose AICc differs by less are not distinguished (Burnham and Anderson, 2002)."""


class Scaling(Frozen):
    """The scaling of one workload: the measurements, and both laws."""

    confidence: float
    points: tuple[ScalingPoint, ...]
    drawn: Drawn
    """The unit that the bootstrap draws."""
    amdahl: LawFit | None
    no_amdahl: str
    """The reason why it can't be fitted; empty if it is fitted."""
    usl: LawFit | None
    no_usl: str
    aicc_gain: float | None
    """AICc of Amdahl's law less that of the USL: above 0 the USL is the better description. None if not known."""
    better: Law | None
    """The better law; None if they can't be distinguished."""

    @property
    def fits(self) -> tuple[LawFit, ...]:
        return tuple(fit for fit in (self.amdahl, self.usl) if fit is not None)


def scaling(
    levels: Sequence[ProcessLevel], largest: int | None = None, draws: int = DRAWS, seed: int = SEED
) -> Scaling:
    """Fit both laws. `largest`: also predict up to this n; predictions beyond the measured range are marked.

    Raise NoThroughput, NoSuchCount, NotAscending and UnusableThroughput.
    """
    require_usable(levels)
    drawn, labels = drawn_cases(levels)
    data = Data.from_levels(levels)
    no_interval = no_interval_reason(levels, labels, drawn)
    resampled = None if no_interval else resample(levels, labels, draws, np.random.default_rng(seed))
    fits: dict[Law, LawFit] = {}
    reasons: dict[Law, str] = {"amdahl": "", "usl": ""}
    for law, needed in NEEDED.items():
        if len(levels) < needed:
            reasons[law] = f"{TITLES[law]} needs {needed} different n, and there {_number_phrase(len(levels))}"
        else:
            fits[law] = fit_law(law, data, resampled, no_interval, max(largest or 0, levels[-1].n))
    amdahl, usl = fits.get("amdahl"), fits.get("usl")
    gain = amdahl.aicc - usl.aicc if amdahl and usl and None not in (amdahl.aicc, usl.aicc) else None  # type: ignore[operator]
    return Scaling(
        confidence=CONFIDENCE,
        points=points_of(levels),
        drawn=drawn,
        amdahl=amdahl,
        no_amdahl=reasons["amdahl"],
        usl=usl,
        no_usl=reasons["usl"],
        aicc_gain=gain,
        better=None if gain is None or abs(gain) < TOLD_APART else "usl" if gain > 0 else "amdahl",
    )


def _number_phrase(count: int) -> str:
    return f"are {count}" if count > 1 else "is one"
