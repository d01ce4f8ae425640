"""`kdyno workload try` on this host."""

from __future__ import annotations

import json

from tests.cli.conftest import Lab

WORKLOAD = """
name = "small"
description = "says a number"
command = 'echo "rate $rate, $times of $what"'
[operation]
name = "step"
count = ["times"]
[parameters]
times = 1
rate = 1.5
what = "5"
[metrics]
rate = { pattern = '^rate ([0-9.]+), 3 of 7$', unit = "1/s", direction = "higher" }
"""


def test_a_parameter_that_is_a_number_stays_one_when_it_is_set(lab: Lab) -> None:
    path = lab.directory / "small.toml"
    path.write_text(WORKLOAD)
    values = ["--set", "times=3", "--set", "rate=2.5", "--set", "what=7"]
    trial = json.loads(lab("workload", "try", str(path), *values, "--json").out)
    assert trial["ok"] and trial["metrics"]["rate"]["values"] == [2.5]


def test_a_number_of_operations_that_is_none_is_refused(lab: Lab) -> None:
    path = lab.directory / "small.toml"
    path.write_text(WORKLOAD)
    assert "not a whole number" in lab("workload", "try", str(path), "--set", "times=many").err
