"""Call-chain clustering of functions, C3.

Ottoni, Maher: Optimizing function placement for large-scale data-center applications, CGO 2017, section 4 (also known
as hfsort): in the order of decreasing density, functions are appended to the cluster of their most frequent caller. The
clusters are then sorted by decreasing density.
"""

from __future__ import annotations

from collections.abc import Mapping

MOST_BYTES = 128 << 10
"""The most bytes of a cluster. The paper uses a page of its machines, 2 MB; the hot code of a kernel would be one such
cluster. This was the best of 32 kB, 128 kB and 2 MB in a manual comparison."""
SPARSER = 8
"""The factor of lost density from which clusters aren't merged (the value of the paper's implementation)."""


def c3(sizes: Mapping[int, int], weights: Mapping[int, float], calls: Mapping[tuple[int, int], float]) -> list[int]:
    """Return the units with a weight, in order.

    `sizes` are in bytes, `weights` are executions, and `calls` has the counts of (caller, callee).
    """
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
