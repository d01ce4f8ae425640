"""The history of a store: what is on one axis, in which order, and where it changes."""

from __future__ import annotations

import shlex
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdyno.cli.main import parse_words
from kdyno.judge.history import divisive
from kdyno.judge.history.changes import history
from kdyno.judge.history.lines import sort_kernels
from kdyno.judge.history.model import HistoryKernel
from kdyno.runs.experiment.ab import name_of, read_side
from kdyno.store.errors import RecordCorrupt
from tests.unit import history_specimen, specimen
from tests.unit.history_specimen import add_run, commit, fill, run_of_kernel

NAMES = ["lat_pipe.roundtrip", "lat_syscall.null", "lat_syscall.read"]


def step_at_3(kernel: int, variant: str, name: str, block: int) -> float:
    """System calls take 4 % longer from kernel 3 on; a benchmark moves by less than the margin at kernel 1."""
    level = 1000 * (1.04 if "syscall" in name and kernel >= 3 else 1) * (1.004 if kernel >= 1 else 1)
    return level * (0.9 if variant.startswith("clang") else 1) * (1 + block / 50)


def test_an_exact_lane_has_one_change_for_all_benchmarks_that_move_beyond_the_margin(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 6, NAMES, step_at_3) as store:
        done = history(store.series())
    [axis], [change] = done.axes, done.report.changes
    assert [kernel.identity for kernel in axis.kernels] == [f"git:{commit(kernel)}" for kernel in range(6)]
    assert (change.before.identity, change.after.identity) == (f"git:{commit(2)}", f"git:{commit(3)}")
    moved = {(row.benchmark, row.recipe) for row in change.benchmarks}
    assert moved == {(name, variant) for name in NAMES[1:] for variant in history_specimen.VARIANTS}
    assert (change.worse, change.better, change.is_exact) == (4, 0, True)
    assert [row.ratio for row in change.benchmarks] == pytest.approx([1.04] * 4, rel=1e-4)


def test_a_point_has_the_mean_of_its_boots_with_its_interval(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3) as store:
        [axis] = history(store.series()).axes
    [line, _] = axis.benchmarks[0].lines
    [point] = line.points
    logs = np.log([1000, 1020])
    half = 12.706 * logs.std(ddof=1) / np.sqrt(2)  # Student's t of one degree of freedom
    assert point.value == pytest.approx(np.exp(logs.mean()))
    assert (point.low, point.high) == pytest.approx((np.exp(logs.mean() - half), np.exp(logs.mean() + half)), rel=1e-4)
    assert point.boots == 2


@pytest.mark.parametrize(
    ("changes", "axes"),
    [
        ({}, 1),
        ({"margin": 0.02}, 1),
        ({"host": {"cpu": "another"}}, 1),
        ({"machine": {"type": "qemu", "agent": "another"}}, 2),
        ({"machine": {"type": "qemu", "pmu_family": "another"}}, 2),
        ({"seed": 5}, 2),
        ({"experiment": '{"workload": {"tests": ["lat_pipe"]}}'}, 2),
    ],
)
def test_what_cannot_be_compared_is_on_another_axis(tmp_path: Path, changes: dict[str, Any], axes: int) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3) as store:
        add_run(store, run_of_kernel(1, **changes), 1, NAMES[:1], step_at_3)
        done = history(store.series())
    assert len(done.axes) == axes
    assert {len(axis.kernels) for axis in done.axes} == ({2} if axes == 1 else {1})
    assert done.report.changes == ()


def test_hosts_are_apart_in_a_lane_that_they_disturb(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3, "wall") as store:
        add_run(store, run_of_kernel(1, "wall", host={"cpu": "another"}), 1, NAMES[:1], step_at_3)
        add_run(store, run_of_kernel(2, "wall", seed=5), 2, NAMES[:1], step_at_3)
        axes = history(store.series()).axes
    assert sorted(len(axis.kernels) for axis in axes) == [1, 2]


def test_a_recipe_of_the_same_name_and_other_settings_is_another_line(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3) as store:
        run = run_of_kernel(1)
        first, second = run.variants
        other = first.model_copy(update={"recipe": first.recipe.model_copy(update={"opt": "O3"})})
        add_run(store, run.model_copy(update={"variants": (other, second)}), 1, NAMES[:1], step_at_3)
        [axis] = history(store.series()).axes
    names = [line.recipe for line in axis.benchmarks[0].lines]
    assert len(names) == 3
    assert sum(name.startswith("gcc-12 (") for name in names) == 2


def test_a_run_without_a_source_is_counted_and_left_out(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3) as store:
        run = run_of_kernel(1)
        bare = tuple(variant.model_copy(update={"images": ()}) for variant in run.variants)
        add_run(store, run.model_copy(update={"variants": bare}), 1, NAMES[:1], step_at_3)
        report = history(store.series()).report
    assert (report.runs, report.without_source, report.axes[0].kernels) == (2, 1, 1)


def test_the_title_of_a_machine_leaves_out_the_flags_of_its_cpu(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 0, [], step_at_3) as store:
        machine = {"type": "qemu", "accel": "tcg", "cpu": "Icelake-Server,-pcid,-x2apic", "cpus": 2}
        add_run(store, run_of_kernel(0, machine=machine), 0, NAMES[:1], step_at_3)
        [axis] = history(store.series()).axes
    assert axis.title == "model: qemu tcg Icelake-Server cpus 2"


def test_patched_kernels_of_one_source_have_names_of_their_own() -> None:
    plain, *patched = (kernel("6.12", f"v6.12{digest}") for digest in ("", " + 0123456789ab", " + ba9876543210"))
    named = [one.model_copy(update={"origin": "v6.12"}).name for one in (plain, *patched)]
    assert named == ["v6.12", "v6.12 + patches 012345", "v6.12 + patches ba9876"]
    assert all(one.commit is None for one in patched)


def kernel(version: str, origin: str = "", day: int = 0) -> HistoryKernel:
    first = specimen.NOON + timedelta(days=day)
    return HistoryKernel(identity=f"git:{version}{origin}", version=version, origin=origin, spec="", first_run=first)


def test_kernels_are_in_the_order_of_versions_then_commits_then_first_runs() -> None:
    ordered = [
        kernel("6.9.12", day=9),
        kernel("6.12.0-rc2", "v6.12-rc2"),
        kernel("6.12.0-rc10", "v6.12-rc10-2-gabcdef0"),
        kernel("6.12.0-rc10", "v6.12-rc10-10-gabcdef1"),
        kernel("6.12.0", "a", day=1),
        kernel("6.12.0", "b", day=2),
        kernel("6.12.1"),
    ]
    assert sort_kernels(reversed(ordered)) == ordered
    assert len(sort_kernels([kernel("9" * 10_000), kernel("")])) == 2


def test_the_commands_of_a_change_are_ones_that_the_parser_takes(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 6, ["lat_'; rm -rf.x`y`"], lambda k, *_: 1000 + 100 * (k > 2)) as store:
        [change] = history(store.series()).report.changes
    words = shlex.split(change.bisect, comments=True)
    args = parse_words(words[1:])
    assert args.range == [f"{history_specimen.REPOSITORY}#{commit(2)[:12]}..{commit(3)[:12]}"]
    assert args.benchmark == ["lat_'; rm -rf.x`y`"]
    assert change.explain.count(" && ") == 1
    first, second = change.explain.split(" && ")
    sides = [f"git:{history_specimen.REPOSITORY}#{commit(kernel)[:12]},toolchain=gcc-12" for kernel in (2, 3)]
    compared = parse_words(shlex.split(first)[1:])
    assert [compared.base, *compared.others] == sides
    explained = parse_words(shlex.split(second)[1:])
    assert explained.variant == f"{commit(3)[:12]}+toolchain-gcc-12" == name_of(read_side(sides[1]), Path("/"))
    assert (explained.run, explained.benchmark) == ("latest", "lat_'; rm -rf.x`y`")


def test_kernels_of_tarballs_are_compared_by_their_runs(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3) as store:
        run = run_of_kernel(1)
        tarball = history_specimen.source(1).model_copy(update={"identity": "tarball:" + "5" * 64, "spec": "x.tar"})
        variants = tuple(
            one.model_copy(update={"images": tuple(i.model_copy(update={"source": tarball}) for i in one.images)})
            for one in run.variants
        )
        add_run(store, run.model_copy(update={"variants": variants}), 1, NAMES[:1], lambda *_: 2000.0)
        [change] = history(store.series()).report.changes
    assert (change.bisect, change.explain) == ("", f"kdyno compare {0:012x} {1:012x}")


def test_a_sample_that_is_not_a_number_is_refused(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 1, NAMES[:1], step_at_3) as store:
        with store._writing() as connection:
            connection.exec_driver_sql("UPDATE kdyno_sample SET elapsed = 'x'")
        with pytest.raises(RecordCorrupt, match="it is not a number"):
            store.series()


# Noisy lanes.


def noisy(random: np.random.Generator, series: int, kernels: int, step: float = 0.0) -> list[divisive.Series]:
    """Series that share a part of their noise, as benchmarks of one boot do."""
    common = random.normal(0, 0.01, kernels)
    level = np.where(np.arange(kernels) >= kernels // 2, step, 0.0)
    return [(np.arange(kernels), common + random.normal(0, 0.01, kernels) + level) for _ in range(series)]


def test_series_without_a_change_have_an_alarm_as_rarely_as_is_said() -> None:
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(200):
        series = noisy(random, 4, 20)
        limit = divisive.threshold(series, 20, permutations=99)
        alarms += any(divisive.change_points(values, limit) for _, values in series)
    assert alarms <= 20, "5 % are 10 of 200; 20 are beyond its 99.8 % quantile"


def test_a_step_of_three_deviations_is_found_where_it_is() -> None:
    series = noisy(np.random.default_rng(3), 4, 40, step=0.045)
    limit = divisive.threshold(series, 40)
    for _, values in series:
        assert divisive.change_points(values, limit) == [20]


def test_a_constant_or_short_series_has_no_change() -> None:
    assert divisive.change_points(np.zeros(50), 0.1) == []
    assert divisive.change_points(np.array([0.0, 0.0, 9.0, 9.0, 9.0]), 0.1) == []


def test_a_noisy_lane_groups_a_step_over_benchmarks_and_needs_three_kernels_after_it(tmp_path: Path) -> None:
    random = np.random.default_rng(5)

    def cost(kernel: int, variant: str, name: str, block: int) -> float:
        del variant, block
        return 5000 * float(np.exp(random.normal(0, 0.003))) * (1.06 if "syscall" in name and kernel >= 7 else 1)

    for kernels, expected in ((9, []), (12, [commit(7)])):
        with fill(tmp_path / f"store{kernels}", kernels, NAMES, cost, "wall") as store:
            changes = history(store.series()).report.changes
        assert [change.after.commit for change in changes] == expected
        assert [{row.benchmark for row in change.benchmarks} for change in changes] == [{*NAMES[1:]}] * len(expected)


def test_the_statistic_is_that_of_its_definition() -> None:
    values = np.random.default_rng(2).normal(0, 1, 17)
    distances = np.abs(values[:, None] - values[None, :])
    scores = {
        left: left * (17 - left) / 17
        * (
            2 * distances[:left, left:].mean()
            - distances[:left, :left].sum() / (left * (left - 1))
            - distances[left:, left:].sum() / ((17 - left) * (16 - left))
        )
        for left in range(divisive.FEWEST, 17 - divisive.FEWEST + 1)
    }  # fmt: skip
    best = max(scores, key=lambda left: scores[left])
    assert divisive.best_split(distances) == pytest.approx((best, scores[best]))
