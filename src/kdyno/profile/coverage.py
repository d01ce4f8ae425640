"""Making clang's profile of a record with llvm-profgen, and measuring how much of the executed code it covers."""

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
from kdyno.kernel.vmlinux.checks import require_line_tables, require_same
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.profile.edges import edge_profile
from kdyno.profile.export_llvm import unsymbolized
from kdyno.profile.flat import flat
from kdyno.profile.functions import plain_name
from kdyno.profile.select import WORK

FUNCTION = re.compile(r"^([^\s:][^:\n]*):\d+:\d+$", re.M)
"""The first line of a function in a text profile; the lines of its body are indented."""


class ProfileNothingRan(UserError):
    message = "{record} has no kernel code in these regions and contexts"
    hint = "run `kdyno profile show` to list the regions and what ran in them"


class ProfgenFailed(UserError):
    message = "{tool} cannot make a profile of the record: {complaint}"
    hint = "use clang and llvm-profgen of one release: {tool} may be older than the compiler of the vmlinux"


@dataclass(frozen=True)
class Coverage:
    """The part of a record that a profile covers."""

    functions: int
    """The number of functions in the profile."""
    instructions: float
    """The share of the executed instructions in functions of the profile, 0 to 1."""
    ranges: int
    ranges_with_lines: float
    """The share of ranges whose first address has a line, 0 to 1."""
    missing: tuple[tuple[str, float], ...]
    """The functions that are not in the profile, with their share of the executed instructions; the largest first."""
    tool: str
    notes: tuple[str, ...]
    """The warnings of llvm-profgen."""


def cover(
    record: PmuRecord,
    path: Path,
    vmlinux: Path,
    regions: Sequence[Region],
    contexts: Sequence[str] = WORK,
    out: Path | None = None,
) -> Coverage:
    """Make the profile, at `out` if given, and measure its coverage; `path` is the file of the record."""
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
    """Run llvm-profgen, and return its warnings."""
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
    """Return the functions of a text profile, without functions that are only inlined into others."""
    return {plain_name(name) for name in FUNCTION.findall(profile)}


def have_lines(vmlinux: Path, addresses: Iterable[int]) -> list[bool]:
    """Return whether each address has a line in the line tables."""
    return [innermost.path != "" for innermost, *_ in debuginfo.frames(vmlinux, addresses)]
