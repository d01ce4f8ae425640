"""Reports on other people's data: published summaries, and values in blocks made up from a fixed seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from kdyno.base.measurement import Benchmark
from kdyno.judge.stats.compare import judge
from kdyno.judge.stats.diagnostics.analysis import analyse
from kdyno.judge.stats.observations import Observations, ReplicateSample, Summary
from kdyno.judge.verdicts.model import BootValue, FileReport

MACHINES = {
    "Ryzen 5950X": {"generic": (79.800, 0.1076), "x86-64-v3": (79.456, 0.0772), "Zen 3": (79.440, 0.0912)},
    "i7-4790K": {"generic": (344.280, 0.6455), "x86-64-v3": (342.035, 0.4971), "Haswell": (342.189, 0.2415)},
    "N100": {"generic": (589.457, 0.1596), "x86-64-v3": (589.217, 0.1382), "Alder Lake": (588.797, 0.1532)},
}
"""Published means and standard deviations (s) of 12 builds of a kernel each."""
N = 12


def summaries() -> FileReport:
    observed = [
        Observations(
            machine,
            "s",
            "lower",
            f"kernel build on {machine}",
            {v: Summary(*mean_and_sd, N) for v, mean_and_sd in of.items()},
        )
        for machine, of in MACHINES.items()
    ]
    return report(
        observed,
        "generic",
        "compiler_patch",
        "a summary table",
        ("nothing says how many boots these values come from",),
    )


def values(blocks: int = 10, layouts: int = 0) -> FileReport:
    random = np.random.default_rng(7)
    weather = random.normal(0, 0.01, blocks)
    order = random.permuted(np.arange(2 * blocks).reshape(blocks, 2), axis=1)
    groups = {}
    for place, (name, cost) in enumerate({"stock": 1000.0, "tuned": 965.0}.items()):
        groups[name] = ReplicateSample(
            values=cost * np.exp(weather + random.normal(0, 0.006, blocks)),
            blocks=np.arange(blocks),
            order=order[:, place],
            clusters=np.arange(blocks) % layouts if layouts else None,
        )
    return report([Observations("pipe", "ns", "lower", "pipe latency", groups)], "stock", "pipes", "long-form CSV", ())


def several(variants: int) -> FileReport:
    """Return published means of three builds for a number of variants."""
    observed = [
        Observations(
            f"build_{number}",
            "s",
            "lower",
            f"build {number} of a kernel with its modules",
            {f"march-variant-{place}": Summary(100 - place, 0.5, N) for place in range(variants)},
        )
        for number in range(3)
    ]
    return report(observed, "march-variant-0", "variants", "a summary table", ())


def report(
    observed: Sequence[Observations], baseline: str, title: str, read_as: str, notices: tuple[str, ...]
) -> FileReport:
    variants = tuple(dict.fromkeys(name for observations in observed for name in observations.groups))
    judgement = judge(observed, variants, baseline, margin=0.01, alpha=0.05)
    return FileReport(
        title=title,
        measured="a summary table: mean, standard deviation and n, in seconds",
        baseline=baseline,
        variants=variants,
        margin=0.01,
        alpha=0.05,
        confidence=0.95,
        correction="holm",
        notices=notices,
        benchmarks=tuple(
            Benchmark(name=e.benchmark, test="", unit=e.unit, direction=e.direction, description=e.description)
            for e in observed
        ),
        comparisons=judgement.comparisons,
        geometric_means=judgement.geometric_means,
        values=tuple(_values(observed)),
        analyses=tuple(analyse(observations, baseline, 0.05, 0.01) for observations in observed),
        files=(f"{title}.csv",),
        sha256=("a" * 64,),
        read_as=read_as,
        columns={"variant": "kernel", "value": "mean"},
    )


def _values(observed: Sequence[Observations]) -> Iterator[BootValue]:
    for observations in observed:
        for variant in observations.groups:
            sample = observations.sample(variant)
            if sample is None or sample.blocks is None or sample.order is None:
                continue
            layouts = [None] * len(sample.values) if sample.clusters is None else sample.clusters.tolist()
            rows = zip(sample.values.tolist(), sample.blocks.tolist(), sample.order.tolist(), layouts, strict=True)
            for value, block, order, layout in rows:
                yield BootValue(
                    variant=variant,
                    benchmark=observations.benchmark,
                    block=block,
                    order=order,
                    layout=layout,
                    value=value,
                )
