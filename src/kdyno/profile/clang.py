"""Sample profiles of clang (AutoFDO), as text or binary. llvm-profdata reads, checks and merges them."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import copy_whole
from kdyno.base.llvm_tools import find_tool
from kdyno.base.process import attempt
from kdyno.base.profile_files import refuse_other_tools
from kdyno.measure.guest.pmu_magic import MAGIC

TOP = re.compile(r"^([^\s:][^:\n]*):(\d{1,20}):\d{1,20}$", re.MULTILINE)
"""The first line of a function: its name, its samples with those of inlined functions, and its entries."""
SIMILARITY = re.compile(r"^ *Whole program profile similarity: (\d{1,3}\.\d{1,9})%$", re.MULTILINE)
COMPLAINT_SHOWN = 300
TEXT_LOOKED_AT = 4096
"""The number of bytes at the start that distinguish text from binary."""


class NotAProfile(UserError):
    message = "{path} is not a PMU record or a sample profile of clang: {why}"
    hint = "make it again with `kdyno profile record` or `kdyno profile cover -o`; a damaged file cannot be repaired"


class ProfileCutShort(UserError):
    message = "the profile {path} is truncated: its last line has no end"
    hint = "make it again with `kdyno profile cover -o`, or copy it again"


class TwoKinds(UserError):
    message = "{record} is a PMU record, but {profile} is a profile of clang: their counts cannot be combined"
    hint = "convert the record to a profile of clang with `kdyno profile cover -o`"


def is_record(path: Path) -> bool:
    """Return whether a file begins like a PMU record, as far as it reaches.

    Raises NotAProfile if it is empty or can't be read, and ProfileOfAnotherTool.
    """
    head = _head(path)
    if not head:
        raise NotAProfile(path=path, why="it is empty")
    return head.startswith(MAGIC) or MAGIC.startswith(head)


def all_records(paths: Sequence[Path]) -> bool:
    """Return whether all of these files are PMU records; False if none is. Raises TwoKinds, and NotAProfile."""
    records = [path for path in paths if is_record(path)]
    others = [path for path in paths if path not in records]
    if records and others:
        raise TwoKinds(record=records[0], profile=others[0])
    return not others


def samples(path: Path) -> dict[str, int]:
    """Return the samples by function, with those of inlined functions. Raises NotAProfile, ProfileCutShort."""
    require_whole(path)
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        out = Path(scratch) / "profile.txt"
        profdata(["merge", "--sample", "--text", f"--output={out}", path], [path])
        text = out.read_text(encoding="utf-8", errors="replace")
    counts = {name: int(count) for name, count in TOP.findall(text)}
    if not any(counts.values()):
        raise NotAProfile(path=path, why="it has no samples of any function")
    return counts


def merge_samples(paths: Sequence[Path], weights: Sequence[int], out: Path) -> int:
    """Merge profiles by weight into one, as text if all are text, and return its number of functions."""
    for path in paths:
        require_whole(path)
    form = "--text" if all(_is_text(_head(path)) for path in paths) else "--extbinary"
    inputs = [f"--weighted-input={weight},{path}" for path, weight in zip(paths, weights, strict=True)]
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        merged = Path(scratch) / "merged"
        profdata(["merge", "--sample", form, f"--output={merged}", *inputs], paths)
        functions = len(samples(merged))
        copy_whole(merged, out)
    return functions


def similarity(base: Path, other: Path) -> float | None:
    """Return the similarity that llvm-profdata reports, 0 to 1: by lines, functions weighted by their samples in both.

    None if llvm-profdata doesn't report it. The measure is that of `llvm-profdata overlap --sample`
    (SampleOverlapAggregator in llvm/tools/llvm-profdata/llvm-profdata.cpp).
    """
    match = SIMILARITY.search(profdata(["overlap", "--sample", base, other], [base, other]))
    return float(match[1]) / 100 if match else None


def _head(path: Path) -> bytes:
    try:
        if not path.is_file():
            raise NotAProfile(path=path, why="it is not a regular file" if path.exists() else "it does not exist")
        with path.open("rb") as file:
            head = file.read(TEXT_LOOKED_AT)
    except OSError as error:
        raise NotAProfile(path=path, why=error.strerror) from error
    refuse_other_tools(path, head, taken=("samples",))
    return head


def _is_text(head: bytes) -> bool:
    return all(byte >= 0x20 or byte in b"\t\n\r" for byte in head) and head.isascii()


def require_whole(path: Path) -> None:
    """Raise ProfileCutShort if a text ends within a line, and NotAProfile if the file is empty.

    llvm-profdata checks binary profiles.
    """
    head = _head(path)
    if not head:
        raise NotAProfile(path=path, why="it is empty")
    if not _is_text(head):
        return
    with path.open("rb") as file:
        file.seek(-1, 2)
        if file.read(1) != b"\n":
            raise ProfileCutShort(path=path)


def profdata(words: Sequence[str | Path], paths: Sequence[Path]) -> str:
    """Run llvm-profdata and return its output. Raises NotAProfile for the file that it refuses."""
    done = attempt([find_tool("llvm-profdata"), *words])
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.strip()] or [f"exit status {done.returncode}"]
        complaint = next((line for line in lines if "error: " in line), lines[-1]).removeprefix("error: ")
        named = next((path for path in paths if complaint.startswith(str(path))), paths[0])
        raise NotAProfile(path=named, why=complaint.removeprefix(str(named)).lstrip(": ")[:COMPLAINT_SHOWN])
    return done.stdout
