"""kdyno's own figures can be taken; what they are, this test doesn't hold against anything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT

AIMS = {
    "boot to the first sample / bare boot": "≤ 1.1",
    "boot to the end of `true` in a root file system": "≤ 2",
    "boot with all tests, PMU events = edges": "≤ 1.2",
    "2 variants × 12 blocks × 19 tests": "≤ 12 s",
    "the same run again: seconds": "≤ 0.5 s",
    "kdyno judge, 10 M rows": "≤ 4 s",
    "kdyno --help": "≤ 0.15 s",
}


@pytest.mark.long
def test_the_quick_bench_prints_each_figure_beside_its_aim(state: Path) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "bench", "--quick"],
        env={**os.environ, "KDYNO_STATE": str(state)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for figure, aim in AIMS.items():
        assert any(line.startswith(figure) and f" {aim} " in line for line in done.stdout.splitlines()), done.stdout
