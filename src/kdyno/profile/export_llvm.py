"""The unsymbolized profile of llvm-profgen, for clang: `llvm-profgen --unsymbolized-profile=F --use-offset=0`.

The format is that of UnsymbolizedProfileReader in llvm/tools/llvm-profgen/PerfReader.cpp: the number of ranges, a line
`START-LAST:COUNT` for each, the number of branches, a line `FROM->TO:COUNT` for each; addresses hexadecimal.
"""

from __future__ import annotations

from kdyno.profile.edges import EdgeProfile


def unsymbolized(edges: EdgeProfile) -> str:
    lines = [str(len(edges.ranges))]
    lines += [f"{start:x}-{last:x}:{count}" for start, last, count in edges.ranges]
    lines.append(str(len(edges.branches)))
    lines += [f"{source:x}->{target:x}:{count}" for source, target, count in edges.branches]
    return "\n".join(lines) + "\n"
