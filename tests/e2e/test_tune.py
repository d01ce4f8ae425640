"""Tuning a delegation on real kernels: found in few kernels, repeated from what is on record, written as a plan."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.kernel.delegation.plan_file import load
from tests.e2e.conftest import Kdyno

pytestmark = pytest.mark.long

TUNED = """
layouts = 2

[variants.gcc]
toolchain = "gcc-12"

[workload]
tests = ["lat_syscall", "lat_pipe"]

[machine]
lane = "model"

[tune]
replicates = 2
hot = 0.8

[tune.choices.clang]
compiler = "clang-19"

[tune.held_out]
tests = ["lat_unix"]
"""


def test_a_delegation_is_searched_judged_and_written_and_the_second_time_nothing_is_built(
    kdyno: Kdyno, tmp_path: Path
) -> None:
    path = kdyno.experiment("tuned", TUNED, baseline="gcc", blocks=2)
    words = ("tune", "delegation", path, "-o", str(tmp_path / "plan.toml"), "--json")
    tuned = json.loads(kdyno(*words).stdout)
    result = tuned["found"]
    assert 2 <= result["kernels"] <= 20 and 10 <= result["hot"] <= 200
    assert 0.2 < result["hot_share"] < 0.9
    assert tuned["claim"]
    if result["files"]:
        assert [judged["workload"] for judged in tuned["judgements"]] == ["chosen by", "held out"]
        assert all({row["variant"] for row in judged["against"]} == {"gcc", "clang"} for judged in tuned["judgements"])
        assert [rule.table for rule in load(tmp_path / "plan.toml").rule] == [str(tmp_path / "plan.csv")]
        assert (tmp_path / "plan.csv").read_text().count("\n") == 1 + len(result["files"])
    again = kdyno(*words)
    assert json.loads(again.stdout)["found"] == result
    assert "booting" not in again.stderr and "building" not in again.stderr
