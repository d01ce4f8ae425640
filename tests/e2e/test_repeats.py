"""The samples of one image and seed are the same to the last bit, whatever else the host does."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.e2e.conftest import ROOT, Kdyno

RUNS, LOOPS = 6, 4


@contextmanager
def on_one_busy_cpu() -> Iterator[None]:
    """Keep this process and its children on one CPU, beside programs that compute."""
    cpus = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cpus)})
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(LOOPS)]
    try:
        yield
    finally:
        for program in programs:
            program.kill()
            program.wait()
        os.sched_setaffinity(0, cpus)


@pytest.mark.long
def test_boots_with_one_seed_have_the_same_samples_when_six_programs_share_a_cpu(kdyno: Kdyno) -> None:
    text = (ROOT / "experiments/quickstart.toml").read_text()
    experiment = kdyno.directory / "quickstart.toml"
    experiment.write_text(text.replace("blocks = 12", "blocks = 3"))
    with on_one_busy_cpu():
        for _ in range(RUNS):
            kdyno("run", str(experiment), "--again", "-q")
    first, *others = (run["id"] for run in json.loads(kdyno("runs", "--json").stdout))
    for other in others:
        compared = kdyno("compare", first, other).stdout
        assert compared.count("3 of 3 boots with the same seed have identical samples") == 2, compared
