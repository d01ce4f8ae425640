"""Making clang's profile of a record with llvm-profgen, and telling how much of what ran it covers."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.base import debuginfo
from kdyno.base.errors import UserError
from kdyno.base.files import copy_whole
from kdyno.base.llvm_tools import find_tool
from kdyno.base.process import attempt
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.edges import edge_profile
from kdyno.profile.export_llvm import unsymbolized
from kdyno.profile.flat import flat
from kdyno.profile.functions import plain_name
from kdyno.profile.select import WORK
from kdyno.profile.vmlinux import require_line_tables, require_same

FUNCTION = re.compile(r"^([^\s:][^:\n]*):\d+:\d+$", re.M)
"""The first line of a function in a text profile; lines of what is inside it are indented."""


class ProfileNothingRan(UserError):
    message = "{record} has no kernel code in these regions and contexts"
    hint = "`kdyno profile show` lists what ran in each region"


class ProfgenFailed(UserError):
    message = "{tool} makes no profile of it: {complaint}"
    hint = "was vmlinux built by a compiler newer than {tool}? clang and llvm-profgen should be of one release"


@dataclass(frozen=True)
class Coverage:
    """How much of a record a profile holds."""

    functions: int
    """How many functions the profile names."""
    instructions: float
    """Share of the executed instructions, 0 to 1, that lie in functions which the profile names."""
    ranges: int
    ranges_with_lines: float
    """Share of the ranges, 0 to 1, whose first address has a line."""
    missing: tuple[tuple[str, float], ...]
    """Functions that the profile does not name, and their share of the executed instructions; most first."""
    tool: str
    notes: tuple[str, ...]
    """What llvm-profgen warned of."""


def cover(
    record: PmuRecord,
    path: Path,
    vmlinux: Path,
    regions: Sequence[Region],
    contexts: Sequence[str] = WORK,
    out: Path | None = None,
) -> Coverage:
    """Make the profile, at `out` if that is given, and measure it; `path` is where the record is from."""
    require_same(record, path, vmlinux)
    require_line_tables(vmlinux)
    tool = find_tool("llvm-profgen")
    edges = edge_profile(record, regions, contexts)
    rows = flat(record, regions, contexts=contexts)
    if not edges.ranges or not rows:
        raise ProfileNothingRan(record=path)
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        source, text, binary = (Path(scratch) / name for name in ("edges", "profile.txt", "profile"))
        source.write_text(unsymbolized(edges), encoding="utf-8")
        notes = profgen(tool, source, vmlinux, text, "text")
        if out:
            profgen(tool, source, vmlinux, binary, "extbinary")
            copy_whole(binary, out)
        named = functions_named(text.read_text(encoding="utf-8", errors="replace"))
    left_out = [(row.name, row.share) for row in rows if plain_name(row.name) not in named]
    with_lines = have_lines(vmlinux, [start for start, _, _ in edges.ranges])
    return Coverage(
        functions=len(named),
        instructions=1 - sum(share for _, share in left_out),
        ranges=len(edges.ranges),
        ranges_with_lines=sum(with_lines) / len(with_lines),
        missing=tuple(left_out),
        tool=tool,
        notes=tuple(notes),
    )


def profgen(tool: str, unsymbolized_profile: Path, vmlinux: Path, out: Path, form: str) -> list[str]:
    """Run llvm-profgen; returns its warnings."""
    done = attempt(
        [
            tool,
            f"--unsymbolized-profile={unsymbolized_profile}",
            f"--binary={vmlinux}",
            "--use-offset=0",
            f"--format={form}",
            f"--output={out}",
        ],
        guarded=True,
    )
    lines = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    if done.returncode != 0 or not out.is_file():
        raise ProfgenFailed(tool=tool, complaint=" ".join(lines)[-500:] or f"exit status {done.returncode}")
    return lines


def functions_named(profile: str) -> set[str]:
    """The functions of a text profile, without those that are only inlined into others."""
    return {plain_name(name) for name in FUNCTION.findall(profile)}


def have_lines(vmlinux: Path, addresses: Iterable[int]) -> list[bool]:
    """Whether each address has a line table."""
    return [innermost.path != "" for innermost, *_ in debuginfo.frames(vmlinux, addresses)]
