"""A command as the workload, from the experiment file to verdicts, on the machine that replays."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import jsonschema
import pytest

from kdyno.cli.schemas import schema
from tests.cli.conftest import Lab
from tests.cli.replay import BLOCKS, Change, ran

WORKLOAD = """\
[workload]
type = "command"
command = ["serve", "--requests", "1000"]
[workload.metrics.throughput]
pattern = '^throughput: (\\S+)'
unit = "requests/s"
direction = "higher"
[workload.metrics.p99]
pattern = 'p99 = (\\S+) us'
unit = "us"
direction = "lower"
"""


def served(block: int, *, speed: float = 1.0, p99: str = "830.5") -> Change:
    """What the command says in one block: a little more in each, as hosts are."""
    return ran(f"warming up\nthroughput: {(1000 + block) * speed}\np99 = {p99} us\n", stderr="careful\n")


@pytest.fixture
def commands(lab: Lab) -> Lab:
    """A recording in which all variants ran the command; `fast` has more throughput."""
    lab.recording.add("fast")
    for block in BLOCKS:
        lab.recording.change("baseline", served(block), blocks=[block])
        lab.recording.change("fast", served(block, speed=1.25), blocks=[block])
    return lab


def report(lab: Lab, *words: str) -> dict[str, Any]:
    result = lab(*words, "--json", "-q")
    assert result.status == 0, result.err
    content: dict[str, Any] = json.loads(result.out)
    jsonschema.Draft202012Validator(schema("report")).validate(content)
    return content


def compared(content: dict[str, Any], variant: str) -> dict[str, tuple[str | None, str]]:
    """By benchmark: the verdict, and why there is none."""
    rows = [row for row in content["comparisons"] if row["variant"] == variant]
    return {row["benchmark"]: (row["verdict"], row["reason"]) for row in rows}


def test_what_a_command_says_is_judged_like_any_other_benchmark(commands: Lab) -> None:
    content = report(commands, "run", commands.experiment("fast", more=WORKLOAD))
    assert compared(content, "fast") == {"throughput": ("faster", ""), "p99": ("equivalent", "")}
    [throughput] = (row for row in content["benchmarks"] if row["name"] == "throughput")
    assert (throughput["unit"], throughput["direction"]) == ("requests/s", "higher")
    assert [row["value"] for row in content["values"] if row["benchmark"] == "p99"] == [830.5] * 6
    [note] = (note for note in content["notices"] if "printed by the command" in note)
    assert "virtual" in note


def test_a_run_of_a_command_says_how_many_numbers_it_reads(commands: Lab) -> None:
    result = commands("run", commands.experiment("fast", more=WORKLOAD))
    assert "to do: boot 6 times (3 blocks of 2 variants), measure 2 benchmarks" in result.err
    assert "requests/s" in result.out


def test_samples_that_are_values_leave_elapsed_and_work_empty_in_the_csv(commands: Lab) -> None:
    commands("run", commands.experiment("fast", more=WORKLOAD))
    rows = list(csv.DictReader(io.StringIO(commands("report", "latest", "--csv").out)))
    assert len(rows) == 12
    assert {(row["elapsed"], row["work"], row["iteration"]) for row in rows} == {("", "", "0")}
    assert {row["value"] for row in rows if row["benchmark"] == "p99"} == {"830.5"}


def test_a_csv_of_values_can_be_judged_again(commands: Lab) -> None:
    commands("run", commands.experiment("fast", more=WORKLOAD))
    path = commands.directory / "samples.csv"
    path.write_text(commands("report", "latest", "--csv").out)
    result = commands("judge", str(path), "--baseline", "baseline", "--json")
    assert result.status == 0, result.err
    verdicts = {row["benchmark"]: row["verdict"] for row in json.loads(result.out)["comparisons"]}
    assert verdicts == {"throughput": "faster", "p99": "equivalent"}


def test_a_number_that_can_not_be_read_is_broken_and_the_others_are_judged(commands: Lab) -> None:
    commands.recording.add("mute")
    for block in BLOCKS:
        commands.recording.change("mute", served(block, p99="nan"), blocks=[block])
    content = report(commands, "run", commands.experiment("mute", more=WORKLOAD))
    assert compared(content, "mute") == {
        "throughput": ("equivalent", ""),
        "p99": (None, "broken in mute: line 3 says 'nan', which is not a positive number"),
    }


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (ran("", status=1, stderr="serve: no such device\n"), "the command ended with status 1: serve: no such device"),
        (
            ran("bye\n"),
            "the command printed none of its numbers; throughput: no line of the output matches its pattern",
        ),
        (ran("x" * 100_000 + "\n"), "the command printed none of its numbers; throughput: no line of the output"),
        (ran("\n" * 20_000), "the command printed none of its numbers; throughput: the command wrote more than 10,000"),
    ],
)
def test_a_command_that_fails_gives_its_variant_up_with_the_reason(commands: Lab, change: Change, why: str) -> None:
    commands.recording.add("sick", change)
    content = report(commands, "run", commands.experiment("sick", "fast", more=WORKLOAD))
    assert compared(content, "fast")["throughput"] == ("faster", "")
    assert {boot["status"] for boot in content["boots"] if boot["variant"] == "sick"} == {"failed"}
    verdict, reason = compared(content, "sick")["throughput"]
    assert verdict is None
    assert reason.startswith(f"no boot of sick succeeded; the first failed: {why}")


def test_another_pattern_is_another_boot_and_another_margin_is_not(commands: Lab) -> None:
    commands("run", commands.experiment("fast", more=WORKLOAD))
    orders = commands.on_boot([])
    assert commands("run", commands.experiment("fast", more=WORKLOAD + "[judge]\nmargin = 0.02\n")).status == 0
    assert orders == []
    other = WORKLOAD.replace("p99 =", "p99 +=")
    assert commands("run", commands.experiment("fast", more=other)).status == 0
    assert len(orders) == 6


def test_a_commands_numbers_can_not_be_explained(commands: Lab) -> None:
    commands("run", commands.experiment("fast", more=WORKLOAD))
    result = commands("explain", "latest", "fast", "throughput")
    assert (result.status, result.err.splitlines()[0]) == (
        1,
        "kdyno: throughput can't be explained: its values are what a command said, and kdyno knows no loop behind them",
    )


def test_a_pilot_plans_blocks_of_a_command_with_one_sample_in_each_boot(commands: Lab) -> None:
    for variant in ("baseline", "fast"):  # more blocks than were recorded: all boots are the same
        for name in ("console.log", "exit.json", "stream.jsonl"):
            source = commands.recording.directory / variant / "0" / name
            (commands.recording.directory / variant / name).write_bytes(source.read_bytes())
    content = report(commands, "run", commands.experiment("fast", blocks='"auto"', more=WORKLOAD))
    assert any(", 1 iteration each, " in note for note in content["notices"])
    assert compared(content, "fast")["p99"] == ("equivalent", "")


def test_a_selftest_of_a_command_takes_no_tests(commands: Lab) -> None:
    result = commands("selftest", "--aa", commands.experiment("fast", more=WORKLOAD), "--tests", "lat_pipe")
    assert result.status == 1
    assert "a workload of type `command` has no tests to choose from" in result.err


def test_the_emulated_pmu_has_nothing_to_count_in_a_command(lab: Lab) -> None:
    path = lab.directory / "pmu.toml"
    path.write_text(
        'name = "pmu"\nsource = "nowhere"\nbaseline = "plain"\n[variants.plain]\n' + WORKLOAD + "[machine.pmu]\n"
    )
    result = lab("plan", str(path))
    assert result.status == 1
    assert (
        "a workload of type `command` runs none\nhint: remove [machine.pmu], or give a metric an `event`" in result.err
    )


@pytest.mark.parametrize(
    ("event", "machine", "message"),
    [
        ("user_stlb_misses", "", "nothing counts the events of metrics: user_stlb_misses\nhint: add [machine.pmu]"),
        ("user_stlb_misses", "[machine.pmu]\n", "[machine.pmu] doesn't count user_stlb_misses\nhint: set events"),
        ("walks+loads", '[machine.pmu]\nscope = "all"\n', "[machine.pmu] doesn't count walks\n"),
        ("loads", '[machine.pmu]\nscope = "all"\nevents = "edges"\nclock = "instructions"\n', "for accesses"),
    ],
)
def test_an_event_that_nothing_counts_is_refused_before_anything_is_built(
    lab: Lab, event: str, machine: str, message: str
) -> None:
    metric = f'[workload.metrics.walks]\nevent = "{event}"\nregion = 1\nunit = "walks"\ndirection = "lower"\n'
    path = lab.directory / "pmu.toml"
    path.write_text(
        'name = "pmu"\nsource = "nowhere"\nbaseline = "plain"\n[variants.plain]\n'
        '[workload]\ntype = "command"\ncommand = ["true"]\n' + metric + '[machine]\nlane = "model"\n' + machine
    )
    result = lab("plan", str(path))
    assert result.status == 1
    assert message in result.err
