"""What a self-test found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import AwareDatetime

from kdyno.frozen import Frozen
from kdyno.lanes import Lane
from kdyno.measurement import Correction
from kdyno.store.store import Store


class Rate(Frozen):
    """How often something happened; the ends of its 95 % interval are Clopper's and Pearson's (1934)."""

    count: int
    of: int
    rate: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """`3 of 200 (1.5 %, 95 % interval 0.3 to 4.3)`"""
        low, high = (f"{100 * end:.1f}" for end in (self.low, self.high))
        return f"{self.count} of {self.of} ({100 * self.rate:.1f} %, 95 % interval {low} to {high})"


class Tested(Frozen):
    """One benchmark, over all A/A experiments."""

    benchmark: str
    unit: str
    false_verdicts: Rate
    """Experiments that called it faster or slower."""
    false_positives: Rate
    """Experiments in which its own p was below alpha, before adjustment and regardless of the margin: about alpha."""
    covered: Rate
    """Experiments whose interval holds the truth, which is 1: about the intervals' coverage."""
    spread: float
    """Standard deviation of the log-ratios of all blocks, in which nothing differed."""
    detectable: float | None
    """Smallest effect, as a fraction, that `planned` blocks see with 80 % power at this spread."""


class SelfTest(Frozen):
    """A/A experiments of one image under two names, on one host in one lane."""

    run: str
    """The run that holds their boots."""
    created: AwareDatetime
    host: dict[str, Any]
    lane: Lane
    machine: dict[str, Any]
    image: str | None
    """Key of the image."""
    experiments: int
    blocks: int
    """Of each experiment."""
    planned: int
    """Blocks for which `detectable` is told: those of an experiment that says nothing else."""
    margin: float
    alpha: float
    correction: Correction
    family_wise: Rate
    """Experiments with at least one false verdict."""
    benchmarks: tuple[Tested, ...]

    @property
    def sentence(self) -> str:
        """What reports say of it."""
        return (
            f"self-test of this host, {self.created:%Y-%m-%d}, {self.lane} lane: a false verdict in "
            f"{self.family_wise.text} A/A experiments of {self.blocks} blocks"
        )


def last_of_host(store: Store, host: Mapping[str, Any], lane: Lane) -> SelfTest | None:
    """The newest one on record of a host, as kdyno.host describes it, in a lane."""
    for run, kept in store.selftests():
        with store.record(f"the self-test of run {run}"):
            result = SelfTest.model_validate(kept)
        if (result.host, result.lane) == (host, lane):
            return result
    return None
