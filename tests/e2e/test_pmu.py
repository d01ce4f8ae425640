"""The emulated PMU on a real kernel: exact, repeatable, and its profiles name what the kernel's source says."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from kdyno.base import process
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootOrder
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.image import Image
from kdyno.measure.cycles.family import load_family
from kdyno.measure.guest import agent
from kdyno.measure.guest.job import CommandBenchmark, Job, Program
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_parts import Region
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.measure.guest.stream import read_stream
from kdyno.profile.calls import calls
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds
from tests.e2e.conftest import PATCHES, Kdyno

PLAIN = '[variants.plain]\nopt = "O2"\nlines = true\n'
BOOTS = 20
CLOCKS_OWN = 20
"""At most so many instructions lie between the agent's readings of the clock and the marker instructions."""


@pytest.fixture(scope="module")
def image(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    path = tmp_path_factory.mktemp("pmu") / "plain.toml"
    path.write_text(f'name = "plain"\nsource = "debian:linux-source-6.12"\nbaseline = "plain"\n{PLAIN}')
    experiment, where, talk = load_experiment(path), State(state), Talk(quiet=True)
    return build_images(plan_builds(experiment, where, talk).plans, where, talk)["plain"][0]


def job_of(tests: Sequence[str]) -> Job:
    return Job(lane="model", icount_shift=5, iterations=3, tests=agent.test_orders(tests, {}))


def boots(image: Image, place: Path, tests: Sequence[str], events: str, seeds: Sequence[int]) -> Iterator[BootEnd]:
    """Boots with the PMU, two side by side."""
    pmu = PmuConfig.model_validate({"events": events, "clock": "instructions"})
    machine = QemuMachine(QemuConfig(pmu=pmu))
    job = job_of(tests)

    def boot(number: int) -> BootEnd:
        directory = place / f"{events}-{number}"
        directory.mkdir()
        return machine.boot(
            BootOrder(
                name="pmu",
                kernel=image.program,
                vmlinux=image.vmlinux,
                cmdline=(),
                job=job,
                seed=seeds[number],
                directory=directory,
            )
        )

    with ThreadPoolExecutor(2) as pool:
        yield from pool.map(boot, range(len(seeds)))


def record_of(end: BootEnd) -> PmuRecord:
    assert (end.status, end.reason) == ("ok", "")
    assert end.pmu is not None
    return read_pmu_record(end.pmu)


def region(record: PmuRecord, benchmark: str) -> Region:
    return record.regions[record.benchmarks.index(benchmark)]


def test_twenty_boots_with_one_seed_leave_the_same_record_to_the_last_bit(image: Image, tmp_path: Path) -> None:
    ends = list(boots(image, tmp_path, ["lat_syscall", "lat_pagefault"], "edges", [1] * BOOTS))
    records = {end.pmu.read_bytes() for end in ends if end.pmu}
    assert [end.status for end in ends] == ["ok"] * BOOTS
    assert len(records) == 1


def test_all_events_repeat_too_and_another_seed_gives_other_counts(image: Image, tmp_path: Path) -> None:
    one, two, other = boots(image, tmp_path, ["lat_proc"], "all", [1, 1, 2])
    assert one.pmu and two.pmu and other.pmu
    assert one.pmu.read_bytes() == two.pmu.read_bytes()
    assert one.pmu.read_bytes() != other.pmu.read_bytes()


def test_counts_agree_with_qemus_own_count_of_instructions(image: Image, tmp_path: Path) -> None:
    """The agent reads QEMU's -icount clock around the same loops. REP iterations are instructions there."""
    awake = ["lat_syscall", "lat_sig", "lat_pagefault", "lat_mmap", "lat_fs", "lat_proc"]  # a sleep is time, too
    [end] = boots(image, tmp_path, awake, "all", [1])
    record = record_of(end)
    names = ("instructions", "rep_iterations", "user_instructions", "user_rep_iterations")
    columns = [record.names.index(name) for name in names]
    raw = read_stream(end.stream, agent.expected_records(job_of(awake))).samples
    assert len(raw) > 30
    for sample in raw:
        counted = int(region(record, sample.benchmark).iterations[sample.iteration][:, columns].sum())
        assert sample.elapsed is not None
        # The readings themselves, and the end of the loop, are outside the markers.
        assert abs(sample.elapsed - counted) <= CLOCKS_OWN + 1e-4 * sample.elapsed, sample


def test_of_a_program_that_is_measured_every_system_call_is_counted(image: Image, tmp_path: Path) -> None:
    """Twice the blocks that dd copies are so many more reads, whatever else runs meanwhile."""

    def copying(name: str, blocks: int) -> Program:
        script = f"dd if=/dev/zero of=/dev/null bs=64 count={blocks}"
        measured = CommandBenchmark(benchmark=f"{name}.block", description="a block", operations=blocks)
        return Program(name=name, command=("sh", "-c", script), runs=2, measured=measured)

    programs = (copying("once", 1000), copying("twice", 2000))
    machine = QemuMachine(QemuConfig(pmu=PmuConfig(clock="instructions")))
    job = machine.describe().job(1, tests=agent.test_orders(["lat_pipe"], {}), programs=programs)
    end = machine.boot(BootOrder("dd", image.program, (), job, 1, tmp_path, vmlinux=image.vmlinux))
    record = record_of(end)
    assert record.benchmarks == ("lat_pipe", "once.block", "twice.block")
    assert [len(region(record, name).iterations) for name in record.benchmarks] == [1, 2, 2]
    reads = {
        name: sum(edge.count for edge in calls(record, [region(record, name)]) if edge.callee == "ksys_read")
        for name in ("once.block", "twice.block")
    }
    assert reads["twice.block"] - reads["once.block"] == 2 * 1000
    per_block = [sample.elapsed / sample.work for sample in end.report.samples[1:] if sample.elapsed and sample.work]
    assert len(per_block) == 4 and min(per_block) > 100


def test_counts_without_and_with_caches_are_the_same_and_disturb_nothing(image: Image, tmp_path: Path) -> None:
    [edges] = boots(image, tmp_path, ["lat_syscall"], "edges", [1])
    [both] = boots(image, tmp_path, ["lat_syscall"], "all", [1])
    assert edges.stream.read_bytes() == both.stream.read_bytes()
    few, many = record_of(edges), record_of(both)
    for number, counted in few.regions.items():
        for iteration, counts in counted.iterations.items():
            assert np.array_equal(counts, many.regions[number].iterations[iteration][:, : len(few.names)])


@pytest.mark.parametrize(
    ("test", "benchmark", "path"),
    [
        ("lat_syscall", "lat_syscall.null", "entry_SYSCALL_64 do_syscall_64 __x64_sys_getppid"),
        ("lat_pipe", "lat_pipe", "vfs_write pipe_write vfs_read pipe_read __schedule __switch_to try_to_wake_up"),
        ("lat_proc", "lat_proc.fork", "kernel_clone copy_process copy_page_range wake_up_new_task do_exit"),
        ("lat_pagefault", "lat_pagefault", "asm_exc_page_fault exc_page_fault handle_mm_fault filemap_map_pages"),
    ],
)
def test_the_flat_profile_names_the_functions_on_the_path(
    image: Image, tmp_path: Path, test: str, benchmark: str, path: str
) -> None:
    [end] = boots(image, tmp_path, [test], "edges", [1])
    record = record_of(end)
    numbers = {number for context in region(record, benchmark).contexts[:2] for number in context.functions}
    assert set(path.split()) <= {record.functions[number].name for number in numbers}


def executed(record: PmuRecord, number: int) -> dict[str, int]:
    """Instructions of a region's own work, by function."""
    column = record.names.index("instructions")
    counted: dict[str, int] = {}
    for context in record.regions[number].contexts[:2]:
        for index, events in context.functions.items():
            name = record.functions[index].name
            counted[name] = counted.get(name, 0) + int(events[column])
    return {name: count for name, count in counted.items() if count}


def test_general_runs_to_its_end_again_and_again_and_has_seen_what_each_benchmark_runs(
    image: Image, tmp_path: Path
) -> None:
    first, again = boots(image, tmp_path, ["general"], "edges", [1, 1])
    assert first.pmu and again.pmu
    assert first.pmu.read_bytes() == again.pmu.read_bytes()
    job = job_of(["general"])
    report = read_stream(first.stream, agent.expected_records(job))
    assert (report.unsupported, report.broken) == ({}, {})
    general = record_of(first)
    assert len(general.regions) == len(agent.benchmark_names(job.tests))
    executed_names = {name for number in general.regions for name in executed(general, number)}

    (tmp_path / "lmbench").mkdir()
    [end] = boots(image, tmp_path / "lmbench", ["lmbench"], "edges", [1])
    lmbench = record_of(end)
    for number in lmbench.regions:
        counted = executed(lmbench, number)
        share = sum(count for name, count in counted.items() if name in executed_names) / sum(counted.values())
        assert share > 0.98, (number, share)


def test_clang_takes_the_profile_of_a_real_vmlinux(kdyno: Kdyno, image: Image, tmp_path: Path) -> None:
    record, profile = tmp_path / "kernel.kpmu", tmp_path / "kernel.prof"
    tests = ("--tests", "lat_syscall,lat_pipe,lat_proc", "--events", "edges")
    subject = ("profile", "record", image.record.key)
    kdyno(*subject, *tests, "-o", str(record))
    covered = kdyno("profile", "cover", str(record), "--vmlinux", str(image.vmlinux), "-o", str(profile), "--json")
    assert json.loads(covered.stdout)["instructions"] > 0.85
    assert profile.stat().st_size > 10_000


def test_a_slow_down_in_modelled_cycles_is_explained_by_the_function_that_it_was_planted_in(kdyno: Kdyno) -> None:
    text = f"""{PLAIN}
[variants.slow]
extends = "plain"
patches = ["{PATCHES / "slow-syscalls.patch"}"]
[workload]
tests = ["lat_syscall"]
[machine.pmu]
family = "znver4"
"""
    html = kdyno.directory / "report.html"
    path = kdyno.experiment("cycles", text, baseline="plain", blocks=3)
    report = json.loads(kdyno("run", path, "--json", "--html", str(html)).stdout)
    [null] = (comparison for comparison in report["comparisons"] if comparison["benchmark"] == "lat_syscall.null")
    assert (null["verdict"], report["benchmarks"][0]["unit"]) == ("slower", "cycles")
    assert "modelled" in " ".join(report["notices"])
    assert "<svg" in html.read_text() and "__x64_sys_getppid" in html.read_text()

    explanation = json.loads(kdyno("explain", "latest", "slow", "lat_syscall.null", "--json").stdout)["explanation"]
    assert explanation["functions"][0]["function"] == "__x64_sys_getppid"
    again = kdyno("explain", "latest", "slow", "lat_syscall.null")
    assert "modelled" in again.stdout and "__x64_sys_getppid" in again.stdout


def test_a_cycle_model_that_is_fitted_here_ranks_programs_that_it_was_not_fitted_to(kdyno: Kdyno) -> None:
    """Natively timed on whatever host this is, so the bound is relative: instructions alone must rank them worse."""
    if "plugin" not in process.output(["qemu-x86_64", "--help"]):
        kdyno("calibrate", "--family", "znver4", status=3)
        pytest.skip("qemu-x86_64 was built without plugins, as Debian 13's is")
    family = kdyno.directory / "here.toml"
    done = kdyno("calibrate", "--family", "znver4", "--times", "5", "--passes", "2", "-o", str(family), "--json")
    held_out = json.loads(done.stdout)["held_out"]
    assert held_out["programs"] >= 20
    assert held_out["spearman"] > held_out["spearman_of_instructions"]
    assert load_family(f"file:{family}").caption().startswith("modelled, ")
