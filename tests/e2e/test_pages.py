"""Pages of several sizes on a real kernel: what programs are given, say of it, and what the TLBs make of it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import page_size_words
from kdyno.measure.guest.job import Job, Program
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds

pytestmark = pytest.mark.long  # a kernel of its own

TRANSPOSE = ("kdyno-loads", "transpose", "--size", "1032", "--json")
MATRICES = 2 * 8 * 1032 * 1032
"""Bytes."""
REGION = 1
"""Of a transpose."""
FRAGMENTED = """
mkdir /full
mount -t tmpfs -o size=100% none /full
pages=$(($(awk '/MemAvailable/ { print $2 }' /proc/meminfo) / 8 - 3000))
dd if=/dev/zero bs=4096 count=$pages 2>/dev/null | tee /full/one >/full/other
rm /full/one
kdyno-loads fault --bytes 64M --json
kdyno-loads matmul --size 64 --json
"""
"""Two files take turns for nearly all pages. Without one of them half of memory is free, and hardly 2 MB in a row."""


@pytest.fixture(scope="module")
def images(state: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Image]:
    path = tmp_path_factory.mktemp("pages") / "pages.toml"
    path.write_text(
        'name = "pages"\nsource = "debian:linux-source-6.12"\nbaseline = "large"\n[variants.none]\n[variants.large]\n'
        'page_size = "2M"\nkconfig = { VM_EVENT_COUNTERS = true, PROC_PAGE_MONITOR = true }\n'
    )
    experiment, where, talk = load_experiment(path), State(state), Talk(quiet=True)
    built = build_images(plan_builds(experiment, where, talk).plans, where, talk)
    return {name: layouts[0] for name, layouts in built.items()}


@dataclass(frozen=True)
class BootedLoads:
    """What the loads of a boot said, and the events of a transpose."""

    outcomes: list[dict[str, Any]]
    events: dict[str, int]


def boot(
    image: Image, place: Path, command: Sequence[str], *, page_size: str | None, memory_mb: int = 1024, pmu: bool = True
) -> BootedLoads:
    counting = PmuConfig(scope="all", clock="instructions") if pmu else None
    place.mkdir()
    order = BootOrder(
        name="pages",
        kernel=image.program,
        vmlinux=image.vmlinux,
        cmdline=page_size_words(page_size) if page_size else (),
        job=Job(lane="model", icount_shift=5, iterations=1, programs=(Program(name="pages", command=tuple(command)),)),
        seed=1,
        directory=place,
    )
    end = QemuMachine(QemuConfig(pmu=counting, memory_mb=memory_mb)).boot(order)
    report = end.report
    [step] = report.steps
    assert (end.status, step.status, step.stderr) == ("ok", 0, b""), end.reason
    events = {}
    if end.pmu:
        record = read_pmu_record(end.pmu)
        task, exception, _interrupt = record.regions[REGION].iterations[0]
        events = dict(zip(record.names, (task + exception).tolist(), strict=True))
    return BootedLoads([json.loads(line) for line in step.stdout.splitlines()], events)


def test_large_pages_are_told_from_small_ones_as_the_kernel_itself_does(
    images: dict[str, Image], tmp_path: Path
) -> None:
    booted = {size: boot(images["large"], tmp_path / size, TRANSPOSE, page_size=size) for size in ("4k", "512k", "2M")}
    [small], [medium], [large] = (booted[size].outcomes for size in ("4k", "512k", "2M"))
    assert small["memory"]["anon_huge_pages"] == medium["memory"]["anon_huge_pages"] == 0
    assert large["memory"]["anon_huge_pages"] > MATRICES - (4 << 20)

    assert small["large_pages"] == []
    assert [page["size_kb"] for page in medium["large_pages"]] == [512]
    [given] = large["large_pages"]
    assert given["size_kb"] == 2048 and given["initialisation"]["faults"] >= (MATRICES >> 21) - 2
    assert given["timed"] == {"faults": 0, "fallbacks": 0}

    events = {size: outcome.events for size, outcome in booted.items()}
    assert all(1032 * 1032 <= event["user_stores"] <= 1.1 * 1032 * 1032 for event in events.values())
    # Entries of the page tables are of 4 kB each, whatever the size of what they map a part of.
    for size in ("4k", "512k"):
        assert events[size]["user_dtlb_misses_2m"] == 0
        assert events[size]["user_dtlb_misses"] > 1032 * 1032
    # What is left over of a matrix beyond a multiple of 2 MB has small pages.
    assert events["2M"]["user_dtlb_misses"] < 0.2 * events["4k"]["user_dtlb_misses"]
    assert events["2M"]["user_dtlb_misses_2m"] > 0


def test_where_no_large_page_is_free_the_fallbacks_are_said_and_the_next_load_runs(
    images: dict[str, Image], tmp_path: Path
) -> None:
    command = ("sh", "-ec", FRAGMENTED)
    outcome = boot(images["large"], tmp_path / "full", command, page_size="2M", memory_mb=640, pmu=False)
    fault, matmul = outcome.outcomes
    [given] = fault["large_pages"]
    assert given["size_kb"] == 2048 and given["timed"]["fallbacks"] > 0
    assert fault["verified"] and matmul["verified"]


def test_a_kernel_without_large_pages_says_so_by_saying_nothing(images: dict[str, Image], tmp_path: Path) -> None:
    [outcome] = boot(images["none"], tmp_path / "none", TRANSPOSE, page_size=None, pmu=False).outcomes
    assert (outcome["large_pages"], outcome["memory"], outcome["verified"]) == (None, None, True)
