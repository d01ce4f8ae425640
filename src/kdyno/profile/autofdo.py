"""clang's sample profile of recorded boots, made by llvm-profgen, with the source files of each function.

The text form (SampleProfReader.h of LLVM): one line has a function's name, its samples and its calls; the lines of
its body are indented. `#` begins a comment: ccd cuts the profile at lines such as `# file fs/open.c` before a function.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kdyno.base.llvm_tools import find_tool
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.kernel.vmlinux.checks import require_line_tables, require_same
from kdyno.kernel.vmlinux.sources import files_of
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.profile.balance import balanced_edges
from kdyno.profile.coverage import ProfileNothingRan, profgen
from kdyno.profile.export_llvm import unsymbolized
from kdyno.profile.functions import plain_name

HEADER = re.compile(r"^([^\s:][^:\n]*):\d+:\d+$")


def sample_profile(records: Sequence[Path], image: Image, settings: ProfileSettings) -> bytes:  # noqa: ARG001
    """Return the profile as text; every benchmark has the same weight.

    Raises OtherVmlinux, NoLineTables, ProfileNothingRan and ProfgenFailed.
    """
    read = [read_pmu_record(path) for path in records]
    for record, path in zip(read, records, strict=True):
        require_same(record, path, image.vmlinux)
    require_line_tables(image.vmlinux)
    edges = balanced_edges(read)
    if not edges.ranges:
        raise ProfileNothingRan(record=records[0])
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        source, text = Path(scratch, "edges"), Path(scratch, "profile.txt")
        source.write_text(unsymbolized(edges), encoding="utf-8")
        profgen(find_tool("llvm-profgen"), source, image.vmlinux, text, "text")
        profile = text.read_text(encoding="utf-8", errors="replace")
    return with_files(profile, files_of(image.vmlinux)).encode()


def with_files(profile: str, files: Mapping[str, Sequence[str]]) -> str:
    """Insert the files of each function before it, and omit functions without a known file. Pure.

    The names in the profile have no suffixes of compilers (`.llvm.123`, `.constprop.0`).
    """
    by_name: dict[str, set[str]] = {}
    for name, paths in files.items():
        by_name.setdefault(plain_name(name), set()).update(paths)
    parts = []
    for name, lines in _functions(profile):
        if known := by_name.get(plain_name(name)):
            parts += [f"# file {' '.join(sorted(known))}\n", *lines]
    return "".join(parts)


def _functions(profile: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the name and the lines of each function."""
    name, lines = "", list[str]()
    for line in profile.splitlines(keepends=True):
        if header := HEADER.match(line.rstrip("\n")):
            if lines:
                yield name, lines
            name, lines = header[1], []
        lines.append(line)
    if lines and name:
        yield name, lines
