"""How alike two profiles are, and how much of what ran in one the other has seen."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from kdyno.base.frozen import Frozen
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.profile.clang import all_records, samples, similarity
from kdyno.profile.shares import Shares, alike, shares_by_benchmark, shares_of_samples, together


class BenchmarkOverlap(Frozen):
    """One benchmark of B; parts are those of its instructions, 0 to 1."""

    benchmark: str
    covered_by_functions: float
    """In functions that ran in A, in whatever benchmark."""
    covered_by_blocks: float | None
    """In blocks that ran in A."""
    alike: float | None
    """With the same benchmark of A, by functions; None if A hasn't it."""


class FunctionShare(Frozen):
    """A function's share of each profile, 0 to 1."""

    function: str
    a: float
    b: float


class Overlap(Frozen):
    """`kdyno profile overlap --json`. Every benchmark weighs the same."""

    kind: Literal["records", "clang"]
    same_vmlinux: bool | None
    """None for clang's profiles, which don't say. Blocks are compared only of one vmlinux."""
    alike_by_functions: float
    """Sum of the smaller share of each function, 0 to 1."""
    alike_by_blocks: float | None
    alike_by_lines: float | None
    """Of clang's profiles, as `llvm-profdata overlap` has it."""
    covered_by_functions: float
    """Part of B's instructions, or samples, in functions that A has at all."""
    covered_by_blocks: float | None
    functions_a: int
    functions_b: int
    functions_both: int
    benchmarks: tuple[BenchmarkOverlap, ...]
    """Of B's records; none for clang's profiles."""
    functions: tuple[FunctionShare, ...]
    """All of both; those whose shares differ most first."""


def overlap(a: Path, b: Path) -> Overlap:
    """Compare two PMU records or two profiles of clang's.

    Records of different kernels are compared by the names of the source's functions. Static functions of one name
    count as one. Raises TwoKinds, NotAProfile, and what reading them raises.
    """
    if not all_records([a, b]):
        shares_a, shares_b = shares_of_samples(samples(a)), shares_of_samples(samples(b))
        return _overlap("clang", None, shares_a, shares_b, (), similarity(a, b))
    record_a, record_b = read_pmu_record(a), read_pmu_record(b)
    same = record_a.image is not None and record_a.image == record_b.image
    of_a = shares_by_benchmark(record_a, a, plain=not same)
    of_b = shares_by_benchmark(record_b, b, plain=not same)
    everything = together(of_a.values())
    benchmarks = tuple(
        BenchmarkOverlap(
            benchmark=name,
            covered_by_functions=_covered_functions(everything, part),
            covered_by_blocks=_covered_blocks(everything, part) if same else None,
            alike=alike(of_a[name].functions, part.functions) if name in of_a else None,
        )
        for name, part in of_b.items()
    )
    return _overlap("records", same, everything, together(of_b.values()), benchmarks, None)


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
        alike_by_functions=alike(a.functions, b.functions),
        alike_by_blocks=alike(a.blocks, b.blocks) if same else None,
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
    """Part of what B ran in blocks that start where one of A's does: where a block ends may differ."""
    starts = {start for start, _ in a.blocks}
    return sum(share for (start, _), share in b.blocks.items() if start in starts)
