"""AutoFDO's text profile, for gcc: `create_gcov --profiler=text`; create_llvm_prof reads it, too.

The format is that of TextSampleReaderWriter in AutoFDO's sample_reader.cc: ranges, addresses and branches, each list
after its length. Addresses may be omitted where there are ranges (Profile::ProcessPerFunctionProfile in profile.cc).
All are relative to the first loaded segment, since profile.cc adds SymbolMap::base_addr(): with absolute
addresses create_gcov finds no function and silently writes an empty profile.
"""

from __future__ import annotations

from kdyno.profile.edges import EdgeProfile


def autofdo(edges: EdgeProfile, base: int) -> str:
    """Return the profile as text. `base` is the address of the first loaded segment; code below it is omitted."""
    ranges = [row for row in edges.ranges if row[0] >= base]
    branches = [row for row in edges.branches if min(row[0], row[1]) >= base]
    lines = [str(len(ranges))]
    lines += [f"{start - base:x}-{last - base:x}:{count}" for start, last, count in ranges]
    lines.append("0")
    lines.append(str(len(branches)))
    lines += [f"{source - base:x}->{target - base:x}:{count}" for source, target, count in branches]
    return "\n".join(lines) + "\n"
