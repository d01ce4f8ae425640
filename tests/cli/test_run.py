"""`kdyno run`, from end to end on the machine that replays: verdicts, exit codes, and every way a boot can end."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kdyno.cli.schemas import schema
from kdyno.store.artefacts import Artefacts
from tests.cli.conftest import Lab
from tests.cli.replay import UNSOUND, died, ended, slower


def report(lab: Lab, *words: str, status: int = 0) -> dict[str, Any]:
    """The JSON report of a command, which must be valid."""
    result = lab(*words, "--json", "-q")
    assert result.status == status, result.err
    document: dict[str, Any] = json.loads(result.out)
    jsonschema.Draft202012Validator(schema("report")).validate(document)
    return document


def verdicts(document: dict[str, Any], variant: str) -> dict[str, str | None]:
    return {
        comparison["benchmark"]: comparison["verdict"]
        for comparison in document["comparisons"]
        if comparison["variant"] == variant
    }


def test_a_slower_benchmark_is_judged_slower_and_all_others_equivalent(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    judged = verdicts(report(lab, "run", lab.experiment("slow")), "slow")
    assert judged.pop("lat_syscall.null") == "more"
    assert len(judged) > 30
    assert set(judged.values()) == {"equivalent"}


def test_a_run_says_first_what_it_will_do_and_how_long_it_takes_and_one_that_goes_on_what_is_left(lab: Lab) -> None:
    lab.recording.add("same")
    experiment = lab.experiment("same")
    lab.on_boot([None, None, KeyboardInterrupt()])
    first, second, third = (lab("run", experiment).err for _ in range(3))
    assert first.splitlines()[1:3] == [
        "to do: boot 6 times (3 blocks of 2 variants), measure 33 benchmarks",
        "time: about 36 s, a guess: no such boot is on record here yet",
    ]
    assert "to do: boot 4 times (3 blocks of 2 variants, 2 on record), measure 33 benchmarks\ntime: about " in second
    assert "by what was measured here" in second
    assert "to do: " not in third and "time: " not in third


def test_an_equal_variant_is_judged_equivalent_in_everything(lab: Lab) -> None:
    lab.recording.add("same")
    assert set(verdicts(report(lab, "run", lab.experiment("same")), "same").values()) == {"equivalent"}


def test_a_regression_is_exit_code_2_only_where_that_was_asked(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    experiment = lab.experiment("slow")
    assert lab("run", experiment).status == 0
    assert lab("run", experiment, "--fail-on-regression").status == 2


def test_no_regression_is_exit_code_0(lab: Lab) -> None:
    lab.recording.add("fast", slower("lat_syscall.null", -10))
    assert lab("run", lab.experiment("fast"), "--fail-on-regression").status == 0


def test_the_pmu_record_of_an_ok_boot_is_kept_as_an_artefact(lab: Lab) -> None:
    def counted(boot: Path) -> None:
        (boot / "pmu.kpmu").write_bytes(b"counts")

    lab.recording.add("counted", counted)
    lab.recording.add("dead", counted, died("init-exited.log"))
    lab("run", lab.experiment("counted", "dead"))
    kept = {boot.variant: boot.pmu for boot in lab.boots()}
    assert kept["baseline"] is None and kept["dead"] is None
    assert Artefacts(lab.state / "artefacts").get(kept["counted"] or "").read_bytes() == b"counts"


@pytest.mark.parametrize("blocks", [1, 3])
def test_a_kernel_that_never_boots_is_exit_code_125_where_regressions_were_asked_for(lab: Lab, blocks: int) -> None:
    lab.recording.add("dead", died("init-exited.log"))
    experiment = lab.experiment("dead", blocks=blocks)
    for _ in range(2):
        assert lab("run", experiment, "--fail-on-regression").status == 125
    assert lab("run", experiment).status == 0


@pytest.mark.parametrize("how", UNSOUND)
def test_a_boot_that_fails_is_reported_with_its_reason_and_the_others_are_judged(lab: Lab, how: str) -> None:
    change, reason = UNSOUND[how]
    lab.recording.add("bad", change, blocks=[1])
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    document = report(lab, "run", lab.experiment("bad", "slow"))
    (failed,) = (boot for boot in document["boots"] if boot["status"] != "ok")
    assert (failed["variant"], failed["block"], failed["status"], failed["samples"]) == ("bad", 1, "failed", [])
    assert failed["reason"].startswith(reason)
    assert failed["reason"].isprintable()
    assert verdicts(document, "slow")["lat_syscall.null"] == "more"
    assert all(comparison["dropped"] == 1 for comparison in document["comparisons"] if comparison["variant"] == "bad")
    assert set(verdicts(document, "bad").values()) == {"equivalent"}
    assert "boots failed: verdicts are about the boots that survived" in " ".join(document["notices"])


def test_what_a_guest_says_cannot_steer_the_terminal(lab: Lab) -> None:
    lab.recording.add("steers", UNSOUND["steers"][0])
    experiment = lab.experiment("steers")
    for words in (["run", experiment], ["report", "latest"], ["show", "latest"], ["runs"]):
        result = lab(*words)
        assert result.status == 0
        assert all(c.isprintable() or c == "\n" for c in result.out + result.err), words


def test_a_variant_whose_first_two_boots_fail_is_given_up_and_that_is_said_each_time(lab: Lab) -> None:
    lab.recording.add("dead", died("init-exited.log"))
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    experiment = lab.experiment("dead", "slow")
    first = lab("run", experiment)
    assert first.status == 0
    assert [cell for cell in lab.cells() if cell[0] == "dead"] == [("dead", 0), ("dead", 1)]
    assert "dead was abandoned: all of its boots failed: panic: Kernel panic" in first.err
    assert len(lab.cells()) == 8
    second = lab("run", experiment)
    assert "is complete: nothing to do" in second.err
    assert "dead was abandoned" in second.err
    assert len(lab.cells()) == 8


def test_a_variant_that_came_through_once_is_not_given_up(lab: Lab) -> None:
    lab.recording.add("shaky", died("init-exited.log"), blocks=[1, 2])
    assert "abandoned" not in lab("run", lab.experiment("shaky")).err
    assert len(lab.cells()) == 6


def test_again_carries_a_run_out_once_more_even_if_a_variant_was_given_up(lab: Lab) -> None:
    lab.recording.add("dead", died("init-exited.log"))
    experiment = lab.experiment("dead")
    for number in range(1, 4):
        assert lab("run", experiment, *(["--again"] if number > 1 else [])).status == 0
        assert len(json.loads(lab("runs", "--json").out)) == number
        assert len(lab.boots()) == 5 * number


def test_a_lost_boot_is_tried_three_times_then_said_and_tried_again_by_the_same_command(lab: Lab) -> None:
    experiment = lab.experiment(blocks=2)
    orders = lab.on_boot(["QEMU was killed by signal 9"] * 4)
    first = lab("run", experiment)
    assert first.status == 3
    assert [(order.variant, order.block) for order in orders[:3]] == [("baseline", 0)] * 3
    assert first.err.count("lost: baseline, block 0: QEMU was killed by signal 9; run the same command to try it") == 1
    assert [boot.status for boot in lab.boots()] == ["lost", "lost", "lost", "lost", "ok"]
    assert "unfinished: 1 of 2 boots done" in first.out
    second = lab("run", experiment)
    assert (second.status, "lost: " in second.err) == (0, False)
    assert sorted((boot.block, boot.attempt, boot.status) for boot in lab.boots()) == [
        (0, 0, "lost"),
        (0, 1, "lost"),
        (0, 2, "lost"),
        (0, 3, "ok"),
        (1, 0, "lost"),
        (1, 1, "ok"),
    ]


def test_a_recording_of_a_lost_boot_stops_git_bisect_and_says_nothing_about_the_kernel(lab: Lab) -> None:
    lab.recording.add("unlucky", ended(lost="QEMU was killed by signal 9"), blocks=[0])
    document = report(lab, "run", lab.experiment("unlucky"), "--fail-on-regression", status=131)
    assert [boot["attempt"] for boot in document["boots"] if boot["status"] == "lost"] == [0, 1, 2]
    assert set(verdicts(document, "unlucky").values()) == {"equivalent"}


def test_what_reproduce_prints_repeats_the_run(lab: Lab) -> None:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    assert lab("run", lab.experiment("slow")).status == 0
    printf, _, command = lab("show", "latest", "--reproduce").out.rpartition(" | ")
    experiment = subprocess.run(["sh", "-c", printf], capture_output=True, text=True, check=True).stdout
    repeated = lab(*command.split()[1:], stdin=experiment)
    assert command.startswith("kdyno run")
    assert repeated.status == 0, repeated.err
    first, second = json.loads(lab("runs", "--json").out)
    assert (first["name"], first["done"]) == (second["name"], second["done"])
    assert sorted(lab.cells()) == sorted(2 * [(name, block) for name in ("baseline", "slow") for block in range(3)])
    assert "nothing to do" in lab("run", "-", stdin=experiment).err


@pytest.mark.parametrize(
    ("stdin", "message"),
    [
        ("", "it is no JSON"),
        ("{}", "name: it is missing"),
        ('{"name":"x","source":"s","baseline":"a","variants":{"b":{}}}', "the baseline a is not a variant"),
    ],
)
def test_standard_input_that_is_no_experiment_is_a_user_error(lab: Lab, stdin: str, message: str) -> None:
    result = lab("run", "-", stdin=stdin)
    assert result.status == 1
    assert f"standard input is not an experiment as a run records it: {message}" in result.err


def test_a_recording_that_is_not_there_is_a_user_error_before_anything_is_recorded(lab: Lab) -> None:
    lab.recording.directory.rename(lab.directory / "elsewhere")
    result = lab("run", lab.experiment())
    assert (result.status, "/recording does not exist" in result.err) == (1, True)
    assert lab("runs").out.startswith("no runs yet")


def test_a_recording_of_one_lane_is_not_replayed_as_another(lab: Lab) -> None:
    path = Path(lab.experiment())
    path.write_text(path.read_text().replace('type = "fake"', 'type = "fake"\nlane = "wall"'))
    result = lab("run", str(path), "-q")
    assert result.status == 1
    assert "was measured in lane model, but the experiment has lane wall" in result.err


def test_a_recorded_exit_that_is_nonsense_is_a_user_error(lab: Lab) -> None:
    (lab.recording.directory / "baseline" / "1" / "exit.json").write_text('{"seconds": "soon"}')
    result = lab("run", lab.experiment(), "-q")
    assert (result.status, "is not a valid exit.json" in result.err) == (1, True)


def test_an_html_report_is_written_beside_the_table_and_a_bad_place_is_a_user_error(lab: Lab) -> None:
    experiment, page = lab.experiment(), lab.directory / "report.html"
    assert lab("run", experiment, "--html", str(page), "-q").status == 0
    assert page.read_text().startswith("<!DOCTYPE html>")
    assert lab("report", "latest", "--html", str(lab.directory / "nowhere" / "x.html"), "-q").status == 1


def test_all_that_is_printed_as_json_is_json(lab: Lab) -> None:
    lab.recording.add("dead", died("init-exited.log"))
    experiment = lab.experiment("dead")
    assert json.loads(lab("plan", experiment, "--json", "-q").out)["boots_done"] == 0
    printed = json.loads(lab("run", experiment, "--json", "-q").out)
    assert json.loads(lab("report", "latest", "--json", "-q").out) == printed
    assert len(json.loads(lab("show", "latest", "--json").out)["boots"]) == 5
    assert json.loads(lab("runs", "--json").out)[0]["failed"] == 2
    ahead = json.loads(lab("plan", experiment, "--json", "-q").out)
    assert (ahead["boots_done"], ahead["boot_seconds_from"].split()[0]) == (5, "median")


def test_quiet_says_nothing_on_stderr(lab: Lab) -> None:
    experiment = lab.experiment()
    for words in (["plan", experiment], ["run", experiment], ["run", experiment], ["run", experiment, "--again"]):
        result = lab(*words, "-q")
        assert (result.status, result.err) == (0, "")
        assert result.out
