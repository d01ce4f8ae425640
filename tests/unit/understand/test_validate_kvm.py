"""`kdyno validate --kvm`: effects of two lanes, compared. The runs are made up: KVM is tested elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from kdyno.base.lanes import LaneName
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import NotTimed
from kdyno.boot.fake import FakeConfig
from kdyno.boot.qemu_config import QemuConfig
from kdyno.cli.schemas import schema
from kdyno.judge.stats.estimate import Estimate
from kdyno.judge.verdicts.assemble import judge_run
from kdyno.judge.verdicts.model import RunReport
from kdyno.judge.verdicts.selftest import SelfTests
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store
from kdyno.understand.validate import kvm, lanes
from kdyno.understand.validate.kvm import KvmNotProven, compare_kvm, lines, measure_kvm
from kdyno.understand.validate.lanes import BothLanes, NeedsTwoVariants, NoSharedEffect, RunLost
from tests.unit import specimen

RATIOS = {"lat_syscall.null": (0.9, 0.95), "lat_pipe.roundtrip": (1.2, 1.1), "bw_pipe.64k": (1.1, 0.97)}
"""By benchmark: of the wall lane, whose intervals reach 2 % to both sides, and of the model."""


def judged_run(directory: Path, lane: LaneName) -> RunReport:
    """The made-up run of a lane, without the tables behind the verdicts, which take half a minute."""
    run = specimen.run_record(lane=lane)
    boots = specimen.boot_records(run, iterations=3)
    return judge_run(run, boots, specimen.benchmarks(lane), Artefacts(directory), SelfTests(), analysed=False)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return judged_run(tmp_path_factory.mktemp("model"), "model")


@pytest.fixture(scope="module")
def wall(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return judged_run(tmp_path_factory.mktemp("wall"), "wall")


def only(report: RunReport, lane: int) -> RunReport:
    """The report with RATIOS alone, of its first variant, and of the benchmark without an estimate."""
    kept = []
    for comparison in report.comparisons:
        if comparison.variant != report.others[0]:
            continue
        if comparison.benchmark in RATIOS:
            assert comparison.estimate
            ratio = RATIOS[comparison.benchmark][lane]
            estimate = comparison.estimate.model_copy(
                update={"ratio": ratio, "low": ratio - 0.02, "high": ratio + 0.02}
            )
            kept.append(comparison.model_copy(update={"estimate": estimate}))
        elif comparison.benchmark == "lat_ctx.2p_0k":
            kept.append(comparison.model_copy(update={"estimate": None}))
    return report.model_copy(update={"comparisons": tuple(kept)})


def test_effects_are_paired_by_variant_and_benchmark(model: RunReport, wall: RunReport) -> None:
    report = compare_kvm(BothLanes(only(model, 1), only(wall, 0)))
    assert {effect.benchmark: (effect.wall, effect.model) for effect in report.effects} == RATIOS
    assert report.left_out == ("gcc-12-O3, lat_ctx.2p_0k",)
    assert (report.agreement.effects, report.agreement.clear, report.agreement.sign_errors) == (3, 3, 1)
    assert [variant.variant for variant in report.variants] == ["gcc-12-O3"]
    assert report.variants[0].agreement == report.agreement


def test_a_sign_is_wrong_only_where_the_interval_of_the_wall_lane_excludes_1(model: RunReport, wall: RunReport) -> None:
    def reaching(estimate: Estimate | None) -> Estimate | None:
        return estimate and estimate.model_copy(update={"low": 0.8, "high": 1.3})

    unsure = only(wall, 0)
    unsure = unsure.model_copy(
        update={
            "comparisons": tuple(
                comparison.model_copy(update={"estimate": reaching(comparison.estimate)})
                for comparison in unsure.comparisons
            )
        }
    )
    report = compare_kvm(BothLanes(only(model, 1), unsure))
    assert (report.agreement.clear, report.agreement.sign_errors) == (0, 0)


def test_an_effect_without_an_interval_is_not_clear(model: RunReport, wall: RunReport) -> None:
    report = compare_kvm(BothLanes(only(model, 1), only(wall, 0)))
    unknown = report.effects[0].model_copy(update={"wall_low": None, "wall_high": None})
    assert report.effects[0].clear and not unknown.clear


def test_two_lanes_with_the_same_effects_agree_and_the_text_says_so(model: RunReport, wall: RunReport) -> None:
    """The made-up boots of both lanes have the same speed-ups and noise: 69 effects, whatever the units."""
    report = compare_kvm(BothLanes(model, wall))
    assert report.agreement.effects == 69
    assert report.agreement.pearson == pytest.approx(1, abs=0.01)
    assert report.agreement.sign_errors == 0
    text = "\n".join(lines(report))
    for part in (
        r"^clang-19-thinlto against gcc-12$",
        r"^all variants: 69 ratios, correlation of logarithms 1\.00 \(ranks (1\.00|0\.99)\)",
        r"^  of these: \d+, wrong sign 0 \(0 %\)$",
        r"^left out, as one of the lanes has no estimate: clang-19-thinlto, lat_unix\.sock$",
        r"^wall: run 3f9a61c2",
    ):
        assert re.search(part, text, re.MULTILINE), part


def test_the_report_as_json_obeys_its_schema(model: RunReport, wall: RunReport) -> None:
    printed = json.loads(compare_kvm(BothLanes(only(model, 1), only(wall, 0))).model_dump_json())
    jsonschema.Draft202012Validator(schema("validate-kvm")).validate(printed)


def test_the_text_marks_what_has_the_wrong_sign(model: RunReport, wall: RunReport) -> None:
    text = "\n".join(lines(compare_kvm(BothLanes(only(model, 1), only(wall, 0)))))
    assert re.search(r"^  bw_pipe\.64k +\+10\.00 % +\+8\.00 % to \+12\.00 % +-3\.00 %  wrong sign$", text, re.MULTILINE)
    assert "bw_pipe.64k, gcc-12-O3: wall 1.100, model 0.970" in text


def test_lanes_that_measured_nothing_together_are_refused(model: RunReport, wall: RunReport) -> None:
    nothing = model.model_copy(update={"comparisons": ()})
    with pytest.raises(NoSharedEffect):
        compare_kvm(BothLanes(nothing, wall))


def experiment(*variants: str) -> Experiment:
    return Experiment(
        name="both",
        source="debian:linux-source-6.12",
        baseline=variants[0],
        blocks=2,
        variants={name: Recipe() for name in variants},
        machine=QemuConfig(lane="wall", accel="auto", cpus=2),
    )


def test_without_kvm_that_is_proven_nothing_is_built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kvm, "why_not_kvm", lambda _qemu: "a guest hung")
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store, pytest.raises(KvmNotProven) as refused:
        measure_kvm(experiment("a", "b"), "generic", Session(State(tmp_path / "state"), store, Talk(quiet=True)))
    assert "a guest hung" in str(refused.value) and "validate --library" in refused.value.advice
    assert not (tmp_path / "state").exists()


def test_one_variant_has_no_effect(tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store, pytest.raises(NeedsTwoVariants):
        measure_kvm(experiment("a"), "generic", Session(State(tmp_path / "state"), store, Talk(quiet=True)))


def test_the_same_experiment_runs_in_the_model_lane_and_under_kvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, model: RunReport
) -> None:
    asked = []

    def run(experiment: Experiment, *_: object, **__: object) -> object:
        asked.append(experiment)
        return type("Done", (), {"run_id": "0", "outcome": type("Outcome", (), {"lost": {}})})

    monkeypatch.setattr(kvm, "why_not_kvm", lambda _qemu: None)
    monkeypatch.setattr(lanes, "run_experiment", run)
    monkeypatch.setattr(lanes, "assemble", lambda *_, **__: model)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        both = measure_kvm(experiment("a", "b"), "haswell", Session(State(tmp_path / "state"), store, Talk(quiet=True)))
    assert both.model is both.wall is model
    machines = [experiment.machine.model_dump(include={"lane", "accel", "cpus"}) for experiment in asked]
    assert machines == [
        {"lane": "wall", "accel": "kvm", "cpus": 1},
        {"lane": "model", "accel": "auto", "cpus": 1},
    ]
    pmu = asked[1].machine.model_dump()["pmu"]
    assert pmu == {"events": "all", "family": "haswell", "clock": "cycles", "scope": "kernel"}
    assert asked[0].machine.model_dump()["pmu"] is None
    assert all(one.variants == experiment("a", "b").variants for one in asked)


def test_a_run_with_lost_boots_is_not_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lost = type("Done", (), {"run_id": "0", "outcome": type("Outcome", (), {"lost": {"a, block 0": "killed"}})})
    monkeypatch.setattr(kvm, "why_not_kvm", lambda _qemu: None)
    monkeypatch.setattr(lanes, "run_experiment", lambda *_, **__: lost)
    with (
        Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store,
        pytest.raises(RunLost, match="a, block 0: killed"),
    ):
        measure_kvm(experiment("a", "b"), "generic", Session(State(tmp_path / "state"), store, Talk(quiet=True)))


def test_a_recording_can_not_be_timed(tmp_path: Path) -> None:
    with pytest.raises(NotTimed, match="`fake`"):
        FakeConfig(recording=tmp_path).in_timed_lane()
