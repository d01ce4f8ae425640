"""What a self-test found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AwareDatetime

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import Lane
from kdyno.base.measurement import Correction
from kdyno.base.text import counted
from kdyno.judge.stats.verdict import Verdict
from kdyno.store.records import RunRecord
from kdyno.store.store import Store

Kind = Literal["aa", "layouts"]
"""aa: one image under two names; layouts: one kernel in two link orders."""


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


class LinkOrder(Frozen):
    """What link order alone did to a benchmark: each experiment is a pair of links of one kernel."""

    spread: float
    """Standard deviation, over the pairs, of the mean log-ratio of a pair's blocks."""
    largest: float
    """The largest effect of a pair, as a fraction, whichever of the two is the slower one."""
    verdict: Verdict | None
    """What all pairs say together if the layout is what is replicated; None if they could not be compared."""


class Tested(Frozen):
    """One benchmark, over all experiments."""

    benchmark: str
    unit: str
    false_verdicts: Rate
    """Experiments that called it different."""
    false_positives: Rate
    """Experiments in which its own p was below alpha, before adjustment and regardless of the margin: about
    alpha where nothing differs."""
    covered: Rate
    """Experiments whose interval holds the truth, which is 1: about the intervals' coverage where nothing differs."""
    spread: float
    """Standard deviation of the log-ratios of all blocks, in which nothing differed, or nothing but link order."""
    detectable: float | None
    """Smallest effect, as a fraction, that is called different in 80 % of runs of `planned` blocks with this spread.
    None where all values agree exactly: that bounds no effect in boots that weren't met."""
    link_order: LinkOrder | None = None
    """None in A/A experiments."""


class SelfTest(Frozen):
    """Experiments in which two kernels are one, on one host in one lane."""

    kind: Kind = "aa"
    run: str
    """The run that holds their boots."""
    created: AwareDatetime
    host: dict[str, Any]
    lane: Lane
    machine: dict[str, Any]
    image: str | None
    """Key of the image; None where there is none, or two for each experiment."""
    experiments: int
    blocks: int
    """Of each experiment."""
    planned: int
    """Blocks for which `detectable` is told, each with a layout of its own where layouts differ: those of an experiment
    that says nothing else."""
    margin: float
    alpha: float
    correction: Correction
    family_wise: Rate
    """Experiments with at least one false verdict."""
    benchmarks: tuple[Tested, ...]

    @property
    def clock(self) -> str | None:
        """What the emulated PMU counted, where samples are read in that: link order is worth more in cycles."""
        clock: str | None = self.machine.get("pmu_clock")
        return clock

    @property
    def where(self) -> str:
        """Lane and clock, for sentences."""
        return f"{self.lane} lane" + (f" ({self.clock} of the emulated PMU)" if self.clock else "")

    @property
    def sentence(self) -> str:
        """What reports say of it."""
        if self.kind == "aa":
            return (
                f"self-test of this host, {self.created:%Y-%m-%d}, {self.lane} lane: a false verdict in "
                f"{self.family_wise.text} A/A experiments of {self.blocks} blocks"
            )
        return (
            f"self-test of link order, {self.created:%Y-%m-%d}, {self.where}: two links of one kernel were called "
            f"different, in any of {counted(len(self.benchmarks), 'benchmark')}, "
            f"in {self.family_wise.text} experiments of {self.blocks} blocks"
        )


def last_of_host(
    store: Store, host: Mapping[str, Any], lane: Lane, kind: Kind = "aa", clock: str | None = None
) -> SelfTest | None:
    """Return the newest one on record of a host, as kdyno.base.host describes it, in a lane.

    `clock` is what the emulated PMU counts, if samples are read in that; what link order is worth depends on it.
    """
    for run, kept in store.selftests():
        with store.record(f"the self-test of run {run}"):
            result = SelfTest.model_validate(kept)
        alike = (result.host, result.lane, result.kind) == (host, lane, kind)
        if alike and (kind == "aa" or result.clock == clock):
            return result
    return None


@dataclass(frozen=True)
class SelfTests:
    """What is known of a host when a run of it is judged."""

    aa: SelfTest | None = None
    link_order: SelfTest | None = None
    """None where the run sampled layouts: link order is then in its intervals."""


def selftests_of(store: Store, run: RunRecord) -> SelfTests:
    """Return the newest ones of the host of a run, in its lane."""
    clock = run.machine.get("pmu_clock")
    return SelfTests(
        aa=last_of_host(store, run.host, run.lane),
        link_order=None if run.layouts else last_of_host(store, run.host, run.lane, "layouts", clock),
    )
