"""`confirm = "silicon"` of `kdyno run` and `kdyno plan`: the processor is another run of the machine that replays."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import jsonschema
import pytest

from kdyno.base.errors import InfrastructureError
from kdyno.cli.schemas import schema
from kdyno.runs import silicon, silicon_kernels
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.session import Session
from kdyno.runs.silicon_kernels import SiliconPlan
from kdyno.understand import confirm
from tests.cli.conftest import Lab
from tests.cli.replay import slower

NAME = "replay-on-silicon"


class NoPlace(InfrastructureError):
    message = "there is no place"


def experiment(lab: Lab) -> str:
    lab.recording.add("fast", slower("lat_syscall.null", -10))
    path = lab.experiment("fast")
    lab.directory.joinpath("experiment.toml").write_text(
        'confirm = "silicon"\n' + lab.directory.joinpath("experiment.toml").read_text()
    )
    return path


def renamed(whole: Experiment) -> Experiment:
    return whole.model_copy(update={"name": NAME, "confirm": None})


def on_this_processor(whole: Experiment, left_out: Mapping[str, str]) -> SiliconPlan:
    return SiliconPlan(renamed(whole).model_copy(update={"left_out": left_out}), left_out)


def run_confirmed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> str:
    """Carry out an experiment and its confirmation, without a variant that can't be had; return the run's id."""

    def build(whole: Experiment, _session: Session) -> SiliconPlan:
        left_out = {"slow": "it is a built kernel"}
        variants = {name: recipe for name, recipe in whole.variants.items() if name not in left_out}
        return on_this_processor(whole.model_copy(update={"variants": variants}), left_out)

    monkeypatch.setattr(silicon, "on_silicon", renamed)
    monkeypatch.setattr(confirm, "build_on_silicon", build)
    lab.recording.add("fast", slower("lat_syscall.null", -10))
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    path = lab.directory / "confirmed.toml"
    path.write_text('confirm = "silicon"\n' + Path(lab.experiment("fast", "slow")).read_text())
    assert lab("run", str(path), "-q").status == 0
    return next(str(run["id"]) for run in json.loads(lab("runs", "--json").out) if run["name"] == "replay")


def test_a_confirmation_is_a_run_of_its_own_and_stands_beside_the_verdicts(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(whole: Experiment, _session: Session) -> SiliconPlan:
        return on_this_processor(whole, {"other": "it is a built kernel"})

    monkeypatch.setattr(confirm, "build_on_silicon", build)
    path = experiment(lab)
    result = lab("run", path)
    assert result.status == 0
    text = " ".join(result.out.split())
    assert "fast: counts of instructions said +0.32 % on 33 benchmarks; this processor said +0.32 % on 33 paths" in text
    assert "other can't be had there: it is a built kernel" in text
    assert NAME in lab("runs").out
    document = json.loads(lab("run", path, "--json", "-q").out)
    jsonschema.Draft202012Validator(schema("report")).validate(document)
    [row] = document["confirmation"]["variants"]
    assert row["variant"] == "fast" and row["gain"] == row["silicon"]
    assert document["confirmation"]["left_out"] == {"other": "it is a built kernel"}
    page = lab.directory / "page.html"
    lab("run", path, "--html", str(page))
    assert "<h2>On this processor</h2>" in page.read_text() and "it is a built kernel" in page.read_text()


def test_a_report_shows_the_confirmation_that_is_on_record(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_confirmed(lab, monkeypatch)
    shown = " ".join(lab("report", run).out.split())
    assert (
        "fast: counts of instructions said +0.32 % on 33 benchmarks; this processor said +0.32 % on 33 paths" in shown
    )
    assert "slow can't be had there: it is a built kernel" in shown
    document = json.loads(lab("report", run, "--json").out)
    jsonschema.Draft202012Validator(schema("report")).validate(document)
    assert [row["variant"] for row in document["confirmation"]["variants"]] == ["fast"]
    assert document["confirmation"]["left_out"] == {"slow": "it is a built kernel"}
    page = lab.directory / "page.html"
    lab("report", run, "--html", str(page))
    assert "<h2>On this processor</h2>" in page.read_text() and "it is a built kernel" in page.read_text()
    assert f"by run {document['confirmation']['run']}: `kdyno report {run[:12]}` shows both" in lab("show", run).out


def test_a_report_judges_its_confirmation_by_the_same_settings(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_confirmed(lab, monkeypatch)
    document = json.loads(lab("report", run, "--json", "--baseline", "fast", "--margin", "0.02").out)
    assert [row["variant"] for row in document["confirmation"]["variants"]] == ["baseline"]
    assert any("judged with margin 0.02" in notice for notice in document["confirmation"]["notices"])
    other = json.loads(lab("report", run, "--json", "--baseline", "slow").out)
    assert other["confirmation"] is None


def test_a_run_with_other_recipes_is_not_a_confirmation(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_confirmed(lab, monkeypatch)
    monkeypatch.setattr(silicon, "on_silicon", lambda whole: renamed(whole).model_copy(update={"seed": 99}))
    assert "no confirmation of these variants is on record; `kdyno run` makes it" in lab("report", run).out
    assert "shows both" not in lab("show", run).out


def test_where_nothing_can_be_had_there_is_no_run_and_the_reasons_are_shown(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = SiliconPlan(None, {"baseline": "it is a built kernel"})
    monkeypatch.setattr(confirm, "build_on_silicon", lambda *_: plan)
    result = lab("run", experiment(lab))
    assert result.status == 0 and "baseline can't be had there: it is a built kernel" in result.out


def test_a_confirmation_that_fails_comes_after_the_verdicts(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def build(_whole: Experiment, _session: Session) -> SiliconPlan:
        raise NoPlace()

    monkeypatch.setattr(confirm, "build_on_silicon", build)
    result = lab("run", experiment(lab))
    assert result.status == 3 and "there is no place" in result.err
    assert "fast against baseline" in result.out


def test_a_plan_shows_the_boots_of_the_confirmation(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        silicon_kernels,
        "plan_on_silicon",
        lambda whole, _state: on_this_processor(whole, {"other": "it is a built kernel"}),
    )
    path = experiment(lab)
    out = lab("plan", path).out
    assert "then, on this processor: the same recipes as kernels that are processes" in out
    assert "boots: 6 boots to do, 0 on record, run " in out and "other can't be had there" in out
    document = json.loads(lab("plan", path, "--json").out)
    jsonschema.Draft202012Validator(schema("plan")).validate(document)
    assert len(document["confirmation"]["ahead"]["boots"]) == 6
