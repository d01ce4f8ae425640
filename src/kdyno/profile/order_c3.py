"""Functions in clusters by who calls whom: call-chain clustering, C3.

Ottoni, Maher: Optimizing function placement for large-scale data-center applications, CGO 2017, section 4 (also known
as hfsort): functions by falling density join the cluster of their most frequent caller, behind it, and clusters come by
falling density.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST_BYTES = 128 << 10
"""Of a cluster. The paper takes a page of its machines, 2 MB; the hot code of a kernel would be one such cluster. Of 32
kB, 128 kB and 2 MB this was the best by hand."""
SPARSER = 8
"""A cluster isn't joined that would become so many times less dense (the value of the paper's own implementation)."""


def c3(sizes: Mapping[int, int], weights: Mapping[int, float], calls: Mapping[tuple[int, int], float]) -> list[int]:
    """The units with a weight, in order. `sizes` in bytes; `weights`: what was executed; `calls`: (caller, callee)."""
    callers: dict[int, tuple[float, int]] = {}
    for (caller, callee), count in sorted(calls.items()):
        if caller != callee and caller in weights and callee in weights:
            callers[callee] = max(callers.get(callee, (0.0, 0)), (count, caller))
    clusters = {unit: [unit] for unit in weights}
    home = {unit: unit for unit in weights}
    bytes_of = {unit: max(sizes[unit], 1) for unit in weights}
    weight_of = dict(weights)
    by_density = sorted(weights, key=lambda unit: (-weights[unit] / max(sizes[unit], 1), unit))
    for unit in by_density:
        if unit not in callers:
            continue
        mine, theirs = home[unit], home[callers[unit][1]]
        size = bytes_of[mine] + bytes_of[theirs]
        density = (weight_of[mine] + weight_of[theirs]) / size
        if mine == theirs or size > MOST_BYTES or density * SPARSER < weight_of[theirs] / bytes_of[theirs]:
            continue
        for member in clusters[mine]:
            home[member] = theirs
        clusters[theirs] += clusters.pop(mine)
        bytes_of[theirs], weight_of[theirs] = size, weight_of[theirs] + weight_of[mine]
    ranked = sorted(clusters, key=lambda cluster: (-weight_of[cluster] / bytes_of[cluster], cluster))
    return [unit for cluster in ranked for unit in clusters[cluster]]
