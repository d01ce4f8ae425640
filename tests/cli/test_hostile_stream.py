"""A run whose guests lie: only the boots that lie fail, with a reason that names the lie, and the store stays clean."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kdyno.store.store import Store
from tests.cli.conftest import Lab
from tests.cli.replay import Change


def edited(type_: str, nth: int = 0, **changes: object) -> Change:
    """One record of a type has other fields."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        records = [json.loads(line) for line in stream.read_text().splitlines()]
        [record for record in records if record["type"] == type_][nth].update(changes)
        stream.write_text("".join(json.dumps(record) + "\n" for record in records))

    return change


def said_more(*records: dict[str, object]) -> Change:
    """These records come before the end, which counts them."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        *lines, end = stream.read_text().splitlines()
        lines += [json.dumps({"v": 1, **record}) for record in records]
        lines.append(json.dumps(json.loads(end) | {"records": len(lines)}))
        stream.write_text("\n".join(lines) + "\n")

    return change


def benchmarks(lab: Lab) -> set[tuple[str, str, str, str, str]]:
    """All that the store holds of benchmarks."""
    with Store(f"sqlite:///{lab.state}/store.sqlite") as store:
        return {
            (benchmark.name, benchmark.test, benchmark.unit, benchmark.direction, benchmark.description)
            for run in store.runs()
            for benchmark in store.benchmarks(run.id)
        }


@pytest.mark.parametrize(
    ("lie", "reason"),
    [
        (edited("benchmark", unit="MB/s"), "agent record 1: it says unit MB/s of bw_file_rd.io_only, which is B/instr"),
        (edited("benchmark", direction="lower"), "agent record 1: it says direction lower of bw_file_rd.io_only"),
        (edited("benchmark", test="lat_pipe"), "agent record 1: it says test lat_pipe of bw_file_rd.io_only"),
        (edited("benchmark", name="lat_x"), "agent record 1: it begins lat_x where bw_file_rd.io_only was expected"),
        (edited("benchmark", 1, name="bw_pipe"), "agent record 9: it begins bw_pipe where bw_file_rd.open2close"),
        (edited("sample", 0, iteration=7), "agent record 2: bw_file_rd.io_only iteration 7, of 7 that were requested"),
        (
            said_more({"type": "output", "stream": "stdout", "hex": ""}),
            "agent record 265: it reports on a step, but none is running",
        ),
        (
            said_more({"type": "step", "program": "x", "phase": "command", "run": 0}),
            "agent record 265: it begins x, command 0, which is not the next step",
        ),
        (
            said_more({"type": "broken", "benchmark": "lat_x", "reason": ""}),
            "agent record 265: lat_x was not declared",
        ),
    ],
)
def test_a_boot_that_says_what_the_job_and_the_catalogue_do_not_fails_alone(lab: Lab, lie: Change, reason: str) -> None:
    lab.recording.add("liar", lie, blocks=[0])
    # The liar boots before the others; what it said must not count against them.
    assert lab("run", lab.experiment("liar", blocks=3)).status == 0
    ends = {(boot.variant, boot.block): (boot.status, boot.reason) for boot in lab.boots()}
    status, why = ends.pop(("liar", 0))
    assert (status, why[: len(reason)]) == ("failed", reason)
    assert set(ends.values()) == {("ok", "")}
    assert ("bw_file_rd.io_only", "bw_file_rd", "B/instr", "higher") in {benchmark[:4] for benchmark in benchmarks(lab)}
    assert len(benchmarks(lab)) == 33


def test_what_a_benchmark_is_comes_from_the_catalogue_not_from_the_guest(lab: Lab) -> None:
    lab.recording.add("painter", edited("benchmark", description="\x1b[2J\0 <script>"))
    assert lab("run", lab.experiment("painter", blocks=2)).status == 0
    assert {boot.status for boot in lab.boots()} == {"ok"}
    assert len(benchmarks(lab)) == 33
    assert not any("<script" in benchmark[4] or "\0" in benchmark[4] for benchmark in benchmarks(lab))


def test_no_text_of_a_guest_brings_a_zero_byte_or_an_escape_into_the_store(lab: Lab) -> None:
    bad = "6.12\0\x1b[31m\u202e"
    lab.recording.add("dirty", edited("hello", kernel=bad, agent=bad))
    first = "lat_unix"
    lab.recording.change("dirty", said_more({"type": "broken", "benchmark": first, "reason": bad}))
    assert lab("run", lab.experiment("dirty", blocks=2)).status == 0
    [boot, *_] = [boot for boot in lab.boots() if boot.variant == "dirty"]
    assert boot.kernel == boot.broken[first] == "6.12\\x00\\u202e"


def measured(elapsed: int, work: int) -> Change:
    """Every sample is this one."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        records = [json.loads(line) for line in stream.read_text().splitlines()]
        for record in records:
            if record["type"] == "sample":
                record |= {"elapsed": elapsed, "work": work}
        stream.write_text("".join(json.dumps(record) + "\n" for record in records))

    return change


def test_samples_at_both_ends_of_what_may_be_said_are_judged_in_finite_numbers(lab: Lab) -> None:
    most = 2**63 - 1
    lab.recording.add("glacial", measured(most, 1), blocks=[0, 1])
    lab.recording.change("glacial", measured(1, most), blocks=[2])
    lab.recording.add("instant", measured(1, most))
    done = lab("run", lab.experiment("glacial", "instant", blocks=3), "--json")
    assert done.status == 0

    def finite(constant: str) -> None:
        raise AssertionError(f"the report says {constant}")

    report = json.loads(done.out, parse_constant=finite)
    assert {boot["status"] for boot in report["boots"]} == {"ok"}
    assert len(report["comparisons"]) == 2 * 33
    table, terminal = lab("report", "latest", "--csv").out, lab("report", "latest").out
    assert "e-19," in table and "e+18," in table
    assert not re.search(r"\b(nan|inf)\b", table + terminal, re.IGNORECASE)
