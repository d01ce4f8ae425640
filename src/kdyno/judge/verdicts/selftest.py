"""The result of a self-test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import AwareDatetime

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.base.machine_facts import recorded_pmu_clock
from kdyno.base.measurement import Correction
from kdyno.base.text import format_count
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
        """Return the text `3 of 200 (1.5 %, 95 % interval 0.3 to 4.3)`."""
        low, high = (f"{100 * end:.1f}" for end in (self.low, self.high))
        return f"{self.count} of {self.of} ({100 * self.rate:.1f} %, 95 % interval {low} to {high})"


class LinkOrder(Frozen):
    """The effect of link order alone on a benchmark: each experiment is a pair of links of one kernel."""

    spread: float
    """Standard deviation, over the pairs, of the mean log-ratio of a pair's blocks."""
    largest: float
    """The largest effect of a pair, as a fraction, whichever of the two is the slower one."""
    verdict: Verdict | None
    """The estimate from all pairs together, with layouts as replicates; None if they could not be compared."""


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
    """Standard deviation of the log-ratios of all blocks, in which nothing differed, or only link order."""
    detectable: float | None
    """Smallest effect, as a fraction, that is called different in 80 % of runs of `planned` blocks with this spread.
    None if all values agree exactly: that bounds no effect in other boots.
    """
    link_order: LinkOrder | None = None
    """None in A/A experiments."""


class SelfTest(Frozen):
    """Experiments in which two kernels are one, on one host in one lane."""

    kind: Kind = "aa"
    run: str
    """The run that holds their boots."""
    created: AwareDatetime
    host: dict[str, Any]
    lane: LaneName
    machine: dict[str, Any]
    image: str | None
    """Key of the image; None if there is none, or two for each experiment."""
    experiments: int
    blocks: int
    """Blocks of each experiment."""
    planned: int
    """Blocks for which `detectable` is given, each with a layout of its own if layouts differ: those of an experiment
    that sets nothing else.
    """
    margin: float
    alpha: float
    correction: Correction
    family_wise: Rate
    """Experiments with at least one false verdict."""
    benchmarks: tuple[Tested, ...]

    @property
    def clock(self) -> str | None:
        """Return the clock of the emulated PMU, if samples are read in it: the effect of link order is larger in
        cycles.
        """
        return recorded_pmu_clock(self.machine)

    @property
    def where(self) -> str:
        """Return lane and clock, for sentences."""
        return f"{self.lane} lane" + (f" ({self.clock} of the emulated PMU)" if self.clock else "")

    @property
    def sentence(self) -> str:
        """Return the sentence for reports."""
        if self.kind == "aa":
            return (
                f"self-test of this host, {self.created:%Y-%m-%d}, {self.lane} lane: a false verdict in "
                f"{self.family_wise.text} A/A experiments of {self.blocks} blocks"
            )
        return (
            f"self-test of link order, {self.created:%Y-%m-%d}, {self.where}: two links of one kernel were called "
            f"different, in any of {format_count(len(self.benchmarks), 'benchmark')}, "
            f"in {self.family_wise.text} experiments of {self.blocks} blocks"
        )


SelfTestList = tuple[SelfTest, ...]
"""The document that `kdyno selftest --json` prints."""


def last_of_host(
    store: Store, host: Mapping[str, Any], lane: LaneName, kind: Kind = "aa", clock: str | None = None
) -> SelfTest | None:
    """Return the newest one on record of a host, as kdyno.base.host describes it, in a lane.

    `clock` is that of the emulated PMU, if samples are read in it; the effect of link order depends on it.
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
    """The known self-tests of a host when a run of it is judged."""

    aa: SelfTest | None = None
    link_order: SelfTest | None = None
    """None if the run sampled layouts: link order is then in its intervals."""


def selftests_of(store: Store, run: RunRecord) -> SelfTests:
    """Return the newest ones of the host of a run, in its lane."""
    clock = recorded_pmu_clock(run.machine)
    return SelfTests(
        aa=last_of_host(store, run.host, run.lane),
        link_order=None if run.layouts else last_of_host(store, run.host, run.lane, "layouts", clock),
    )
