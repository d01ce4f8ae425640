"""`kdyno tune SPACE.toml` with boots that are replayed: what it tries, what it prints, and how it goes on."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from kdyno.boot.fake import FakeMachine
from kdyno.runs import boots as boots_module
from kdyno.tune.space import tune as tune_module
from kdyno.tune.space.read import read_space
from kdyno.tune.space.record import SearchRecord
from tests.cli.busy_host import BUSY, disturb
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import BLOCKS, Change, died
from tests.cli.test_golden import check

SPACE = """
[space.knobs]
"cmdline.one" = ["", "skew_tick=1"]
"cmdline.two" = ["", "nowatchdog"]
{more}
[search]
recipes = 4
{search}
"""
ONE, TWO = "cmdline.one-skew_tick-1", "cmdline.two-nowatchdog"
BOTH = f"{ONE}-{TWO}"
DIED = died("init-exited.log")


def longer(percent: float) -> Change:
    """Everything takes so many percent longer, a little more in later blocks."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        records = [json.loads(line) for line in stream.read_text().splitlines()]
        for record in records:
            if record["type"] == "sample":
                record["elapsed"] = round(record["elapsed"] * (1 + (percent + int(boot.name) / 10) / 100))
        stream.write_text("".join(json.dumps(record) + "\n" for record in records))

    return change


def record(lab: Lab, one: Change, two: Change, both: Change) -> None:
    for name, change in ((ONE, one), (TWO, two), (BOTH, both)):
        lab.recording.add(name, change)


def space(lab: Lab, more: str = "", search: str = "", blocks: int = 3) -> str:
    return lab.experiment(blocks=blocks, more=SPACE.format(more=more, search=search))


def result_of(done: CommandResult) -> dict[str, Any]:
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def trials(lab: Lab) -> list[tuple[tuple[str, ...], int]]:
    """The recipes on record, with their rungs."""
    [file] = (lab.state / "searches").iterdir()
    on_record = SearchRecord.model_validate_json(file.read_text()).trials
    return [(tuple(trial.values), trial.rung) for trial in on_record]


def masked(text: str) -> str:
    return re.sub(r"about \d+ (s|min)", "about N s", re.sub(r"run [0-9a-f]{12}", "run ID-123456789", text))


def test_the_best_recipe_is_found_and_measured_again(lab: Lab) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    found = result_of(lab("tune", space(lab), "--json"))
    assert [recipe["name"] for recipe in found["recipes"]][:1] == ["cmdline.one=skew_tick=1"]
    assert len(found["recipes"]) == 3
    assert found["confirmed"]["variant"] == ONE
    assert found["claim"].startswith("cmdline.one=skew_tick=1 beats the baseline: +11")


def test_the_result_names_what_was_promised_and_what_was_found(lab: Lab) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    done = lab("tune", space(lab))
    assert done.status == 0
    check("tune-space", lab, CommandResult(done.status, masked(done.out), masked(done.err)))


def test_the_best_recipe_goes_to_the_last_rung(lab: Lab) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    lab("tune", space(lab), "--no-confirm")
    assert (("cmdline.one",), 1) in trials(lab)
    assert (("cmdline.two",), 1) not in trials(lab)


def test_a_search_in_which_nothing_is_better_ends_well(lab: Lab) -> None:
    record(lab, longer(3), longer(5), longer(8))
    done = lab("tune", space(lab))
    assert done.status == 0
    assert "no recipe was better than the baseline in the search: nothing is confirmed" in done.out


def test_a_recipe_that_does_not_boot_is_a_constraint_and_not_a_score(lab: Lab) -> None:
    record(lab, DIED, longer(-5), DIED)
    found = result_of(lab("tune", space(lab), "--json"))
    assert ("cmdline.one=skew_tick=1", "boot") in {(one["name"], one["stage"]) for one in found["failures"]}
    assert {recipe["name"] for recipe in found["recipes"]} == {"cmdline.two=nowatchdog"}
    assert found["confirmed"]["variant"] == TWO


def test_a_baseline_that_does_not_boot_ends_the_search_before_any_trial(lab: Lab) -> None:
    record(lab, longer(1), longer(1), longer(1))
    lab.recording.change("baseline", DIED)
    done = lab("tune", space(lab))
    assert done.status == 1
    assert "the baseline baseline doesn't boot: " in done.err
    assert not list((lab.state / "searches").iterdir())


def test_the_same_command_repeats_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    first = lab("tune", space(lab))

    def no_boot(*_: object) -> None:
        raise AssertionError("a boot was repeated")

    monkeypatch.setattr(boots_module.Boots, "_run_boots", no_boot)
    assert lab("tune", space(lab)).out == first.out


LANES = """\
[[search.rungs]]
blocks = 2
lane = "model"
[[search.rungs]]
blocks = 3
lane = "wall"
"""


@pytest.fixture
def two_lanes(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The machine replays boots of both lanes. In the lane model both words are better, the second more so; in the lane
    wall only the first is.
    """
    record(lab, longer(-4), longer(-10), longer(5))
    timed = lab.recording.directory.with_name("recording-wall")
    shutil.copytree(lab.recording.directory / "baseline", timed / "baseline")
    for stream in timed.glob("*/*/stream.jsonl"):
        text = stream.read_text().replace('"lane":"model"', '"lane":"wall"', 1)
        stream.write_text(text.replace('"unit":"B/instr"', '"unit":"MB/s"').replace('"unit":"instr"', '"unit":"ns"'))
    for name, change in ((ONE, longer(-7)), (TWO, longer(8)), (BOTH, longer(9))):
        shutil.copytree(timed / "baseline", timed / name)
        for block in BLOCKS:
            change(timed / name / str(block))
    find = FakeMachine._find

    def find_of_lane(machine: FakeMachine, variant: str, block: int) -> Path:
        place = find(machine, variant, block)
        return timed / place.relative_to(machine.config.recording) if machine.config.lane == "wall" else place

    monkeypatch.setattr(FakeMachine, "_find", find_of_lane)
    return lab


def test_rungs_of_two_lanes_are_not_compared_and_the_last_one_decides(two_lanes: Lab) -> None:
    found = result_of(two_lanes("tune", space(two_lanes, search=LANES), "--json"))
    assert [(recipe["name"], recipe["clock"]) for recipe in found["recipes"]] == [
        ("cmdline.one=skew_tick=1", "wall"),
        ("cmdline.two=nowatchdog", "wall"),
        ("cmdline.one=skew_tick=1, cmdline.two=nowatchdog", "model"),
    ]
    assert [recipe["is_on_front"] for recipe in found["recipes"]] == [True, False, False]
    assert found["winner"] == "cmdline.one=skew_tick=1"
    assert found["claim"].startswith("cmdline.one=skew_tick=1 beats the baseline: +7")
    runs = {run["id"]: run for run in json.loads(two_lanes("runs", "--json").out)}
    assert runs[found["confirmed"]["confirmation"]]["lane"] == "wall"


def test_the_table_of_two_lanes_names_the_lane_of_each_recipe(two_lanes: Lab) -> None:
    done = two_lanes(
        "tune", space(two_lanes, search=LANES), "--no-confirm", "--html", str(two_lanes.directory / "page.html")
    )
    assert done.status == 0, done.err
    rows = [line.split() for line in done.out.splitlines() if "cmdline" in line and "%" in line]
    assert [("wall" in row, "model" in row) for row in rows[:3]] == [(True, False), (True, False), (False, True)]


def test_what_a_search_lacks_at_its_end_is_refused_at_its_beginning(lab: Lab) -> None:
    for search, message in (
        ('held_out = ["lat_pip"]', "lat_pip"),
        ('held_out = ["lmbench"]', "held_out names all tests of the workload"),
        ("[[search.rungs]]\nblocks = 2\n[[search.rungs]]\nblocks = 3\ntests = ['lat_pip']\n", "lat_pip"),
        ('objectives = ["speed", "text"]', "[search] objectives names text, but a machine of type `fake` boots no"),
    ):
        done = lab("tune", space(lab, search=search), "--dry-run")
        assert (done.status, message in done.err) == (1, True), done.err


def test_tests_that_are_held_out_are_not_searched_by(lab: Lab) -> None:
    file = read_space(Path(space(lab, search='held_out = ["lat_pipe", "bw_pipe"]')))
    one = next(iter(file.space.neighbours(file.space.baseline)))
    for experiment in (file.experiment, file.experiment_of(one)):
        names = {order.name for order in experiment.workload.part("model").tests}
        assert "lat_unix" in names
        assert not {"lat_pipe", "bw_pipe"} & names
    whole = read_space(Path(space(lab)))
    assert len(whole.experiment.workload.part("model").tests) == len(names) + 2


def test_a_search_that_was_killed_goes_on(lab: Lab) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    kills = "import os, signal\nfrom kdyno.tune.space.record import SearchRecordFile\n" + (
        "add = SearchRecordFile.add\n"
        "def then_die(self, trial):\n"
        "    add(self, trial)\n"
        "    if len(self.record.trials) == 2:\n"
        "        os.kill(os.getpid(), signal.SIGKILL)\n"
        "SearchRecordFile.add = then_die\n"
    )
    process = lab.start("tune", space(lab), script=kills)
    assert process.wait(timeout=120) == -9
    before = trials(lab)
    assert len(before) == 2
    done = result_of(lab("tune", space(lab), "--json"))
    assert trials(lab)[:2] == before
    assert len(done["recipes"]) == 3


def test_a_dry_run_builds_and_boots_nothing(lab: Lab) -> None:
    done = lab("tune", space(lab), "--dry-run")
    assert done.status == 0
    assert "space: 4 recipes of 2 knobs" in done.out
    assert "to do: try at most 3 recipes, build at most 0 kernels, on 2 rungs of 2, 3 blocks" in done.out
    assert not list((lab.state / "searches").iterdir())


def test_conditions_and_forbidden_combinations_leave_recipes_out(lab: Lab) -> None:
    forbid = '[[space.forbid]]\n"cmdline.one" = "skew_tick=1"\n"cmdline.two" = "nowatchdog"\n'
    assert "space: 3 recipes of 2 knobs, 1 forbidden" in lab("tune", space(lab, forbid), "--dry-run").out
    more = '[space.knobs."cmdline.three"]\nchoices = ["", "audit=1"]\nwhen = { "cmdline.one" = "skew_tick=1" }\n'
    assert "space: 6 recipes of 3 knobs, 1 condition" in lab("tune", space(lab, more), "--dry-run").out


def test_a_choice_that_trades_safety_is_left_out_unless_it_is_allowed(lab: Lab) -> None:
    more = '"cmdline.three" = ["", "mitigations=off"]\n'
    done = lab("tune", space(lab, more), "--dry-run")
    assert "left out for its risk: cmdline.three=mitigations=off (mitigation)" in done.out
    assert "space: 4 recipes" in done.out
    allowed = lab("tune", space(lab, more, 'allow = ["none", "debugging", "mitigation"]'), "--dry-run")
    assert "space: 8 recipes" in allowed.out


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('march_of_cpu = ["native"]\n', "it is not a knob that can be searched"),
        ('"kconfig.NO_SUCH_SYMBOL" = [true]\n', "kdyno's list of knobs has no Kconfig symbol NO_SUCH_SYMBOL"),
        (
            '"cmdline.three" = ["no_such"]\n',
            "kdyno's list of knobs has no kernel parameter no_such",
        ),
        ('opt = ["O9"]\n', "'O1', 'O2', 'O3' or 'Os' is expected"),
        ('[[space.forbid]]\n"cmdline.four" = "x"\n', "there is no knob cmdline.four in [space.knobs]"),
        ('[[space.forbid]]\n"cmdline.one" = "x"\n', "x is not a choice of cmdline.one: there are -, skew_tick=1"),
        ('[[space.forbid]]\n"cmdline.one" = ""\n', "[[space.forbid]] forbids the baseline"),
        (
            '[space.knobs."cmdline.three"]\nchoices = ["audit=1"]\nwhen = { "cmdline.four" = "x" }\n'
            '[space.knobs."cmdline.four"]\nchoices = ["x"]\nrisk = "none"\nwhen = { "cmdline.three" = "audit=1" }\n',
            "[space.knobs] has conditions that depend on each other in a circle: "
            "cmdline.three -> cmdline.four -> cmdline.three",
        ),
        (
            '[space.knobs."cmdline.three"]\nchoices = ["audit=1"]\nwhen = { "cmdline.one" = "skew_tick=1" }\n'
            '[[space.forbid]]\n"cmdline.one" = "skew_tick=1"\n"cmdline.three" = "audit=1"\n',
            "[space.knobs] cmdline.three = audit=1 can never be tried",
        ),
    ],
)
def test_a_space_that_makes_no_sense_is_refused_by_name(lab: Lab, more: str, message: str) -> None:
    done = lab("tune", space(lab, more))
    assert done.status == 1
    assert message in done.err


def test_an_experiment_without_a_space_is_refused(lab: Lab) -> None:
    done = lab("tune", lab.experiment())
    assert done.status == 1
    assert "has no table [space]" in done.err


def test_a_damaged_record_is_named(lab: Lab) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    lab("tune", space(lab), "--no-confirm")
    [file] = (lab.state / "searches").iterdir()
    file.write_text("{")
    done = lab("tune", space(lab))
    assert done.status == 3
    assert "can't read the record of this search" in done.err
    assert tune_module.NOTHING_BETTER not in done.out


@pytest.mark.parametrize("variant", ["baseline", ONE])
def test_boots_that_other_work_disturbed_are_carried_out_once_more(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, variant: str
) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    boots = disturb(monkeypatch, variant, "lat_syscall.null", times=1)
    found = result_of(lab("tune", space(lab), "--json"))
    assert boots[variant, 0] > 1
    assert found["failures"] == []
    assert found["confirmed"]["variant"] == ONE


def test_a_host_that_leaves_nothing_to_measure_is_no_fault_of_a_recipe_and_the_search_goes_on_when_it_is_quiet(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    record(lab, longer(-10), longer(5), longer(-4))
    with monkeypatch.context() as busy:
        disturb(busy, ONE, "lat_syscall.null", times=100)
        done = lab("tune", space(lab), "--json")
    assert done.status == 3
    assert f"left no value of lat_syscall.null in any boot of {ONE}: {BUSY}" in done.err
    assert "run the same command again when nothing else runs here" in done.err
    found = result_of(lab("tune", space(lab), "--json"))
    assert found["failures"] == []
    assert found["confirmed"]["variant"] == ONE
