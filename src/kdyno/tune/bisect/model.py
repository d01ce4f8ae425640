"""The result of a bisection. `kdyno bisect --json` prints it."""

from __future__ import annotations

from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LaneName
from kdyno.tune.bisect.ranges import RangeKind

BisectVerdict = Literal["found", "set", "unconfirmed", "equal", "reversed", "undecided", "untestable"]
"""found: one step, which other link orders and boots confirmed. set: several steps that no testable kernel divides, or
that the trials didn't distinguish. unconfirmed: a step with the stated probability whose check didn't show it. The
others are about the ends: there was nothing to search for."""
KernelAnswer = Literal["good", "bad", "undecided", "skipped", "same code"]


class BisectEffect(Frozen):
    """An effect as a fraction; positive is worse, or better with --better."""

    effect: float
    low: float | None
    """Ends of the 95 % interval; null with a single block, which has no spread."""
    high: float | None
    blocks: int


class BisectBenchmark(Frozen):
    """The effect of the whole range on one benchmark."""

    name: str
    effect: BisectEffect


class BisectKernel(Frozen):
    """A kernel of the range that was tried."""

    state: int
    """Its place: 0 is the good end."""
    name: str
    title: str
    answer: KernelAnswer
    effect: BisectEffect | None
    """Against the good end; null if it wasn't booted."""
    reason: str = ""
    """Why it was skipped, or the kernel with the same code."""


class BisectChange(Frozen):
    """A step of the range."""

    step: int
    """Its place: step k leads from kernel k - 1 to kernel k."""
    name: str
    title: str


class BisectCulprit(Frozen):
    """A change that made the benchmark worse; several if no kernel that could be tested divides them."""

    changes: tuple[BisectChange, ...]
    before: str
    """The kernels that were compared."""
    after: str
    probability: float
    check: BisectEffect | None
    """`after` against `before`, in boots and link orders that the search didn't use; null if that failed."""
    confirmed: bool
    share: float | None
    """The part of the range's effect that the check explains."""
    revert: BisectEffect | None
    """The bad end without it against the bad end, in boots of their own; null if that was not measured."""
    revert_reason: str
    """Why that was not measured: the change can't be reverted on top of the bad end; empty if it was, or if it was not
    requested.
    """
    layouts: int
    """The number of link orders of the check; 0: the images of the search."""
    run: str | None
    """The run of the check."""
    config: tuple[str, ...]
    """Kconfig symbols that differ between both kernels, with their values."""
    advice: str
    """How to go on within a merge; empty for a single change."""


class Bisection(Frozen):
    """A bisection at its end, or as far as it came."""

    v: Literal[1] = 1
    id: str
    kind: RangeKind
    named: str
    """The range as the user wrote it."""
    good: str
    bad: str
    steps: int
    verdict: BisectVerdict
    sentence: str
    benchmarks: tuple[str, ...]
    """The benchmarks whose mean counts."""
    better: bool
    """Whether the search was for an improvement."""
    lane: LaneName
    machine: str
    kernel: str
    """Compiler and base configuration of the good end; the compiler alone if the configuration is what differs."""
    probability: float
    """The probability at which a culprit is named."""
    range: BisectEffect | None
    """The bad end against the good end; null if it couldn't be tested."""
    by_benchmark: tuple[BisectBenchmark, ...]
    """The same for each benchmark, if there are several."""
    luck: float | None
    """The standard deviation of the effect of one image's layout, as a fraction; null if each kernel had one image."""
    noise: float | None
    """The standard deviation of one block of boots of the same images, as a fraction; null if none was booted twice."""
    advice: str
    """What shows more, if luck and noise hid the difference of the ends, or the culprit; empty otherwise."""
    culprits: tuple[BisectCulprit, ...]
    explained: float
    """The part of the range's effect that the confirmed culprits explain."""
    candidates: tuple[BisectChange, ...]
    """The changes that hold a further culprit with the stated probability, if the culprits don't explain enough."""
    kernels: tuple[BisectKernel, ...]
    """The kernels that were tried, in the order of the range."""
    builds: int
    boots: int
    """The boots of all trials, those of the good end not counted where they are shared."""
    runs: tuple[str, ...]
    lost_config: tuple[str, ...]
    """Kconfig symbols that are set at the good end and not at the bad end."""
    command: str
    """The command that repeats it."""
