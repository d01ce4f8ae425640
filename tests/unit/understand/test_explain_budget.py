"""Budgets from PMU records: of a run's own boots or of others, in the terminal and as JSON."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from kdyno.base.errors import KdynoError
from kdyno.base.measurement import Sample
from kdyno.base.talk import Talk
from kdyno.cli.main import main
from kdyno.judge.verdicts.model import RunReport
from kdyno.kernel.image import Image
from kdyno.measure.cycles.budget import Budgets, budget
from kdyno.measure.cycles.family import UnknownFamily, load_family
from kdyno.measure.guest.pmu_record import PmuRecord
from kdyno.measure.workload.needs import Load
from kdyno.runs.session import Session
from kdyno.runs.single_boots import PmuRun, SingleBoots
from kdyno.store.errors import NoSuchVariant
from kdyno.understand.explain import budget_rows, sides
from kdyno.understand.explain.budgets import EdgesAreNoBudget, explain_budgets, make_budgets, with_budgets
from kdyno.understand.explain.command import OnlyValues
from kdyno.understand.explain.measured import RecordsUnlike
from kdyno.understand.explain.records import NotMeasured, Recorded, UnknownBenchmark, WorkUnknown
from kdyno.understand.explain.sides import NoKernel
from kdyno.understand.explain.terminal import render_budgets
from tests.unit.explain_specimen import NAMES, Kernel, pair
from tests.unit.understand.test_explain_command import BASELINE, BENCHMARK, NO_STORE, VARIANT, WORK, Lab

WEIGHT = load_family("znver4").weights


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    before, after = pair()
    return Lab(tmp_path_factory.mktemp("recorded"), {BASELINE: before, VARIANT: after})


def budgets_of(
    lab: Lab, variant: str = VARIANT, benchmark: str | None = BENCHMARK, report: RunReport | None = None, **how: Any
) -> Budgets:
    report, talk = report or lab.report, Talk(quiet=True)
    return explain_budgets(report, variant, benchmark, session=Session(lab.state, NO_STORE, talk), **how)


def test_the_budgets_are_of_baseline_and_variant(lab: Lab) -> None:
    budgets = budgets_of(lab)
    assert [budget.variant for budget in budgets.budgets] == [BASELINE, VARIANT]
    assert budgets.boots == "the boots of block 0, seed 1000"
    assert budgets.modelled == load_family("znver4").caption()
    before, after = budgets.budgets
    assert before.cycles == pytest.approx(346 * WEIGHT["slots"] + 0.5 * WEIGHT["l1d_misses"])
    spent = {category.category: category.cycles for category in after.categories}
    assert spent["switches"] == pytest.approx(6 * WEIGHT["serializing"])  # six serializing instructions in take_lock
    assert after.fixed == spent["switches"]


def test_the_budget_of_the_baseline_alone_is_asked_for_by_its_name(lab: Lab) -> None:
    assert [budget.variant for budget in budgets_of(lab, BASELINE).budgets] == [BASELINE]


def test_without_a_benchmark_all_that_were_measured_are_shown_and_the_others_named(lab: Lab) -> None:
    budgets = budgets_of(lab, benchmark=None)
    assert {budget.benchmark for budget in budgets.budgets} == {BENCHMARK}
    assert any("was not measured in" in sentence for sentence in budgets.missing)


def uneven(*instructions: int) -> PmuRecord:
    """A region whose iterations execute so many instructions each, and twice as many in interrupts."""
    record = Kernel().function("f", 1).record()
    counts = np.zeros((len(instructions), 3, len(NAMES)), np.uint64)
    slots = NAMES.index("slots")
    counts[:, 0, slots] = instructions
    counts[:, 2, slots] = counts[:, 0, slots] * 2
    region = replace(record.regions[0], iterations=dict(enumerate(counts)))
    return replace(record, regions={0: region})


def test_the_median_iteration_counts_and_not_a_cold_one(lab: Lab) -> None:
    [benchmark] = (benchmark for benchmark in lab.report.benchmarks if benchmark.name == BENCHMARK)

    def cycles_of(record: PmuRecord, work: list[int]) -> tuple[float, float]:
        recorded = Recorded(BASELINE, record, (BENCHMARK,), {BENCHMARK: work}, {})
        [budgets] = make_budgets(lab.report, [benchmark], [recorded], "one boot").budgets
        return budgets.cycles, budgets.interrupt_cycles

    weight = WEIGHT["slots"]
    assert cycles_of(uneven(9000, 100, 120), [10, 10, 10]) == pytest.approx((12 * weight, 24 * weight))
    assert cycles_of(uneven(9000, 100, 120), [10, 10, 1]) == pytest.approx((120 * weight, 240 * weight))
    assert cycles_of(uneven(300, 200), [10, 10]) == pytest.approx((20 * weight, 40 * weight))


def test_an_iteration_without_work_has_no_budget_and_is_named(lab: Lab) -> None:
    [benchmark] = (benchmark for benchmark in lab.report.benchmarks if benchmark.name == BENCHMARK)
    idle = Recorded(BASELINE, uneven(100, 100), (BENCHMARK,), {BENCHMARK: [10, 0]}, {})
    budgets = make_budgets(lab.report, [benchmark], [idle], "one boot")
    assert budgets.budgets == ()
    assert budgets.missing == (str(WorkUnknown(variant=BASELINE, benchmark=BENCHMARK, why="an iteration did no work")),)


@pytest.mark.parametrize(
    ("variant", "benchmark", "how", "error", "hint"),
    [
        ("clang-19-thinlt", BENCHMARK, {}, NoSuchVariant, "did you mean clang-19-thinlto?"),
        (VARIANT, "lat_syscall.rea", {}, UnknownBenchmark, "did you mean lat_syscall.read"),
        (VARIANT, "bw_pipe.64k", {}, NotMeasured, "both kernels"),
        (VARIANT, None, {"events": "edges"}, EdgesAreNoBudget, "remove --events edges"),
    ],
)
def test_what_has_no_budget_is_said_in_one_message(
    lab: Lab, variant: str, benchmark: str | None, how: dict[str, Any], error: type[KdynoError], hint: str
) -> None:
    with pytest.raises(error) as caught:
        budgets_of(lab, variant, benchmark, **how)
    assert hint in caught.value.advice


def test_what_a_command_said_has_no_budget(lab: Lab) -> None:
    spoken = tuple(Sample(benchmark=benchmark.name, iteration=0, value=1.5) for benchmark in lab.report.benchmarks)
    boots = tuple(boot.model_copy(update={"samples": spoken}) for boot in lab.report.boots)
    with pytest.raises(OnlyValues, match=BENCHMARK):
        budgets_of(lab, benchmark=None, report=lab.report.model_copy(update={"boots": boots}))


def test_records_of_edges_are_not_enough_and_replays_can_not_be_booted(lab: Lab) -> None:
    edges = Kernel(events="edges").function("f", 1)
    report = lab.recounted({BASELINE: edges, VARIANT: edges})
    variants = tuple(variant.model_copy(update={"images": ()}) for variant in report.run.variants)
    replayed = report.model_copy(update={"run": report.run.model_copy(update={"variants": variants})})
    with pytest.raises(NoKernel, match=f"no image of {BASELINE}"):
        budgets_of(lab, report=replayed)
    assert with_budgets(report, lab.artefacts).budgets is None


def test_what_the_run_did_not_count_is_booted_once_for_all_tests(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    bare = lab.recounted({})
    experiment = (
        '{"name": "x", "source": "s", "baseline": "gcc-12", "variants": {"gcc-12": {}},'
        ' "workload": {"tests": ["lmbench"], "params": {"lat_ctx": {"processes": 2}}}}'
    )
    report = bare.model_copy(update={"run": bare.run.model_copy(update={"experiment": experiment})})
    images = {image.key: image for variant in report.run.variants for image in variant.images}
    booted: list[dict[str, Any]] = []

    def boot(_boots: SingleBoots, _image: Image, load: Load, **how: Any) -> PmuRun:
        booted.append({"load": load, **how})
        return PmuRun(Path("record"), (BENCHMARK,), {BENCHMARK: [WORK // 4] * 4})

    monkeypatch.setattr(SingleBoots, "count", boot)
    monkeypatch.setattr(sides, "read_pmu_record", lambda _: pair()[0].record())
    monkeypatch.setattr(sides, "load_image", lambda key, _: Image(directory=lab.directory, record=images[key]))
    budgets = budgets_of(lab, benchmark=None, report=report)
    assert [budget.variant for budget in budgets.budgets] == [BASELINE, VARIANT]
    assert budgets.boots == "one boot of each, made to explain it, seed 1000"
    assert set(booted[0]["load"].tests) == {benchmark.test for benchmark in report.benchmarks}
    assert len(booted[0]["load"].tests) == len(set(booted[0]["load"].tests))
    assert (booted[0]["events"], booted[0]["load"].params) == ("all", {"lat_ctx": {"processes": 2}})


def shown(budgets: Budgets, width: int = 110) -> str:
    out = io.StringIO()
    render_budgets(budgets, Console(file=out, width=width))
    return out.getvalue()


def test_the_first_line_names_the_lane_and_the_model(lab: Lab) -> None:
    assert shown(budgets_of(lab)).startswith("lane: model — cycles are modelled, znver4-")


def test_one_benchmark_is_shown_event_by_event_with_its_bounds(lab: Lab) -> None:
    lines = shown(budgets_of(lab)).splitlines()
    cells = {re.split(r"\s{2,}", line)[0]: re.split(r"\s{2,}", line.rstrip())[1:] for line in lines}
    added = 6 * WEIGHT["serializing"]
    percent = 100 * added / (added + 360 * WEIGHT["slots"] + 0.5 * WEIGHT["l1d_misses"])
    assert cells["privilege switches, serializing"] == ["0", "0.0", f"{added:g}", f"{percent:.1f}", f"+{added:g}"]
    assert cells["all"][1::2] == ["100.0", "100.0"]
    assert {"no compiler can move", "left with perfect fetch", "left by any layout, at least"} <= set(cells)


def several() -> tuple[Budgets, list[str]]:
    """Two benchmarks in two variants."""
    budgets = tuple(
        budget(benchmark, variant, "op", {"instructions": 30.0 + 10 * place, "stall_fetch": 10.0, "calls": 5.0}, {})
        for benchmark in ("lat_pipe", "lat_unix")
        for place, variant in enumerate(("gcc-O2", "gcc-O3"))
    )
    made = Budgets(
        run="3f9a", family="znver4", modelled="modelled, x", boots="b", budgets=budgets, missing=("lat_x: no",)
    )
    return made, shown(made).splitlines()


def test_of_several_benchmarks_each_line_adds_up_and_the_last_ones_are_means() -> None:
    budgets, lines = several()
    rows = budget_rows.lines(budgets.budgets)
    assert [row[0] for row in rows] == [
        *("lat_pipe", "→ gcc-O3", "lat_unix", "→ gcc-O3"),
        *("mean of 2 benchmarks", "→ gcc-O3"),
    ]
    for row in rows:
        assert sum(float(cell) for cell in row[2:-2]) == pytest.approx(100)
    assert rows[0][-1] == "22.2"  # 10 of 45
    assert lines[-1] == "left out: lat_x: no"


def test_the_command_prints_a_budget_as_text_and_as_json(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--budget", "--state", str(lab.directory))
    assert main(["explain", "3f9a", VARIANT, BENCHMARK, *options]) == 0
    assert f"{BENCHMARK}: cycles per op" in capsys.readouterr().out
    assert main(["explain", "3f9a", VARIANT, *options, "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert Budgets.model_validate(document).budgets == budgets_of(lab, benchmark=None).budgets


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "explain needs a benchmark of clang-19-thinlto, or --budget"),
        (("--budget", "--svg", "x.svg"), "--svg cannot be combined with --budget"),
    ],
)
def test_what_does_not_go_together_is_refused(
    lab: Lab, words: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", "3f9a", VARIANT, *words, "--state", str(lab.directory)]) == 1
    assert message in capsys.readouterr().err


def test_the_report_has_the_budgets_of_a_run_with_records(lab: Lab) -> None:
    budgets = with_budgets(lab.report, lab.artefacts).budgets
    assert budgets is not None
    assert budgets.budgets == budgets_of(lab, benchmark=None).budgets


def test_a_damaged_record_is_said_in_the_reports_budgets(lab: Lab) -> None:
    boots = tuple(
        boot.model_copy(update={"pmu": "0" * 64}) if boot.variant == VARIANT and boot.block == 0 else boot
        for boot in lab.report.boots
    )
    budgets = with_budgets(lab.report.model_copy(update={"boots": boots}), lab.artefacts).budgets
    assert budgets is not None
    assert {budget.variant for budget in budgets.budgets} == {BASELINE}
    assert budgets.missing[0].startswith(f"{VARIANT}: ")


def test_a_run_without_records_has_no_budgets(lab: Lab) -> None:
    assert with_budgets(lab.recounted({}), lab.artefacts).budgets is None


def test_kernels_counted_by_different_families_have_no_common_budgets(lab: Lab) -> None:
    zen, intel = Kernel().function("f", 1), Kernel(family="haswell").function("f", 1)
    report = lab.recounted({BASELINE: zen, VARIANT: intel})
    with pytest.raises(RecordsUnlike, match="they differ in the CPU family"):
        budgets_of(lab, report=report)
    assert with_budgets(report, lab.artefacts).budgets is None


def test_a_family_that_is_gone_leaves_the_report_without_budgets(lab: Lab) -> None:
    gone = Kernel(family="of-somebody").function("f", 1)
    report = lab.recounted({BASELINE: gone, VARIANT: gone})
    with pytest.raises(UnknownFamily):
        budgets_of(lab, report=report)
    assert with_budgets(report, lab.artefacts).budgets is None
