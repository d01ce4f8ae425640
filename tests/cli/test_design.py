"""How many boots a run takes when it may decide so itself, and what a self-test says: on replayed boots."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.cli.conftest import Lab
from tests.cli.replay import BLOCKS, slower

LOOKS = "\n[judge]\nlooks = 4\n"


def repeat(lab: Lab, blocks: int) -> None:
    """Give every variant of the recording so many blocks, by repeating those it has."""
    for variant in lab.recording.directory.iterdir():
        for block in range(len(BLOCKS), blocks):
            shutil.copytree(variant / str(block % len(BLOCKS)), variant / str(block))


def test_a_run_with_looks_ends_when_nothing_is_undecided_and_stays_ended(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    repeat(lab, 12)
    experiment = lab.experiment("slow", blocks=12, more=LOOKS)

    first = lab("run", experiment, "--json")
    report = json.loads(first.out)
    assert "to do: boot at most 24 times (12 blocks of 2 variants), measure 34 benchmarks" in first.err
    assert "look 1: nothing is undecided after 3 of 12 blocks: the run ends here" in first.err
    assert len(lab.cells()) == 6
    assert any(notice.startswith("stopped at look 1 of 4, after 3 of 12 blocks") for notice in report["notices"])
    assert report["alpha"] < 0.001 < report["run"]["alpha"]
    verdicts = {each["benchmark"]: each["verdict"] for each in report["comparisons"]}
    assert verdicts.pop("lat_syscall.null") == "slower"
    assert set(verdicts.values()) == {"equivalent"}

    again = lab("run", experiment)
    assert "is complete: nothing to do" in again.err
    assert len(lab.cells()) == 6
    assert json.loads(lab("runs", "--json").out)[0]["status"] == "complete"


def test_a_run_with_looks_goes_on_while_something_is_undecided(lab: Lab) -> None:
    lab.recording.add("noisy", slower("lat_syscall.null", 10), blocks=[0])
    repeat(lab, 8)
    said = lab("run", lab.experiment("noisy", blocks=8, more=LOOKS), "--json")
    assert "look 1, after 2 of 8 blocks: 1 undecided" in said.err
    assert "look 3, after 6 of 8 blocks: 1 undecided" in said.err
    assert len(lab.cells()) == 16
    assert json.loads(said.out)["run"]["stopped_at"] is None


def test_an_unfinished_run_with_looks_is_judged_by_its_last_complete_look(lab: Lab) -> None:
    lab.recording.add("noisy", slower("lat_syscall.null", 10), blocks=[0])
    repeat(lab, 8)
    experiment = lab.experiment("noisy", blocks=8, more=LOOKS)
    orders = lab.on_boot([None] * 7 + [KeyboardInterrupt()])
    assert lab("run", experiment).status == 130
    assert len(orders) >= 8
    report = json.loads(lab("report", "latest", "--json").out)
    assert any("judged are the 2 blocks of look 1" in notice for notice in report["notices"])
    assert {each["block"] for each in report["values"]} == {0, 1}


def test_automatic_blocks_make_a_pilot_and_then_the_run_that_it_plans(lab: Lab) -> None:
    lab.recording.add("noisy", slower("lat_syscall.null", 1), blocks=[0])
    repeat(lab, 60)
    experiment = lab.experiment("noisy", blocks='"auto"', more="\n[judge]\neffect = 0.02\n")
    said = lab("run", experiment, "--json")
    report = json.loads(said.out)
    pilot = next(run for run in json.loads(lab("runs", "--json").out) if run["name"] == "replay-pilot")
    pilots, runs = said.err.split(f"after the pilot run {pilot['id']}: ")
    assert "a pilot comes first; " in pilots
    assert "to do: boot 12 times (6 blocks of 2 variants), measure 34 benchmarks" in pilots
    assert f"to do: boot {2 * report['run']['blocks']} times ({report['run']['blocks']} blocks of 2 " in runs
    assert report["run"]["name"] == "replay"
    assert 4 <= report["run"]["blocks"] <= 60
    assert any(notice.startswith(f"after the pilot run {pilot['id']}") for notice in report["notices"])
    boots = len(lab.cells())
    lab("run", experiment)
    assert len(lab.cells()) == boots


@pytest.fixture
def exact(lab: Lab) -> str:
    """One boot for all: whatever boots, it measures the same."""
    for file in (lab.recording.directory / "baseline" / "0").iterdir():
        shutil.copy(file, lab.recording.directory)
    return lab.experiment()


def test_a_self_test_counts_false_verdicts_and_reports_say_so_from_then_on(lab: Lab, exact: str) -> None:
    before = json.loads(lab("run", exact, "--json").out)
    assert before["selftest"] is None

    said = lab("selftest", "--aa", exact, "--experiments", "20", "--blocks", "3")
    assert (said.status, len(lab.cells())) == (0, 3 + 120)
    assert "A/A in the model lane: 20 experiments of 3 blocks" in said.out
    assert "0 of 20 (0.0 %, 95 % interval 0.0 to 16.8)" in said.out
    assert "lat_syscall.null" in said.out

    after = json.loads(lab("run", exact, "--json").out)
    assert after["selftest"]["family_wise"]["of"] == 20
    assert "self-test of this host" in lab("run", exact).out
    (last,) = json.loads(lab("selftest", "--json").out)
    assert last == after["selftest"]


def test_without_a_self_test_there_is_nothing_to_show(lab: Lab) -> None:
    said = lab("selftest")
    assert said.status == 1
    assert "no self-test of this host is on record" in said.err and "kdyno selftest --aa" in said.err


def test_a_lane_beside_an_experiment_is_refused(lab: Lab, exact: str) -> None:
    said = lab("selftest", "--aa", exact, "--lane", "wall")
    assert said.status == 1 and "--lane goes without an experiment" in said.err
    assert lab("selftest", "--aa", "--experiments", "3").status == 1
