"""The paths: their table, and the output of a kernel that runs them, which is hostile input."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kdyno.base.lanes import CORE_CLOCK
from kdyno.measure.guest.job import TestOrder
from kdyno.measure.paths.output import PathsOutput, RequestedPaths, read_output
from kdyno.measure.paths.table import UnknownPath, list_loads, path_orders, paths
from kdyno.measure.workload.base import WorkloadSettings
from kdyno.measure.workload.paths import PathsWorkload
from kdyno.measure.workload.registry import WORKLOADS, default_workload

PIPE, READ = "pipe_ping", "tmpfs_read_64"


def hello(count: int) -> str:
    return f"kdyno-paths 1 6.12.117 {count}"


def sample(
    name: str, repetition: int, ticks: int = 5000, before: int = 4000, after: int = 4000, wide: float = 0.25
) -> str:
    widths = f"{wide * before:.0f} {wide * after:.0f}"
    return f"kdyno-path {name} {repetition} 10 {ticks} {before} {after} 4000 {widths}"


def read(directory: Path, lines: Sequence[str], *names: str, timed: bool = True, repetitions: int = 3) -> PathsOutput:
    path = directory / "stream.txt"
    path.write_text("".join(f"{line}\n" for line in lines))
    wanted = [paths()[name] for name in names]
    return read_output(path, RequestedPaths("wall", CORE_CLOCK, wanted, repetitions, is_timed=timed))


def whole(*names: str) -> list[str]:
    samples = [sample(name, repetition) for name in names for repetition in range(3)]
    return [hello(len(names)), *samples, "kdyno-paths done"]


def test_the_table_has_at_least_forty_paths_besides_the_loops_of_the_library() -> None:
    assert sum(path.kind == "path" for path in paths().values()) >= 40
    assert all((path.bytes > 0) == (path.unit == "byte") for path in paths().values())


def test_a_workload_names_paths_and_groups_each_once_in_the_kernels_order() -> None:
    assert path_orders(("pipe_ping", "pipe", "poll_10")) == tuple(
        TestOrder(name=name) for name in ("pipe_ping", "pipe_stream_64", "pipe_stream_4k", "pipe_stream_64k", "poll_10")
    )
    assert len(path_orders(("all",))) == len(paths())


def test_the_halves_share_no_path_and_are_all_together() -> None:
    fit, held_out = ({order.name for order in path_orders((half,))} for half in ("fit", "held-out"))
    assert not fit & held_out
    assert fit | held_out == set(paths())


def test_unknown_paths_are_refused_at_once_with_the_nearest_ones() -> None:
    with pytest.raises(UnknownPath, match=r"is named pipe_pong or memry$") as refused:
        path_orders(("pipe_pong", "unix", "memry", "pipe_pong"))
    assert "did you mean pipe_ping, memory?" in refused.value.advice


def test_all_paths_are_shown_as_a_number_and_fewer_by_their_names() -> None:
    assert list_loads(tuple(paths())) == f"{len(paths())} paths"
    assert list_loads([order.name for order in path_orders(("fit",))]) == "48 paths (half fit)"
    assert list_loads(["pipe_ping", "unix_ping"]) == "pipe_ping, unix_ping"
    assert list_loads(["general"]) == "general"


def test_a_kernel_that_is_its_own_guest_runs_paths_where_no_workload_is_named() -> None:
    assert default_workload("kernel") == PathsWorkload()
    assert default_workload().type == "lmbench"
    runners: set[type[WorkloadSettings]] = {kind for kind in WORKLOADS.values() if kind.runner == "kernel"}
    assert runners == {PathsWorkload}


def test_a_whole_output_gives_samples_in_cycles_of_the_core(tmp_path: Path) -> None:
    lines = whole(PIPE, READ)
    lines[1] = sample(PIPE, 0, ticks=6000, before=2000, after=2000)  # the core runs at twice the counter's speed
    report = read(tmp_path, lines, PIPE, READ).report
    assert (report.complete, report.fault) == (True, None)
    assert report.hello is not None and report.hello.kernel == "6.12.117"
    assert [(each.name, each.unit, each.direction) for each in report.benchmarks] == [
        (PIPE, "cycles", "lower"),
        (READ, "B/cycle", "higher"),
    ]
    assert [(each.benchmark, each.iteration, each.elapsed, each.work) for each in report.samples[:2]] == [
        (PIPE, 0, 12_000, 10),
        (PIPE, 1, 5000, 10),
    ]
    assert report.samples[3].work == 640, "ten reads of 64 bytes"


def test_a_repetition_during_which_the_clock_moved_is_left_out(tmp_path: Path) -> None:
    lines = [hello(1), *(sample(PIPE, number, after=4000 if number else 4200) for number in range(4))]
    read_here = read(tmp_path, [*lines, "kdyno-paths done"], PIPE, repetitions=4)
    assert (read_here.moved, [each.iteration for each in read_here.report.samples]) == (1, [1, 2, 3])


def test_a_path_whose_clock_moved_nearly_always_is_broken_and_says_so(tmp_path: Path) -> None:
    lines = [hello(1), *(sample(PIPE, number, after=4200) for number in range(3)), "kdyno-paths done"]
    report = read(tmp_path, lines, PIPE).report
    assert report.complete and not report.samples
    assert report.broken == {
        PIPE: "of 3 repetitions the core's clock moved in 3, and somebody else was on the core in 0"
    }


def test_how_long_four_chains_take_alone_is_a_fact_of_the_core(tmp_path: Path) -> None:
    for alone, beside in ((0.25, 0.28), (0.29, 0.33)):
        lines = [hello(1), *(sample(PIPE, number, wide=beside if number == 3 else alone) for number in range(5))]
        output = read(tmp_path, [*lines, "kdyno-paths done"], PIPE, repetitions=5)
        assert (output.shared, [each.iteration for each in output.report.samples]) == (1, [0, 1, 2, 4]), alone


def test_a_core_that_was_shared_all_the_time_is_not_taken_for_one_of_ones_own(tmp_path: Path) -> None:
    lines = [hello(1), *(sample(PIPE, number, wide=0.4) for number in range(5))]
    output = read(tmp_path, [*lines, "kdyno-paths done"], PIPE, repetitions=5)
    assert (output.shared, output.report.samples) == (5, ())
    assert "somebody else was on the core in 5" in output.report.broken[PIPE]


def test_a_repetition_with_somebody_else_on_the_core_is_left_out(tmp_path: Path) -> None:
    lines = [hello(1), *(sample(PIPE, number, wide=0.27 if number else 0.4) for number in range(4))]
    output = read(tmp_path, [*lines, "kdyno-paths done"], PIPE, repetitions=4)
    assert (output.shared, output.moved, [each.iteration for each in output.report.samples]) == (1, 0, [1, 2, 3])


def test_a_path_is_disturbed_if_more_than_a_fifth_of_its_repetitions_are_left_out(tmp_path: Path) -> None:
    for marked, disturbed in ((2, ()), (3, (PIPE,))):
        marks = [sample(PIPE, number, wide=0.4 if number < marked else 0.25) for number in range(10)]
        output = read(tmp_path, [hello(1), *marks, "kdyno-paths done"], PIPE, repetitions=10)
        assert (output.shared, output.disturbed) == (marked, disturbed)


def test_under_an_emulator_the_chains_do_not_count(tmp_path: Path) -> None:
    lines = [hello(1), *(sample(PIPE, number, after=90_000) for number in range(3)), "kdyno-paths done"]
    output = read(tmp_path, lines, PIPE, timed=False)
    assert [each.elapsed for each in output.report.samples] == [5000] * 3
    assert output.disturbed == ()


def test_a_path_that_fails_is_broken_and_the_others_go_on(tmp_path: Path) -> None:
    lines = [hello(2), f"kdyno-path-error {PIPE} -ENOMEM", *(sample(READ, number) for number in range(3))]
    report = read(tmp_path, [*lines, "kdyno-paths done"], PIPE, READ).report
    assert report.complete and report.broken == {PIPE: "-ENOMEM"}
    assert {each.benchmark for each in report.samples} == {READ}


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        ([], None),
        (["hello"], "line 1 is not the first line of a kernel that runs paths: hello"),
        (["kdyno-paths 2 6.12 1"], "line 1: version 2, but this kdyno reads version 1"),
        (["kdyno-paths 1 6.12 7"], "line 1: it runs 7 paths, 1 were requested"),
        ([hello(1), "kdyno-paths done"], "line 2: the end after 0 of 3 repetitions of pipe_ping"),
        ([hello(1), sample(PIPE, 1)], "line 2: pipe_ping repetition 1, which was not expected"),
        ([hello(1), sample(READ, 0)], "line 2: tmpfs_read_64 repetition 0, which was not expected"),
        ([hello(1), sample(PIPE, 0), sample(PIPE, 0)], "line 3: pipe_ping repetition 0, which was not expected"),
        ([*whole(PIPE)[:-1], sample(PIPE, 3)], "line 5: kdyno-path pipe_ping 3"),
        ([hello(1), sample(PIPE, 0, ticks=0)], "line 2: kdyno-path pipe_ping 0 10 0"),
        ([hello(1), sample(PIPE, 0, before=0)], "line 2: kdyno-path pipe_ping 0"),
        (
            [hello(1), "kdyno-path pipe_ping 0 10 99999999999999999999 1 1 1 1 1"],
            "line 2 is none that kernels of kdyno",
        ),
        ([hello(1), "kdyno-path pipe_ping 0 -1 5 5 5 5 5 5"], "line 2 is none that kernels of kdyno"),
        ([hello(1), "\x1b[2J"], "line 2 is none that kernels of kdyno write: "),
        ([hello(1), "x" * 1000], "line 2 is cut short, or longer than 400 bytes"),
        ([hello(1), "kdyno-path-error other -ENOMEM"], "line 2: kdyno-path-error other -ENOMEM"),
        ([*whole(PIPE), "more"], "line 6 comes after the end"),
        ([*whole(PIPE), *whole(PIPE)], "line 6 comes after the end"),
    ],
)
def test_what_a_job_did_not_ask_for_ends_the_reading(tmp_path: Path, lines: list[str], fault: str | None) -> None:
    report = read(tmp_path, lines, PIPE).report
    assert not report.complete
    assert (report.fault or "").startswith(fault or "")
    assert "\x1b" not in (report.fault or "")


def test_an_output_that_is_missing_or_not_text_is_a_fault_and_no_error(tmp_path: Path) -> None:
    asked = RequestedPaths("wall", CORE_CLOCK, [paths()[PIPE]], 3, is_timed=True)
    assert read_output(tmp_path / "nothing", asked).report.fault == "no stream"
    (tmp_path / "binary").write_bytes(bytes(range(256)) * 100)
    assert not read_output(tmp_path / "binary", asked).report.complete
