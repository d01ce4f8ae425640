"""A CPU family and measurements that need no CPU, no QEMU and no probe."""

from __future__ import annotations

import numpy as np

from kdyno.measure.cycles.events import UNSEEN
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.cycles.measure import FitInput, FittedProgram
from kdyno.measure.cycles.predict import weigh

KINDS = ("chase", "branch", "rep")


def family() -> Family:
    return load_family("generic")


def measured(per_kind: int = 8) -> FitInput:
    """Programs of three kinds, every other one held out; natively what the family's weights say, more or less."""
    rng = np.random.default_rng(7)
    names = ("instructions", *family().model.weights)
    programs = tuple(
        FittedProgram(f"{kind}-{number}", kind, "held-out" if number % 2 else "fit")
        for kind in KINDS
        for number in range(per_kind)
    )
    counts = rng.integers(0, 50, (len(programs), len(names))).astype(np.uint64)
    counts[:, 0] += rng.integers(1_000, 100_000, len(programs)).astype(np.uint64)
    for unseen in UNSEEN:
        counts[:, names.index(unseen)] = 0
    native = weigh(counts, names, family().model.weights) * rng.uniform(0.9, 1.1, len(programs))
    return FitInput(programs, names, counts, np.array([native, native * 1.04]))
