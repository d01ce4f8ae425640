"""The profiles that compilers read, from the counters of instrumented kernels: gcc's .gcda files, clang's indexed
profile.

One test runs between two snapshots of a boot. The first two snapshots show the counts of taking a snapshot. All tests
have the same weight: their counts are scaled to one sum.
"""

from __future__ import annotations

import posixpath
import tempfile
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kdyno.base.llvm_tools import find_tool
from kdyno.base.process import output
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import ProfileSettings
from kdyno.measure.guest.counters import BEFORE, Snapshots, read_snapshots
from kdyno.profile import counters
from kdyno.profile.counters import Counts, NothingCounted
from kdyno.profile.gcda import CounterAllowance, GcovFile, encode_gcda, read_gcda
from kdyno.profile.gcda_sums import (
    counts_of,
    hot_summary,
    require_counts,
    require_same_build,
    sum_files,
    total,
    with_counts,
)
from kdyno.profile.ir_profile import CountedFunction, counted_functions, counters_range, text_profile
from kdyno.profile.ir_profile import counts_of as memory_counts

TOTAL = 200_000_000
"""The sum of all counts of a profile: some 10^9 instructions as in other profiles, at five instructions per counter."""
MOST_OF_A_BOOT = 1 << 24
"""The most changed counters in all snapshots of a boot."""


def gcda_files(snapshots: Sequence[Path], image: Image, settings: ProfileSettings) -> bytes:
    """Return, for each object with counts, a line `# object fs/open.o` and its .gcda file in hexadecimal digits.

    `snapshots` are the files of boots. Raises CountersUnsound, NothingCounted, OtherBuild, and what reading .gcda files
    raises.
    """
    boots = [_gcov_snapshots(read_snapshots(path)) for path in snapshots]
    names = sorted(set.intersection(*(set(boot) for boot in boots)))
    for name in names:
        require_same_build([file for boot in boots for file in boot[name]])
    counted = _sum_tests(
        [{name: np.array([counts_of(file) for file in boot[name]]) for name in names} for boot in boots], image
    )
    return _list_objects({name: with_counts(boots[0][name][0], counted[name]) for name in names}, settings)


def gcc_profile(files: Mapping[str, GcovFile]) -> bytes:
    """Return such a profile of given .gcda files, for `from`: scaled to the sum of all profiles, with the default
    thresholds of the knob. Raises OtherBuild and NothingCounted.
    """
    require_counts(list(files.values()), "the profile")
    weight = TOTAL / total(files.values())
    return _list_objects({name: sum_files([(file, weight)]) for name, file in files.items()}, ProfileSettings())


def _list_objects(files: Mapping[str, GcovFile], settings: ProfileSettings) -> bytes:
    """Return the lines of the files of objects that ran."""
    summary = gcc_thresholds(settings)
    objects = objects_of(files)
    lines = []
    for name, file in sorted(files.items()):
        if any(any(function.arcs) for function in file.functions):
            lines.append(f"# object {objects[name]}\n{encode_gcda(replace(file, summary=summary)).hex()}\n")
    return "".join(lines).encode()


def objects_of(names: Collection[str]) -> dict[str, str]:
    """Return the object of each .gcda file: its path without the common directory of all. Pure."""
    below = posixpath.commonpath([posixpath.dirname(name) for name in names])
    return {name: str(PurePosixPath(name).relative_to(below).with_suffix(".o")) for name in names}


def gcc_thresholds(settings: ProfileSettings) -> tuple[int, int]:
    """Return the summary from which gcc determines hot and cold code. Raises NoSuchThreshold."""
    return hot_summary(settings.hot, settings.cold)


def indexed_profile(snapshots: Sequence[Path], image: Image, settings: ProfileSettings) -> bytes:  # noqa: ARG001
    """Return the indexed profile for clang, as the newest llvm-profdata writes it, without functions that never ran.

    Raises CountersUnsound, NothingCounted, CountersWentBack, and what reading the vmlinux raises.
    """
    functions, boots = clang_counts(snapshots, image)
    counts = _sum_tests([{"memory": boot} for boot in boots], image)["memory"]
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        text, indexed = Path(scratch, "text"), Path(scratch, "indexed")
        text.write_text(text_profile(functions, counts, executed_only=True), encoding="utf-8")
        output([find_tool("llvm-profdata"), "merge", text, "-o", indexed])
        return indexed.read_bytes()


def clang_counts(snapshots: Sequence[Path], image: Image) -> tuple[tuple[CountedFunction, ...], list[Counts]]:
    """Return the instrumented functions of the image, and for each boot an array of snapshots × counters.

    Raises CountersUnsound, and what reading the vmlinux raises.
    """
    functions = counted_functions(image.vmlinux)
    start = counters_range(image.vmlinux).start
    boots = [
        np.array([memory_counts(functions, start, content) for content in contents])
        for path in snapshots
        for contents in read_snapshots(path).items.values()
    ]
    return functions, boots


def is_used(boot: Counts) -> NDArray[np.bool_]:
    """Return for each counter whether a test counted more than a snapshot does. `boot` is snapshots × counters."""
    return np.asarray(_differences(boot, "memory").any(axis=0), np.bool_)


def _gcov_snapshots(snapshots: Snapshots) -> dict[str, list[GcovFile]]:
    """Return the file in each snapshot by name; an unchanged file is read once."""
    files: dict[str, list[GcovFile]] = {}
    kernel, boot = CounterAllowance(), CounterAllowance(MOST_OF_A_BOOT)
    for name, contents in snapshots.items.items():
        history: list[GcovFile] = []
        for before, content in zip((None, *contents), contents, strict=False):
            if content is before:
                history.append(history[-1])
                continue
            history.append(read_gcda(content, name))
            boot.take(history[-1])
        kernel.take(history[0])
        files[name] = history
    return files


def _sum_tests(boots: Sequence[Mapping[str, Counts]], image: Image) -> dict[str, Counts]:
    """Return the counts of all tests of all boots, with equal weights. Each boot has arrays of snapshots × counters
    by name. Raises NothingCounted and CountersWentBack.
    """
    parts: list[tuple[dict[str, Counts], float]] = []
    for boot in boots:
        between = {name: _differences(history, name) for name, history in boot.items()}
        for test in range(max(map(len, between.values()), default=0)):
            counted = {name: differences[test] for name, differences in between.items()}
            if executions := sum(int(counts.sum()) for counts in counted.values()):
                parts.append((counted, 1 / executions))
    if not parts:
        raise NothingCounted(
            name=f"image {image.record.key[:12]}", counters=sum(counts.shape[1] for counts in boots[0].values())
        )
    scale = TOTAL / len(parts)
    return {
        name: counters.sum_counts([(counted[name], weight * scale) for counted, weight in parts], name)
        for name in boots[0]
    }


def _differences(history: Counts, name: str) -> NDArray[Any]:
    """Return the counts of each test, tests × counters, without the counts of taking a snapshot."""
    steps = [counters.difference(after, before, name) for before, after in pairwise(history)]
    own, tests = steps[0], np.array(steps[BEFORE - 1 :])
    return tests - np.minimum(tests, own)
