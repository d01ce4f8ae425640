"""The similarity of two profiles, and how much of the code that ran in one is covered by the other."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.profile.clang import all_records, samples, similarity
from kdyno.profile.shares import Shares, average_shares, common_share, shares_by_benchmark, shares_of_samples


class BenchmarkOverlap(Frozen):
    """One benchmark of B; all values are parts of its instructions, 0 to 1."""

    benchmark: str
    covered_by_functions: float
    """The part in functions that ran in any benchmark of A."""
    covered_by_blocks: float | None
    """The part in blocks that ran in A."""
    alike: float | None
    """The similarity with the same benchmark of A, by functions; None if A lacks it."""


class FunctionShare(Frozen):
    """A function's share of each profile, 0 to 1."""

    function: str
    a: float
    b: float


class Overlap(Frozen):
    """The output of `kdyno profile overlap --json`. Every benchmark has the same weight."""

    kind: Literal["records", "clang"]
    same_vmlinux: bool | None
    """None for profiles of clang, which don't contain it. Blocks are compared only if the vmlinux is the same."""
    alike_by_functions: float
    """The sum of the smaller share of each function, 0 to 1."""
    alike_by_blocks: float | None
    alike_by_lines: float | None
    """The similarity of profiles of clang, from `llvm-profdata overlap`."""
    covered_by_functions: float
    """The part of B's instructions, or samples, in functions that are in A."""
    covered_by_blocks: float | None
    functions_a: int
    functions_b: int
    functions_both: int
    benchmarks: tuple[BenchmarkOverlap, ...]
    """The benchmarks of B; empty for profiles of clang."""
    functions: tuple[FunctionShare, ...]
    """The functions of both, those with the largest difference of shares first."""


def overlap(a: Path, b: Path) -> Overlap:
    """Compare two PMU records or two profiles of clang.

    Records of different kernels are compared by the names of functions in the source. Static functions of one name
    count as one. Raises TwoKinds, NotAProfile, and what reading them raises.
    """
    if not all_records([a, b]):
        shares_a, shares_b = shares_of_samples(samples(a)), shares_of_samples(samples(b))
        return _overlap("clang", None, shares_a, shares_b, (), similarity(a, b))
    record_a, record_b = read_pmu_record(a), read_pmu_record(b)
    same = record_a.image is not None and record_a.image == record_b.image
    of_a = shares_by_benchmark(record_a, a, plain=not same)
    of_b = shares_by_benchmark(record_b, b, plain=not same)
    everything = average_shares(of_a.values())
    benchmarks = tuple(
        BenchmarkOverlap(
            benchmark=name,
            covered_by_functions=_covered_functions(everything, part),
            covered_by_blocks=_covered_blocks(everything, part) if same else None,
            alike=common_share(of_a[name].functions, part.functions) if name in of_a else None,
        )
        for name, part in of_b.items()
    )
    return _overlap("records", same, everything, average_shares(of_b.values()), benchmarks, None)


def _overlap(
    kind: Literal["records", "clang"],
    same: bool | None,
    a: Shares,
    b: Shares,
    benchmarks: tuple[BenchmarkOverlap, ...],
    by_lines: float | None,
) -> Overlap:
    rows = [
        FunctionShare(function=name, a=a.functions.get(name, 0.0), b=b.functions.get(name, 0.0))
        for name in a.functions.keys() | b.functions.keys()
    ]
    return Overlap(
        kind=kind,
        same_vmlinux=same,
        alike_by_functions=common_share(a.functions, b.functions),
        alike_by_blocks=common_share(a.blocks, b.blocks) if same else None,
        alike_by_lines=by_lines,
        covered_by_functions=_covered_functions(a, b),
        covered_by_blocks=_covered_blocks(a, b) if same else None,
        functions_a=len(a.functions),
        functions_b=len(b.functions),
        functions_both=len(a.functions.keys() & b.functions.keys()),
        benchmarks=benchmarks,
        functions=tuple(sorted(rows, key=lambda row: (-abs(row.a - row.b), row.function))),
    )


def _covered_functions(a: Shares, b: Shares) -> float:
    return sum(share for name, share in b.functions.items() if name in a.functions)


def _covered_blocks(a: Shares, b: Shares) -> float:
    """Return the part of B's instructions in blocks that start where a block of A starts; their ends may differ."""
    starts = {start for start, _ in a.blocks}
    return sum(share for (start, _), share in b.blocks.items() if start in starts)
