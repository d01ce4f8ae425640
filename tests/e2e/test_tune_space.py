"""A search in a small space of real kernels for ARCH=um: what is slower loses, and the second time nothing is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Kdyno

pytestmark = pytest.mark.long

SPACE = """
name = "small"
source = "debian:linux-source-6.12"
baseline = "slow"
blocks = 4
[variants.slow]
opt = "Os"
cmdline = ["init_on_alloc=1"]
[machine]
type = "uml"
[workload]
type = "paths"
tests = ["pipe", "lookup"]
[space.knobs]
opt = ["O2", "Os"]
"cmdline.init" = ["init_on_alloc=1", ""]
"kconfig.NO_SUCH_SYMBOL" = { choices = [false, true], risk = "none" }
[search]
recipes = 8
held_out = ["unix"]
"""


def test_a_search_finds_the_faster_recipe_of_real_kernels(kdyno: Kdyno, tmp_path: Path) -> None:
    file, page = tmp_path / "space.toml", tmp_path / "search.html"
    file.write_text(SPACE)
    words = ("tune", str(file), "--json", "--html", str(page))
    found = json.loads(kdyno(*words).stdout)
    assert found["recipes"][0]["values"] == {"opt": "O2"} | {"cmdline.init": ""}
    assert found["builds"] == 1
    # Kconfig is asked before a build: a symbol that the source lacks costs nothing.
    assert {failure["stage"] for failure in found["failures"]} == {"recipe"}
    assert found["confirmed"]["mean"]["verdict"] == found["held_out"]["mean"]["verdict"] == "faster"
    assert "Pareto front" in page.read_text()
    again = kdyno(*words)
    assert json.loads(again.stdout) == found
    assert "building" not in again.stderr
