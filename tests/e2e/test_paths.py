"""The machine `uml`: one real kernel for ARCH=um, counted, timed, explained and killed as a process of this host."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootLimits, BootOrder
from kdyno.boot.uml import UmlConfig, UmlMachine
from kdyno.kernel.delegation.records import read_records
from kdyno.kernel.image import Image
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.paths.table import path_orders
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds
from kdyno.store.artefacts import Artefacts
from tests.e2e.conftest import PATCHES, Kdyno
from tests.unit.base.test_process import wait_until

PLAIN = '[variants.plain]\nopt = "O2"\n'
PATHS = (
    "tmpfs_read_4k",
    "ext4_write_4k",
    "lookup_deep",
    "open_close",
    "pipe_ping",
    "unix_stream_4k",
    "tcp_ping",
    "epoll_10",
    "timer",
    "kmalloc_192",
    "rbtree",
    "proc_stat",
    "crc32_1500",
)
"""At least one path of each kind of actor: files, other threads, sockets, timers, memory, the library alone."""
MACHINE = '[machine]\ntype = "uml"\n'
COUNTED = '[machine]\ntype = "uml"\nlane = "model"\n[machine.pmu]\nfamily = "znver4"\n'
WORKLOAD = f'[workload]\ntype = "paths"\ntests = {json.dumps(PATHS)}\n'
LEAST, MOST = 20, 1_000_000
"""Core cycles of an operation, on any processor that runs Linux."""
SLOWEST, FASTEST = 0.001, 64
"""Bytes of a core cycle."""

ATTEMPTS = 5
QUIET = 0.008
"""The smallest effect that a run on a quiet host could have seen."""


def run(kdyno: Kdyno, name: str, text: str, *, blocks: int, again: bool = False) -> dict[str, Any]:
    """Run an experiment; return its report."""
    path = kdyno.experiment(name, text, baseline="plain", blocks=blocks)
    report: dict[str, Any] = json.loads(kdyno("run", path, "--json", *(["--again"] if again else [])).stdout)
    return report


def regions(state: Path, record: str) -> dict[int, dict[str, Any]]:
    """Return all counts of the measured loops of a boot. The code around them reads files of the host."""
    counted = read_pmu_record(Artefacts(State(state).artefacts).get(record))
    return {number: asdict(region) for number, region in counted.regions.items()}


@contextmanager
def other_work() -> Iterator[None]:
    """Keep every CPU busy while the body runs."""
    code = "while True: pass"
    spinners = [subprocess.Popen([sys.executable, "-c", code]) for _ in os.sched_getaffinity(0)]
    try:
        yield
    finally:
        for spinner in spinners:
            spinner.kill()
            spinner.wait()


def test_counts_repeat_to_the_last_bit_beside_other_work_and_are_explained(kdyno: Kdyno) -> None:
    zeroed = '[variants.zeroed]\nextends = "plain"\ncmdline = ["init_on_alloc=1"]\n'
    text = f"{PLAIN}{zeroed}{COUNTED}{WORKLOAD}"
    report = run(kdyno, "counted", text, blocks=1)
    assert [boot["status"] for boot in report["boots"]] == ["ok", "ok"]
    assert all({sample["benchmark"] for sample in boot["samples"]} == set(PATHS) for boot in report["boots"])
    with other_work():
        beside = run(kdyno, "counted", text, blocks=1, again=True)
    assert beside["run"]["id"] != report["run"]["id"]
    for alone, crowded in zip(report["boots"], beside["boots"], strict=True):
        counts = regions(kdyno.state, alone["pmu"])
        assert len(counts) == len(PATHS)
        np.testing.assert_equal(regions(kdyno.state, crowded["pmu"]), counts)
    ratio_of = {row["benchmark"]: row["estimate"]["ratio"] for row in report["comparisons"]}
    assert ratio_of["kmalloc_192"] > 1.02 and ratio_of["crc32_1500"] == pytest.approx(1, abs=0.001)
    explained = json.loads(kdyno("explain", "latest", "zeroed", "kmalloc_192", "--json").stdout)["explanation"]
    assert "memset" in explained["functions"][0]["function"], "the kernel now zeroes what it gives"


def test_every_path_is_timed_and_a_kernel_compared_with_itself_shows_no_difference(kdyno: Kdyno) -> None:
    # The margin is wide, and a path may lack a verdict if the host disturbed it: no host is known to be quiet.
    text = f'{PLAIN}[variants.same]\nextends = "plain"\n{MACHINE}{WORKLOAD}[judge]\nmargin = 0.5\n'
    report = run(kdyno, "timed", text, blocks=3)
    kept = [boot for boot in report["boots"] if boot["status"] == "ok"]
    assert len(kept) == 6, [boot["reason"] for boot in report["boots"]]
    assert all({"clock_moved", "core_shared", "disturbed_paths"} <= set(boot["conditions"]) for boot in kept)
    rows = {row["benchmark"]: row for row in report["comparisons"]}
    assert set(rows) == set(PATHS)
    assert {row["verdict"] for row in rows.values()} <= {"equivalent", "undecided", None}
    assert all("somebody else was on the core" in row["reason"] for row in rows.values() if row["verdict"] is None)
    units = {benchmark["name"]: benchmark["unit"] for benchmark in report["benchmarks"]}
    for value in report["values"]:
        low, high = (LEAST, MOST) if units[value["benchmark"]] == "cycles" else (SLOWEST, FASTEST)
        assert low < value["value"] < high, value


@pytest.fixture(scope="module")
def image(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    path = tmp_path_factory.mktemp("paths") / "plain.toml"
    path.write_text(f'name = "plain"\nsource = "debian:linux-source-6.12"\nbaseline = "plain"\n{PLAIN}{MACHINE}')
    experiment, where, talk = load_experiment(path), State(state), Talk(quiet=True)
    return build_images(plan_builds(experiment, where, talk).plans, where, talk)["plain"][0]


def test_a_rule_for_a_file_applies_to_a_kernel_that_is_a_program(kdyno: Kdyno, image: Image, state: Path) -> None:
    rule = '[[variants.plain.delegation.rule]]\nfiles = ["lib/crc32.c"]\nadd = ["-Os"]\n'
    path = kdyno.experiment("delegated", f"{PLAIN}{rule}{MACHINE}", baseline="plain", blocks=1)
    [built] = json.loads(kdyno("build", path, "--json").stdout)["plain"]
    records = read_records(state / "images" / built["key"] / "delegation.jsonl").objects
    assert [record.source for record in records if record.answer == "rewritten"] == ["lib/crc32.c"]
    outside = [record.source for record in records if record.reason == "not code of the running kernel"]
    assert len(outside) < len(records) / 10, outside
    assert (state / "images" / built["key"] / "vmlinux").stat().st_size != image.program.stat().st_size


def kernel_in(directory: Path) -> int | None:
    """Return the process that runs a kernel in a directory."""
    for process in Path("/proc").iterdir():
        if process.name.isdecimal():
            try:
                if process.joinpath("exe").readlink().parent == directory:
                    return int(process.name)
            except OSError:  # it has ended, or is another user's
                continue
    return None


def interfered(image: Image, directory: Path, number: signal.Signals) -> BootEnd:
    """Boot the kernel for a thousand repetitions, and send it a signal in the middle."""
    job = Job(lane="wall", iterations=1000, tests=path_orders(PATHS))
    order = BootOrder("interfered", image.program, (), job, seed=1, directory=directory)

    def send() -> None:
        stream = directory / "stream.txt"
        wait_until(lambda: stream.exists() and b"kdyno-path " in stream.read_bytes())
        kernel = kernel_in(directory)
        assert kernel is not None
        os.kill(kernel, number)

    sender = Thread(target=send)
    sender.start()
    end = UmlMachine(UmlConfig(limits=BootLimits(boot=60, silence=5))).boot(order)
    sender.join()
    return end


@pytest.mark.parametrize(
    ("number", "status", "reason"),
    [
        (signal.SIGSEGV, "failed", "panic: Kernel panic - not syncing"),
        (signal.SIGSTOP, "failed", "hung: silent for 5 s"),
        (signal.SIGKILL, "lost", "it was killed by signal 9"),
    ],
)
def test_a_kernel_that_crashes_hangs_or_is_killed_in_the_middle_ends_so(
    image: Image, tmp_path: Path, number: signal.Signals, status: str, reason: str
) -> None:
    end = interfered(image, tmp_path, number)
    assert (end.status, end.reason[: len(reason)]) == (status, reason), end.reason
    assert kernel_in(tmp_path) is None


@pytest.mark.long  # three kernels of clang's
def test_a_profile_of_the_paths_makes_them_faster(kdyno: Kdyno, state: Path) -> None:
    text = f"""
[variants.plain]
toolchain = "clang-19"
opt = "O2"
[variants.tuned]
extends = "plain"
profile = {{ use = ["autofdo"], train = ["paths"] }}
{MACHINE}{WORKLOAD}"""
    report = run(kdyno, "tuned", text, blocks=6)
    [mean] = report["geometric_means"]
    assert mean["estimate"]["ratio"] > 1.05, mean["sentence"]
    tuned = next(variant for variant in report["run"]["variants"] if variant["name"] == "tuned")
    records = (state / "images" / tuned["images"][0]["key"] / "delegation.jsonl").read_text().splitlines()
    profiles = {record["source"]: record["profiles"] for record in map(json.loads, records)}
    assert profiles["arch/um/os-Linux/signal.c"] == ["autofdo"], "what talks to the host is code of the kernel"


@pytest.mark.long  # two kernels of their own
def test_a_planted_slow_down_of_one_percent_is_found_in_twelve_blocks(kdyno: Kdyno, state: Path) -> None:
    untouched = ("kstrtoull", "crc32_1500", "siphash_64", "csum_1460")
    text = f"""
[variants.plain]
opt = "O2"
patches = ["{PATCHES / "eight-nops.patch"}"]
[variants.slow]
opt = "O2"
patches = ["{PATCHES / "one-percent-slower.patch"}"]
{MACHINE}
[workload]
type = "paths"
tests = {json.dumps(["ext4_read_4k", *untouched])}
[judge]
margin = 0.002
alpha = 0.01
"""
    for attempt in range(ATTEMPTS):
        report = run(kdyno, "planted", text, blocks=12, again=attempt > 0)
        row_of = {row["benchmark"]: row for row in report["comparisons"]}
        planted = row_of["ext4_read_4k"]
        if planted["estimate"]["detectable"] <= QUIET:
            break
    else:
        pytest.skip(f"this host is too noisy: 12 blocks could have seen {planted['estimate']['detectable']:.1%}")
    plain, slow = (
        (state / "images" / variant["images"][0]["key"] / "System.map").read_bytes()
        for variant in report["run"]["variants"]
    )
    assert plain == slow, "all code is at the same addresses"
    assert planted["verdict"] == "slower", planted["sentence"]
    assert 1.002 < 1 / planted["estimate"]["ratio"] < 1.03
    assert "slower" not in {row_of[name]["verdict"] for name in untouched}
