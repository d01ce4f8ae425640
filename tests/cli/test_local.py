"""Runs on this host, for real: no knob is set, so that no root is needed, and nothing is changed."""

from __future__ import annotations

import json
import os
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


CURVE = """\
name = "curve"
baseline = "host"
blocks = 5
[variants.host]
[workload]
type = "command"
command = ["sh", "-c", '''
for n in 1 2; do echo "p$n: $(kdyno-loads sieve --bytes 300K --processes $n --json)"; done
echo "j1: no make"
''']
[workload.metrics]
"sieve.p1" = { pattern = '^p1: .*?"name":"seconds","value":([0-9.e+-]+)', unit = "s", direction = "lower" }
"sieve.p2" = { pattern = '^p2: .*?"name":"seconds","value":([0-9.e+-]+)', unit = "s", direction = "lower" }
"make.j1" = { pattern = '^j1: (.+)$', unit = "s", direction = "lower" }
[machine]
type = "local"
cpus = [CPU]
"""


def test_copies_of_a_program_make_a_scaling_curve_and_what_is_missing_leaves_the_rest_alone(lab: Lab) -> None:
    path = Path(lab.directory) / "curve.toml"
    path.write_text(CURVE.replace("CPU", str(max(os.sched_getaffinity(0)))))
    done = lab("run", str(path), "--json")
    assert done.status == 0, done.err
    [broken] = {why for boot in json.loads(done.out)["boots"] for why in boot["broken"].items()}
    assert broken == ("make.j1", "line 3 says 'no make', which is not a positive number")
    result = lab("scaling", "latest", "--json")
    assert result.status == 0, result.err
    curve = json.loads(result.out)
    [series] = curve["series"]
    assert (series["workload"], series["work"], len(series["values"])) == ("sieve", "copies", 10)
    assert [point["n"] for point in series["scaling"]["points"]] == [1, 2]
    assert series["scaling"]["no_usl"] == "USL needs 3 different n, and there are 2"
    assert "n goes up to 2, and the machine has one CPU" in curve["notices"][-1]


@pytest.mark.parametrize(
    ("knobs", "machine", "message"),
    [
        ('opt = "O3"', "local", "variant other sets `opt`, but a machine of type `local` builds and boots nothing"),
        ('profile = { use = "order" }', "local", "variant other sets `profile`"),
        ('cmdline = ["mitigations=off"]', "local", "`mitigations=off` cannot be set on a running kernel"),
        ('page_size = "3k"', "local", "is not available on this host"),
        ('page_size = "huge"', "local", "page_size"),
        ("", "qemu", "here.toml:1: `source` is missing"),
    ],
)
def test_what_can_not_be_had_on_this_host_is_said_before_anything_is_done(
    lab: Lab, knobs: str, machine: str, message: str
) -> None:
    refused = lab("run", written(lab, knobs=knobs, machine=machine))
    assert refused.status == 1 and message in refused.err, refused.err
