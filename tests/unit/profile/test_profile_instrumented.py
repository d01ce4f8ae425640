"""Counters of instrumented kernels become what compilers read."""

from __future__ import annotations

import json
import struct
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.profile.counters import CountersWentBack, NothingCounted
from kdyno.profile.gcda import ARCS, MOST_IN_ALL, GcdaDamaged, GcovFile, GcovFunction, encode_gcda, read_gcda
from kdyno.profile.gcda_sums import OtherBuild
from kdyno.profile.instrumented import MOST_OF_A_BOOT, TOTAL, gcda_files

IMAGE = cast(Image, SimpleNamespace(record=SimpleNamespace(key="1234567890abcdef"), vmlinux=Path("vmlinux")))
OPEN, FORK = "root/objects/fs/open.gcda", "root/objects/kernel/fork.gcda"


def gcda(*arcs: int) -> bytes:
    """As a kernel writes it: without summary and end."""
    file = GcovFile("B22*", 7, (GcovFunction(1, 2, 3, (*arcs, 1)),), summary=(1, 1))
    whole = encode_gcda(file)
    return whole[:16] + whole[32:-4]


def boot(tmp_path: Path, snapshots: list[tuple[str, dict[str, bytes]]], name: str = "boot") -> Path:
    parts = []
    for number, (after, contents) in enumerate(snapshots):
        for item, content in contents.items():
            line: dict[str, Any] = {"v": 1, "snapshot": number, "after": after, "name": item, "bytes": len(content)}
            parts.append(json.dumps(line).encode() + b"\n" + content)
    path = tmp_path / name
    path.write_bytes(b"".join(parts) + json.dumps({"v": 1, "snapshots": len(snapshots)}).encode() + b"\n")
    return path


def counted(profile: bytes) -> dict[str, GcovFile]:
    lines = profile.decode().splitlines()
    pairs = zip(lines[::2], lines[1::2], strict=True)
    return {line.removeprefix("# object "): read_gcda(bytes.fromhex(digits), line) for line, digits in pairs}


def test_a_test_counts_what_lies_between_two_snapshots_without_what_a_snapshot_adds(tmp_path: Path) -> None:
    snapshots = [
        ("", {OPEN: gcda(100), FORK: gcda(0)}),
        ("", {OPEN: gcda(110)}),  # a snapshot opens files: 10
        ("lat_pipe", {OPEN: gcda(120), FORK: gcda(50)}),
        ("lat_fs", {OPEN: gcda(330), FORK: gcda(50)}),
    ]
    files = counted(gcda_files([boot(tmp_path, snapshots)], IMAGE, ProfileSettings(hot=1000, cold=20)))
    assert files["fs/open.o"].functions[0].arcs == (TOTAL // 2, 0)  # all of the one test, as much as all of the other
    assert files["kernel/fork.o"].functions[0].arcs == (TOTAL // 2, 0)


def test_hot_and_cold_are_told_by_the_summary(tmp_path: Path) -> None:
    snapshots = [("", {OPEN: gcda(0)}), ("", {}), ("lat_fs", {OPEN: gcda(5)})]
    [file] = counted(gcda_files([boot(tmp_path, snapshots)], IMAGE, ProfileSettings(hot=1000, cold=20))).values()
    assert file.summary == (401, 10_000_000)  # gcc: hot from the second / 10,000 on, cold below the first / 20


def test_boots_and_tests_weigh_alike_however_long_they_ran(tmp_path: Path) -> None:
    short = boot(tmp_path, [("", {OPEN: gcda(0), FORK: gcda(0)}), ("", {}), ("t", {OPEN: gcda(3)})], "short")
    long = boot(tmp_path, [("", {OPEN: gcda(0), FORK: gcda(0)}), ("", {}), ("t", {FORK: gcda(9000)})], "long")
    files = counted(gcda_files([short, long], IMAGE, ProfileSettings()))
    assert files["fs/open.o"].functions[0].arcs == files["kernel/fork.o"].functions[0].arcs == (TOTAL // 2, 0)


def test_a_training_that_never_ran_is_refused(tmp_path: Path) -> None:
    never = boot(tmp_path, [("", {OPEN: gcda(9)}), ("", {OPEN: gcda(10)}), ("lat_fs", {OPEN: gcda(11)})])
    with pytest.raises(NothingCounted, match="image 1234567890ab has no counts"):
        gcda_files([never], IMAGE, ProfileSettings())


def test_counters_that_go_back_are_refused(tmp_path: Path) -> None:
    back = boot(tmp_path, [("", {OPEN: gcda(9)}), ("", {}), ("lat_fs", {OPEN: gcda(4)})])
    with pytest.raises(CountersWentBack, match=r"fs/open\.gcda"):
        gcda_files([back], IMAGE, ProfileSettings())


def test_a_snapshot_of_another_build_is_refused(tmp_path: Path) -> None:
    longer = boot(tmp_path, [("", {OPEN: gcda(9)}), ("", {}), ("lat_fs", {OPEN: gcda(11, 5)})])
    with pytest.raises(OtherBuild, match=r"fs/open\.gcda .* the functions differ"):
        gcda_files([longer], IMAGE, ProfileSettings())


def test_boots_that_counted_in_different_objects_have_nothing_to_add_up(tmp_path: Path) -> None:
    boots = [boot(tmp_path, [("", {name: gcda(1)}), ("", {})], str(n)) for n, name in enumerate((OPEN, FORK))]
    with pytest.raises(NothingCounted):
        gcda_files(boots, IMAGE, ProfileSettings())


def test_files_that_claim_many_counters_in_few_bytes_are_refused(tmp_path: Path) -> None:
    zeros = 1 << 20
    claim = gcda(0)[:36] + struct.pack("<Ii", ARCS, -8 * zeros)
    files = {f"root/objects/{number}.gcda": claim for number in range(MOST_IN_ALL // zeros + 1)}
    with pytest.raises(GcdaDamaged, match=r"it claims more than 4,194,304 counters"):
        gcda_files([boot(tmp_path, [("", files), ("", {})])], IMAGE, ProfileSettings())


def test_snapshots_that_claim_many_counters_together_are_refused(tmp_path: Path) -> None:
    zeros = 1 << 20
    claims = [
        gcda(0)[:24] + struct.pack("<4Ii", 1, 2, number, ARCS, -8 * zeros) for number in range(MOST_OF_A_BOOT // zeros)
    ]
    snapshots = [("lat_fs" if number > 1 else "", {OPEN: claim}) for number, claim in enumerate(claims)]
    with pytest.raises(GcdaDamaged, match=r"it claims more than 16,777,216 counters"):
        gcda_files([boot(tmp_path, snapshots)], IMAGE, ProfileSettings())


def test_the_helper_writes_what_a_kernel_writes() -> None:
    file = read_gcda(gcda(5), "a.gcda")
    assert file.summary is None and replace(file, name="") == GcovFile("B22*", 7, (GcovFunction(1, 2, 3, (5, 1)),))
