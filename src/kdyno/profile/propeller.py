"""Propeller's clusters: the hot basic blocks of each function, in their order of layout.

The file has version 1 of the format for clang -fbasic-block-sections=list=FILE (BasicBlockSectionsProfileReader.cpp):
`f` names a function and its aliases, `c` the ids of the blocks of a cluster. All other blocks become the
function's cold part, `.text.split.FUNCTION`. Before `f`, `m` names the compiled file, as in debug information;
kdyno writes it only if several functions have one name. A comment `# file` names the source file relative to the tree,
so that the file can be split by source file.
"""

from __future__ import annotations

import bisect
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from kdyno.base.errors import UserError
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.kernel.vmlinux.checks import occurrences, require_same
from kdyno.kernel.vmlinux.sources import NOWHERE, read_sources
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.profile.balance import balanced_edges
from kdyno.profile.block_counts import FunctionCounts, count_blocks
from kdyno.profile.block_map import Names, read_block_map, read_names
from kdyno.profile.block_order import HotBlocks, order_blocks
from kdyno.profile.coverage import ProfileNothingRan
from kdyno.profile.edges import EdgeProfile

IRETQ = b"\x48\xcf"
"""The code of sync_core() of the kernel. objtool takes it for the end of an entry path unless it is in a symbol of type
FUNC, which clang's cold parts are not (decode.c of tools/objtool/arch/x86): functions with it are not split."""
WORD = re.compile(r"[^\s#]{1,1024}")
"""The names of functions and files that can be one word of the file."""


class FullLto(UserError):
    message = "image {key} was linked with full LTO, which Propeller does not support"
    hint = (
        'set lto = "thin", or no LTO: Linux supports Propeller with these (Documentation/dev-tools/propeller.rst), and '
        "with full LTO a new profile recompiles the whole kernel"
    )


class NoClusters(UserError):
    message = "no function that ran in {vmlinux} can be laid out by blocks ({why})"
    hint = "record a workload; `kdyno profile show` lists what ran"


@dataclass(frozen=True)
class Candidate:
    """An executed function that can be laid out."""

    names: tuple[str, ...]
    file: str
    """The source file, relative to the tree."""
    module: str | None
    """The file as in debug information, if `names` are ambiguous; else empty."""
    blocks: HotBlocks
    kept: tuple[int, ...] = ()
    """The ids of cold blocks that stay in the function, after the hot blocks."""


def clusters(records: Sequence[Path], image: Image, settings: ProfileSettings) -> bytes:
    """Return the cluster file of PMU records of `image`; all benchmarks have the same weight.

    Raises FullLto, OtherVmlinux, NoBlockMap, NoLineTables, NoClusters, and what reading records raises.
    """
    if image.record.recipe.lto == "full":
        raise FullLto(key=image.record.key[:12])
    read = [read_pmu_record(path) for path in records]
    for path, record in zip(records, read, strict=True):
        require_same(record, path, image.vmlinux)
    edges = balanced_edges(read)
    if not edges.ranges:
        raise ProfileNothingRan(record=", ".join(map(str, records)))
    return cluster_file(edges, image.vmlinux, settings.cold).encode()


def cluster_file(edges: EdgeProfile, vmlinux: Path, cold: int = 0) -> str:
    """Return the file as text; blocks with up to `cold` executions are cold. Raises what `clusters` raises."""
    block_map = read_block_map(vmlinux)
    names, sources, whole = read_names(vmlinux), read_sources(vmlinux), occurrences(vmlinux, IRETQ)
    executed = list(count_blocks(block_map, edges))
    entries = np.array([function.address for function in executed], np.uint64)
    left_out: Counter[str] = Counter()
    candidates: list[Candidate] = []
    for function, file, module in zip(executed, sources.files(entries), sources.names(entries), strict=True):
        candidate = _candidate(function, names, file, module, cold)
        if isinstance(candidate, str):
            left_out[candidate] += 1
        else:
            candidates.append(_keep_whole(candidate, function) if _has_code(function, whole) else candidate)
    reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(left_out.items())) or "none"
    if not candidates:
        raise NoClusters(vmlinux=vmlinux, why=f"functions left out: {reasons}")
    lines = ["v1", f"# {len(candidates):,} functions; executed and left out: {reasons}"]
    orders = order_blocks([candidate.blocks for candidate in candidates])
    for candidate, order in sorted(
        zip(candidates, orders, strict=True), key=lambda pair: (pair[0].file, pair[0].names)
    ):
        lines.append(f"# file {candidate.file}")
        if candidate.module:
            lines.append(f"m {candidate.module}")
        lines.append(f"f {' '.join(candidate.names)}")
        lines.append(f"c {' '.join(map(str, order + candidate.kept))}")
    return "\n".join(lines) + "\n"


def _candidate(function: FunctionCounts, names: Names, file: str, module: str, cold: int) -> Candidate | str:
    """Return the function as a candidate, or the reason why it cannot be laid out."""
    if names.is_apart(function.address):
        return "in sections with a place of their own"
    if (reason := _map_problem(function)) is not None:
        return reason
    own = names.names_at(function.address)
    if not own or not all(map(WORD.fullmatch, own)):
        return "without a usable name"
    if file == NOWHERE or not WORD.fullmatch(file) or not WORD.fullmatch(module):
        return "without a source file"
    entry = function.ids.index(0)
    hot = [row for row, count in enumerate(function.counts) if count > cold and row != entry]
    if not hot and function.counts[entry] <= cold:
        return "cold"
    rows = [entry, *hot]
    place = {row: index for index, row in enumerate(rows)}
    blocks = HotBlocks(
        ids=tuple(function.ids[row] for row in rows),
        sizes=tuple(function.sizes[row] for row in rows),
        counts=tuple(function.counts[row] for row in rows),
        edges=tuple(
            (place[source], place[target], count)
            for source, target, count in function.edges
            if source in place and target in place
        ),
    )
    return Candidate(own, file, None if all(map(names.is_one, own)) else module.removeprefix("./"), blocks)


def _keep_whole(candidate: Candidate, function: FunctionCounts) -> Candidate:
    return replace(candidate, kept=tuple(number for number in function.ids if number not in candidate.blocks.ids))


def _has_code(function: FunctionCounts, addresses: Sequence[int]) -> bool:
    """Return whether one of these ascending addresses is in a block of the function."""
    return any(
        bisect.bisect_left(addresses, start) < bisect.bisect_left(addresses, start + size)
        for start, size in zip(function.starts, function.sizes, strict=True)
    )


def _map_problem(function: FunctionCounts) -> str | None:
    """Return what is wrong with the map of a function; None if it is valid."""
    if function.ids.count(0) != 1 or function.starts[function.ids.index(0)] != function.address:
        return "without an entry in the map"
    if len(set(function.ids)) != len(function.ids):
        return "with a block twice in the map"
    ends = [start + size for start, size in zip(function.starts, function.sizes, strict=True)]
    if any(end > start for end, start in zip(ends, function.starts[1:], strict=False)):
        return "with blocks that overlap"
    return None
