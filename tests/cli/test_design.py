"""How many boots a run takes when it may decide so itself, and what a self-test says: on replayed boots."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.boot.base import Description, MachineSettings
from kdyno.boot.registry import open_machine
from kdyno.judge.verdicts.selftest import last_of_host
from kdyno.store.store import Store
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
    assert "to do: boot at most 24 times (12 blocks of 2 variants), measure 33 benchmarks" in first.err
    assert "look 1: nothing is undecided after 3 of 12 blocks: the run ends here" in first.err
    assert len(lab.cells()) == 6
    assert any(notice.startswith("stopped at look 1 of 4, after 3 of 12 blocks") for notice in report["notices"])
    assert report["alpha"] < 0.001 < report["run"]["alpha"]
    verdicts = {comparison["benchmark"]: comparison["verdict"] for comparison in report["comparisons"]}
    assert verdicts.pop("lat_syscall.null") == "more"
    assert set(verdicts.values()) == {"equivalent"}

    again = lab("run", experiment)
    assert "is complete: nothing to do" in again.err
    assert len(lab.cells()) == 6
    assert json.loads(lab("runs", "--json").out)[0]["status"] == "complete"


def test_a_run_with_looks_goes_on_while_something_is_undecided(lab: Lab) -> None:
    lab.recording.add("noisy", slower("lat_syscall.null", 10), blocks=[0])
    repeat(lab, 8)
    result = lab("run", lab.experiment("noisy", blocks=8, more=LOOKS), "--json")
    assert "look 1, after 2 of 8 blocks: 1 undecided" in result.err
    assert "look 3, after 6 of 8 blocks: 1 undecided" in result.err
    assert len(lab.cells()) == 16
    assert json.loads(result.out)["run"]["stopped_at"] is None


def test_an_unfinished_run_with_looks_is_judged_by_its_last_complete_look(lab: Lab) -> None:
    lab.recording.add("noisy", slower("lat_syscall.null", 10), blocks=[0])
    repeat(lab, 8)
    experiment = lab.experiment("noisy", blocks=8, more=LOOKS)
    orders = lab.on_boot([None] * 7 + [KeyboardInterrupt()])
    assert lab("run", experiment).status == 130
    assert len(orders) >= 8
    report = json.loads(lab("report", "latest", "--json").out)
    assert any("the 2 blocks of look 1" in notice for notice in report["notices"])
    assert {value["block"] for value in report["values"]} == {0, 1}


def test_automatic_blocks_make_a_pilot_and_then_the_run_that_it_plans(lab: Lab) -> None:
    lab.recording.add("noisy", slower("lat_syscall.null", 1), blocks=[0])
    repeat(lab, 60)
    experiment = lab.experiment("noisy", blocks='"auto"', more="\n[judge]\neffect = 0.02\n")
    result = lab("run", experiment, "--json")
    report = json.loads(result.out)
    pilot = next(run for run in json.loads(lab("runs", "--json").out) if run["name"] == "replay-pilot")
    pilots, runs = result.err.split(f"after the pilot run {pilot['id']}: ")
    assert "a pilot comes first; " in pilots
    assert "to do: boot 12 times (6 blocks of 2 variants), measure 33 benchmarks" in pilots
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

    result = lab("selftest", "--aa", exact, "--experiments", "20", "--blocks", "3")
    assert (result.status, len(lab.cells())) == (0, 3 + 120)
    assert "A/A in the model lane: 20 experiments of 3 blocks" in result.out
    assert "0 of 20 (0.0 %, 95 % interval 0.0 to 16.8)" in result.out
    assert "lat_syscall.null" in result.out

    after = json.loads(lab("run", exact, "--json").out)
    assert after["selftest"]["family_wise"]["of"] == 20
    assert "self-test of this host" in lab("run", exact).out
    (last,) = json.loads(lab("selftest", "--json").out)
    assert last == after["selftest"]


def test_without_a_self_test_there_is_nothing_to_show(lab: Lab) -> None:
    result = lab("selftest")
    assert result.status == 1
    assert "no self-test of this host is on record" in result.err and "kdyno selftest --aa" in result.err


def test_a_lane_beside_an_experiment_is_refused(lab: Lab, exact: str) -> None:
    result = lab("selftest", "--aa", exact, "--lane", "wall")
    assert result.status == 1 and "--lane cannot be combined with" in result.err
    assert lab("selftest", "--aa", "--experiments", "3").status == 1


class Built:
    """A replayed machine that says that it boots what was built: its boots stand in for those of links."""

    def __init__(self, settings: MachineSettings) -> None:
        self.replayed = open_machine(settings)

    def describe(self) -> Description:
        return replace(self.replayed.describe(), needs_images=True)


@pytest.fixture
def linked(lab: Lab) -> str:
    """Four pairs of links in five blocks each; B's null call is slower in every link but the first."""
    lab.patch.setattr("kdyno.understand.selftest.carry_out.open_machine", Built)
    lab.recording.add("A")
    lab.recording.add("B")
    repeat(lab, 60)
    lab.recording.change("B", slower("lat_syscall.null", 10), blocks=[block for block in range(20) if block % 4])
    return lab.experiment(blocks=5)


def test_a_self_test_with_layouts_says_how_often_link_order_alone_is_called_a_difference(lab: Lab, linked: str) -> None:
    result = lab("selftest", linked, "--layouts", "4")
    assert (result.status, len(lab.cells())) == (0, 40)
    assert "to do: boot 40 times (20 blocks of 2 variants)" in result.err
    assert "link order in the model lane: 4 experiments of 5 blocks" in result.out
    assert "experiments that called any benchmark different: 3 of 4 (75.0 %, 95 % interval 19.4 to 99.4)" in result.out
    assert "the same boots as one run with `layouts = 4`: 0 of 33 benchmarks called different" in result.out
    (row,) = (line.split() for line in result.out.splitlines() if line.startswith("lat_syscall.null"))
    assert row[:3] == ["lat_syscall.null", "75.0", "%"] and row[-1] == "undecided"

    again = lab("selftest", linked, "--layouts", "4")
    assert "is complete: nothing to do" in again.err and len(lab.cells()) == 40
    assert again.out == result.out


def test_an_interrupted_self_test_with_layouts_goes_on(lab: Lab, linked: str) -> None:
    orders = lab.on_boot([None] * 9 + [KeyboardInterrupt()])
    assert lab("selftest", linked, "--layouts", "4").status == 130
    assert len(orders) == 10
    assert lab("selftest", linked, "--layouts", "4").status == 0
    assert (len(lab.cells()), len(orders)) == (40, 41)


def test_self_tests_of_both_kinds_are_kept_side_by_side(lab: Lab, linked: str) -> None:
    assert lab("selftest", linked, "--layouts", "4").status == 0
    lab("selftest", linked, "--aa", "--experiments", "20", "--blocks", "3")
    lab("selftest", linked, "--layouts", "2")
    kept = json.loads(lab("selftest", "--json").out)
    assert [(result["kind"], result["experiments"]) for result in kept] == [("aa", 20), ("layouts", 2)]
    assert kept[0]["benchmarks"][0]["link_order"] is None
    assert kept[1]["benchmarks"][0]["link_order"]["largest"] == 0
    shown = lab("selftest").out
    assert "A/A in the model lane" in shown and "link order in the model lane" in shown


def test_what_link_order_is_worth_in_instructions_is_not_told_of_cycles(lab: Lab, linked: str) -> None:
    (kept,) = json.loads(lab("selftest", linked, "--layouts", "4", "--json").out)
    cycles = kept | {"machine": kept["machine"] | {"pmu_clock": "cycles"}}
    with Store(f"sqlite:///{lab.state}/store.sqlite") as store:
        store.keep_selftest(kept["run"], store.run(kept["run"]).created, cycles)
        assert last_of_host(store, kept["host"], "model", "layouts") is None
        result = last_of_host(store, kept["host"], "model", "layouts", "cycles")
    assert result is not None
    assert result.sentence.endswith(
        "model lane (cycles of the emulated PMU): two links of one kernel were called different, in any of 33 "
        "benchmarks, in 3 of 4 (75.0 %, 95 % interval 19.4 to 99.4) experiments of 5 blocks"
    )


def test_where_nothing_is_linked_there_are_no_layouts(lab: Lab, exact: str) -> None:
    result = lab("selftest", exact, "--layouts")
    assert result.status == 1 and "a machine of type `fake` boots no images that are built here" in result.err
    assert not lab.cells()


def test_a_kernel_whose_functions_are_ordered_anyway_has_no_layouts(lab: Lab, linked: str) -> None:
    with Path(linked).open("a") as file:
        file.write('toolchain = "clang"\nlto = "thin"\n')
    result = lab("selftest", linked, "--layouts", "4")
    assert (
        result.status == 1 and "baseline has lto = thin: link-time optimisation orders functions itself" in result.err
    )
    assert not lab.cells()


@pytest.mark.parametrize("number", ["0", "1", "-3", "two", "1.5"])
def test_fewer_than_two_pairs_are_refused(lab: Lab, exact: str, number: str) -> None:
    assert lab("selftest", exact, f"--layouts={number}").status == 1
    assert not lab.state.exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--layouts", "100000"], "100,000 experiments of 3 blocks are 200,000 links and 600,000 boots: about 1,556 h"),
        (
            ["--layouts", "501"],
            "501 experiments of 3 blocks are 1,002 links and 3,006 boots: about 8 hours, by a guess",
        ),
        (["--aa", "--experiments", "2147483647"], "2,147,483,647 experiments of 4 blocks are 17,179,869,176 boots"),
        (
            ["--layouts", "500", "--blocks", "1000"],
            "500 experiments of 1,000 blocks are 1,000 links and 1,000,000 boots",
        ),
    ],
)
def test_a_self_test_that_nobody_waits_for_is_refused_with_its_time(
    lab: Lab, exact: str, words: list[str], message: str
) -> None:
    refused = lab("selftest", exact, *words)
    assert refused.status == 1 and message in " ".join(refused.err.split())
    assert not lab.cells()


def test_what_does_not_go_together_is_refused(lab: Lab, exact: str) -> None:
    assert lab("selftest", exact, "--aa", "--layouts").status == 1
    assert "use `--layouts 40`" in lab("selftest", exact, "--layouts", "--experiments", "40").err
    assert "put the experiment before --layouts" in " ".join(lab("selftest", "--layouts", exact).err.split())
