"""Runs on this host, for real: no knob is set, so that no root is needed, and nothing is changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import Lab

EXPERIMENT = """\
name = "here"
baseline = "one"
blocks = 4

[variants.one]
[variants.other]
{knobs}

[workload]
type = "command"
command = ["sh", "-c", "kdyno-loads sieve --bytes 300k --json; echo about $(awk 'BEGIN {{srand(); print 5 + rand()}}')"]
[workload.metrics]
sieve = {{ pattern = '"name":"seconds","value":([0-9.e+-]+)', unit = "s", direction = "lower" }}
drawn = {{ pattern = 'about ([0-9.]+)', unit = "points", direction = "higher" }}

[machine]
type = "{machine}"
"""


def written(lab: Lab, *, knobs: str = "", machine: str = "local") -> str:
    path = Path(lab.directory) / "here.toml"
    path.write_text(EXPERIMENT.format(knobs=knobs, machine=machine))
    return str(path)


def test_a_run_on_this_host_is_judged_round_by_round(lab: Lab) -> None:
    path = written(lab)
    done = lab("run", path, "--json")
    assert done.status == 0, done.err
    report = json.loads(done.out)
    assert [boot["status"] for boot in report["boots"]] == ["ok"] * 8
    assert report["run"]["machine"]["type"] == "local" and report["run"]["lane"] == "wall"
    assert {row["benchmark"] for row in report["comparisons"]} == {"sieve", "drawn"}
    assert {row["scope"] for row in report["comparisons"]} == {"rounds"}
    assert "complete: nothing to do" in lab("run", path).err
    text = lab("report", report["run"]["id"]).out
    assert "nanoseconds of this host's clock" in text and "replicates are rounds on this running kernel" in text


@pytest.mark.parametrize(
    ("knobs", "machine", "message"),
    [
        ('opt = "O3"', "local", "variant other says `opt`, and a machine of type `local` builds and boots nothing"),
        ('profile = { use = "order" }', "local", "variant other says `profile`"),
        ('cmdline = ["mitigations=off"]', "local", "`mitigations=off` can't be told to a running kernel"),
        ('page_size = "3k"', "local", "can't be had here"),
        ('page_size = "huge"', "local", "page_size"),
        ("", "qemu", "here.toml:1: `source` is missing"),
    ],
)
def test_what_can_not_be_had_on_this_host_is_said_before_anything_is_done(
    lab: Lab, knobs: str, machine: str, message: str
) -> None:
    refused = lab("run", written(lab, knobs=knobs, machine=machine))
    assert refused.status == 1 and message in refused.err, refused.err
