"""`kdyno validate --paths`: gains on a processor and in a model, their reasons, and the family's file."""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kdyno.base.cpu import Cpu
from kdyno.base.lanes import CORE_CLOCK, LaneName
from kdyno.base.measurement import Benchmark
from kdyno.cli.common import family_name, write_family
from kdyno.cli.main import main
from kdyno.judge.stats.compare import Comparison
from kdyno.judge.verdicts.assemble import judge_run
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.selftest import SelfTests
from kdyno.kernel.recipe import Recipe, Trainee
from kdyno.measure.cycles.budget import Budget, budget
from kdyno.measure.cycles.calibrate import format_toml
from kdyno.measure.cycles.family import load_family
from kdyno.measure.paths.table import paths
from kdyno.measure.workload.needs import Load
from kdyno.store.artefacts import Artefacts
from kdyno.understand.validate import kernel as validate_kernel
from kdyno.understand.validate import paths as validate_paths
from kdyno.understand.validate.lanes import BothLanes
from kdyno.understand.validate.path_gains import cpu_words, recipe_words, silicon_gains, with_gains
from kdyno.understand.validate.path_reasons import path_reason, reason_lines
from kdyno.understand.validate.paths import PathsReport, compare_paths, lines
from tests.unit import specimen
from tests.unit.experiment_files import MINIMAL, written

ZEN_4 = Cpu(vendor="AuthenticAMD", family=25, model=17, stepping=1, name="AMD EPYC", flags=frozenset())
RATIOS = ((0.8, 0.7), (0.9, 0.8), (1.1, 1.05), (1.05, 0.9), (0.95, 0.85), (0.9, 0.88))
"""Of costs, variant over baseline: on the processor, whose intervals reach 2 % to both sides, and in the model."""
NAMES = [path.name for path in paths().values() if path.kind == "path" and path.unit == "operation"][: len(RATIOS)]
VARIANT = "gcc-12-O3"


def judged_run(directory: Path, lane: LaneName, side: int) -> RunReport:
    """The made-up run of a lane, whose comparisons are those of RATIOS alone."""
    run = specimen.run_record(lane=lane)
    boots = specimen.boot_records(run, iterations=3)
    report = judge_run(run, boots, specimen.benchmarks(lane), Artefacts(directory), SelfTests(), analysed=False)
    estimated = [one for one in report.comparisons if one.variant == VARIANT and one.estimate]
    chosen = [one for one in estimated if one.direction == "lower"][: len(RATIOS)]
    return report.model_copy(
        update={
            "comparisons": tuple(
                of_path(comparison, name, ratios[side])
                for comparison, name, ratios in zip(chosen, NAMES, RATIOS, strict=True)
            )
        }
    )


def of_path(comparison: Comparison, name: str, ratio: float) -> Comparison:
    assert comparison.estimate
    estimate = comparison.estimate.model_copy(update={"ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02})
    values = {"baseline_value": 1000.0, "variant_value": 1000 * ratio}
    return comparison.model_copy(update={"benchmark": name, "estimate": estimate, **values})


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[PathsReport, BothLanes]:
    directory = tmp_path_factory.mktemp("runs")
    lanes = BothLanes(judged_run(directory, "model", 1), judged_run(directory, "wall", 0))
    return compare_paths(lanes, "znver4", Artefacts(directory)), lanes


def recipes(lanes: BothLanes) -> dict[str, Recipe]:
    return {variant.name: variant.recipe for variant in lanes.wall.run.variants}


def test_the_rows_of_a_family_are_the_means_over_all_paths(compared: tuple[PathsReport, BothLanes]) -> None:
    report, lanes = compared
    [gain] = silicon_gains(report, recipes(lanes), ZEN_4)
    row = next(row for row in report.variants if row.scope == "paths")
    held_out = next(row for row in report.variants if row.scope == "held-out paths")
    assert (gain.paths, gain.clear, gain.wrong_signs) == (6, 6, 1)
    assert (gain.silicon, gain.model) == pytest.approx((row.silicon, row.model), abs=1e-4)
    assert gain.held_out_median_error == pytest.approx(held_out.agreement.median_error, abs=1e-4)
    assert gain.recipe == f"-O3, against {report.baseline}" and gain.cpu.endswith(", Zen 4")


def test_a_family_with_gains_is_read_as_it_was_written(compared: tuple[PathsReport, BothLanes], tmp_path: Path) -> None:
    report, lanes = compared
    gains = silicon_gains(report, recipes(lanes), ZEN_4)
    args = argparse.Namespace(output=tmp_path / "mine.toml", quiet=True)
    family = load_family("znver4")
    write_family(args, with_gains(family, gains, family_name(args.output, family)))
    read = load_family(f"file:{args.output}")
    assert read.name == "mine" and read.model.silicon == (*family.model.silicon, *gains)
    assert read.model.weights == family.model.weights
    again = with_gains(read, (gains[0].model_copy(update={"silicon": 1.01}),), "mine")
    assert [gain.silicon for gain in again.model.silicon][len(family.model.silicon) :] == [1.01]
    assert format_toml(again).count("[[model.silicon]]") == len(read.model.silicon)


def test_a_recipe_in_words_is_what_it_changes() -> None:
    plain = Recipe(opt="O2")
    trainee = Trainee(variant="x", recipe=plain, load=Load(tests=("all",)))
    trained = Recipe.model_validate(
        {
            "opt": "O2",
            "toolchain": "clang-19",
            "march": "znver4",
            "lto": "thin",
            "cflags": ["-fno-a", "-fno-b"],
            "profile": {"use": ["autofdo", "order"], "train": ["paths"], "trainee": trainee},
        }
    )
    assert recipe_words(trained, plain) == (
        "clang-19, march znver4, lto thin, AutoFDO and function order trained on paths, cflags -fno-a -fno-b"
    )
    assert recipe_words(plain, trained).startswith("gcc, no march, no lto, no profile")
    assert recipe_words(plain, plain) == "the same recipe"


def test_a_processor_is_named_with_its_family_if_that_is_known() -> None:
    assert cpu_words("AMD EPYC", ZEN_4) == "AMD EPYC, Zen 4"
    unknown = Cpu(vendor="Nobody", family=1, model=1, stepping=1, name="x", flags=frozenset())
    assert cpu_words("x", unknown) == "x"


def made_budget(variant: str, **parts: float) -> Budget:
    return budget(NAMES[0], variant, "op", parts, {})


def test_a_reason_has_the_cycles_of_both_and_the_causes_of_the_models_difference(
    compared: tuple[PathsReport, BothLanes],
) -> None:
    _, lanes = compared
    comparison = lanes.wall.comparisons[0]
    before = made_budget("a", stall_fetch=900, returns=400, instructions=700, calls=80, loads=20, stores=1)
    after = made_budget("b", stall_fetch=200, returns=200, instructions=550, calls=90, loads=21, locked=5, stores=1)
    reason = path_reason(comparison, before, after)
    assert reason and reason.unit == "op"
    assert reason.silicon.baseline == 1000 and reason.silicon.variant == pytest.approx(800)
    assert sum(reason.causes.values()) == pytest.approx(reason.model.difference) == pytest.approx(-1034)
    assert reason_lines([reason]) == [
        f"{NAMES[0]}: this processor 1,000 -> 800 (-200), the model 2,101 -> 1,067 (-1,034) cycles per op",
        "  stall_fetch -700, returns -200, instructions -150, calls +10, others +6",
    ]


def test_a_bandwidth_has_cycles_of_a_kib(compared: tuple[PathsReport, BothLanes]) -> None:
    _, lanes = compared
    values = {"direction": "higher", "baseline_value": 2.0, "variant_value": 4.0}
    comparison = lanes.wall.comparisons[0].model_copy(update=values)
    reason = path_reason(comparison, made_budget("a", loads=600), made_budget("b", loads=600))
    assert reason and (reason.silicon.baseline, reason.silicon.variant) == (512, 256)
    assert reason_lines([reason])[1] == "  no event differs"


def test_a_path_without_values_has_no_reason(compared: tuple[PathsReport, BothLanes]) -> None:
    _, lanes = compared
    comparison = lanes.wall.comparisons[0].model_copy(update={"baseline_value": None})
    assert path_reason(comparison, made_budget("a", loads=1), made_budget("b", loads=1)) is None


def test_without_pmu_records_the_text_has_no_reasons(compared: tuple[PathsReport, BothLanes]) -> None:
    report, _ = compared
    assert report.reasons == () and not any("disagree" in row for row in lines(report))
    assert any(row.startswith(f"{VARIANT}, 6 paths: the model said +") for row in lines(report))


def test_the_three_paths_about_which_both_disagree_most_have_reasons(
    compared: tuple[PathsReport, BothLanes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, lanes = compared
    names = sorted(NAMES, key=lambda name: -abs(math.log(RATIOS[NAMES.index(name)][0] / RATIOS[NAMES.index(name)][1])))
    asked: list[str] = []

    def make_budgets(_report: RunReport, benchmarks: Sequence[Benchmark], sides: Sequence[Any], _boots: str) -> Any:
        asked.extend(benchmark.name for benchmark in benchmarks)
        made = [
            budget(one.name, side.variant, "op", {"loads": 100.0 + place}, {})
            for one in benchmarks
            for place, side in enumerate(sides)
        ]
        return SimpleNamespace(budgets=made[:-1])  # a record may lack a benchmark

    recordings = {name: SimpleNamespace(variant=name) for name in (lanes.model.baseline, VARIANT)}
    benchmarks = [path.benchmark(CORE_CLOCK) for path in paths().values()]
    model = lanes.model.model_copy(update={"benchmarks": tuple(benchmarks)})
    monkeypatch.setattr(validate_paths, "_recordings", lambda *_: recordings)
    monkeypatch.setattr(validate_paths, "_instructions", lambda *_: {})
    monkeypatch.setattr(validate_paths, "make_budgets", make_budgets)
    report = compare_paths(BothLanes(model, lanes.wall), "znver4", Artefacts(tmp_path))
    assert sorted(asked) == sorted(names[:3])
    assert [reason.path for reason in report.reasons] == [name for name in names[:3] if name != asked[-1]]
    assert all(reason.causes == {"loads": 1.0} for reason in report.reasons)
    assert "  where they disagree most, and what makes the model's difference:" in lines(report)


@pytest.mark.parametrize("name", ["mine.toml", "mine.json"])
def test_the_command_writes_a_family_or_the_report_by_the_ending_of_the_file(
    compared: tuple[PathsReport, BothLanes],
    name: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report, lanes = compared
    monkeypatch.setattr(validate_paths, "measure_paths", lambda *_: lanes)
    monkeypatch.setattr(validate_kernel, "host_family", lambda _name: ("znver4", load_family("znver4")))
    experiment = written(tmp_path, MINIMAL)
    output = tmp_path / name
    words = ["validate", "--paths", str(experiment), "-o", str(output), "--state", str(tmp_path / "state")]
    assert main(words) == 0
    out, err = capsys.readouterr()
    assert f"{VARIANT}, 6 paths: the model said +" in out and f"wrote {output}" in err
    if name.endswith(".toml"):
        assert load_family(f"file:{output}").model.silicon[-1].paths == 6
    else:
        assert json.loads(output.read_text())["variants"][0]["count"] == report.variants[0].count == 6
