"""Comparing every variant with the baseline, benchmark by benchmark and over the whole workload."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.frozen import Frozen
from kdyno.judge import absence, values
from kdyno.judge.estimate import Estimate, estimate
from kdyno.judge.verdict import ONE_BLOCK, Verdict, decide, sentence
from kdyno.store.records import Benchmark, BootRecord, Direction


class Judged(Frozen):
    """A variant against the baseline; without an estimate and a verdict when nothing could be compared."""

    variant: str
    estimate: Estimate | None = None
    p_holm: float | None = None
    """p, adjusted after Holm for all comparisons of its kind in the run."""
    verdict: Verdict | None = None
    reason: str = ""
    """Why there is no estimate, or why the verdict is undecided without regard to it."""
    sentence: str = ""


class Comparison(Judged):
    """One benchmark: the ratio is the variant's value over the baseline's."""

    benchmark: str
    direction: Direction
    baseline_value: float | None = None
    """Geometric means over the blocks compared, in the benchmark's unit: their ratio is the estimate's."""
    variant_value: float | None = None
    dropped: int = 0
    """Blocks left out because one of the two has no value in them."""


class GeometricMean(Judged):
    """The whole workload: the ratio is of speeds, so that above 1 is faster whatever the benchmarks' directions."""

    benchmarks: int = 0
    left_out: tuple[str, ...] = ()
    """Benchmarks without a value in every block compared."""


class Judgement(Frozen):
    """All verdicts of a run."""

    comparisons: tuple[Comparison, ...]
    """By variant in the order given, then by benchmark."""
    geometric_means: tuple[GeometricMean, ...]


@dataclass(frozen=True)
class Pair:
    """A variant and the baseline in the table of values."""

    table: values.Table
    variant: str
    baseline: str

    def logs(self, benchmark: str) -> dict[int, tuple[float, float]]:
        """Block -> logarithms of the variant's and the baseline's value, over the blocks that have both."""
        ours, theirs = self._values(self.variant, benchmark), self._values(self.baseline, benchmark)
        return {
            block: (math.log(ours[block]), math.log(theirs[block])) for block in sorted(ours.keys() & theirs.keys())
        }

    def dropped(self, benchmark: str) -> int:
        """Number of blocks that have the value of only one of the two."""
        return len(self._values(self.variant, benchmark).keys() ^ self._values(self.baseline, benchmark).keys())

    def _values(self, variant: str, benchmark: str) -> values.ByBlock:
        return self.table.get((variant, benchmark), {})


def judge(
    boots: Sequence[BootRecord],
    benchmarks: Sequence[Benchmark],
    variants: Sequence[str],
    baseline: str,
    *,
    margin: float,
    alpha: float,
) -> Judgement:
    """Judge all variants against the baseline. `margin` and `alpha` are fractions.

    Raises UnusableSample if a sample is not a positive number.
    """
    table = values.table(boots, benchmarks)
    values.require_positive(table)
    pairs = [Pair(table, variant, baseline) for variant in variants if variant != baseline]
    comparisons = [_compared(pair, benchmark, boots, alpha) for pair in pairs for benchmark in benchmarks]
    means = [_geometric_mean(pair, benchmarks, alpha) for pair in pairs]
    texts = {benchmark.name: benchmark.description or benchmark.name for benchmark in benchmarks}
    return Judgement(
        comparisons=tuple(
            each.model_copy(update=_decided(each, p_holm, each.direction, texts[each.benchmark], (margin, alpha)))
            for each, p_holm in zip(comparisons, _holm(comparisons), strict=True)
        ),
        geometric_means=tuple(
            each.model_copy(update=_decided(each, p_holm, "higher", "speed over all benchmarks", (margin, alpha)))
            for each, p_holm in zip(means, _holm(means), strict=True)
        ),
    )


def _compared(pair: Pair, benchmark: Benchmark, boots: Sequence[BootRecord], alpha: float) -> Comparison:
    found = Comparison(
        variant=pair.variant,
        benchmark=benchmark.name,
        direction=benchmark.direction,
        dropped=pair.dropped(benchmark.name),
    )
    logs = pair.logs(benchmark.name)
    if not logs:
        why = absence.reason(boots, benchmark.name, (pair.baseline, pair.variant))
        return found.model_copy(update={"reason": why})
    ours, theirs = np.array(list(logs.values())).T
    return found.model_copy(
        update={
            "estimate": estimate(ours - theirs, alpha),
            "baseline_value": math.exp(np.mean(theirs)),
            "variant_value": math.exp(np.mean(ours)),
        }
    )


def _geometric_mean(pair: Pair, benchmarks: Sequence[Benchmark], alpha: float) -> GeometricMean:
    """Mean over benchmarks of the logarithm of the speed ratio, block by block, and then as any other comparison."""
    logs = {benchmark: pair.logs(benchmark.name) for benchmark in benchmarks}
    blocks = sorted(set().union(*logs.values()))
    full = [benchmark for benchmark, by_block in logs.items() if blocks and len(by_block) == len(blocks)]
    found = GeometricMean(
        variant=pair.variant,
        benchmarks=len(full),
        left_out=tuple(benchmark.name for benchmark in benchmarks if benchmark not in full),
    )
    if not full:
        return found.model_copy(update={"reason": "no benchmark was measured in all blocks by both"})
    speeds = [_faster(benchmark, np.array([logs[benchmark][block] for block in blocks])) for benchmark in full]
    return found.model_copy(update={"estimate": estimate(np.mean(speeds, axis=0), alpha)})


def _faster(benchmark: Benchmark, logs: NDArray[np.float64]) -> NDArray[np.float64]:
    """Logarithms of the speed ratios of blocks, shape (n,), from those of the values, shape (n, 2)."""
    ratio: NDArray[np.float64] = logs[:, 0] - logs[:, 1]
    return ratio if benchmark.direction == "higher" else -ratio


def _holm(judged: Sequence[Judged]) -> list[float | None]:
    """Adjust the p-values of all that have one after Holm, as one family."""
    # brings pandas, which takes seconds to import: only who judges pays for it
    from statsmodels.stats.multitest import multipletests  # type: ignore[import-untyped]

    raw = [each.estimate.p if each.estimate else None for each in judged]
    known = [p for p in raw if p is not None]
    adjusted = iter(multipletests(known, method="holm")[1].tolist() if known else [])
    return [None if p is None else next(adjusted) for p in raw]


def _decided(
    judged: Judged, p_holm: float | None, direction: Direction, what: str, limits: tuple[float, float]
) -> dict[str, Any]:
    """What the verdict adds to an estimate; nothing where there is none. `limits` are margin and alpha."""
    if judged.estimate is None:
        return {}
    verdict = decide(judged.estimate, p_holm, direction, *limits)
    return {
        "p_holm": p_holm,
        "verdict": verdict,
        "reason": ONE_BLOCK if judged.estimate.blocks == 1 else "",
        "sentence": sentence(what, judged.estimate, verdict, limits[0]),
    }
