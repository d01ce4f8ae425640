"""Instrumented kernels, really: built with counters, trained, and compiled again by what they counted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.kernel.delegation.records import read_records
from tests.e2e.conftest import Kdyno
from tests.e2e.test_feedback import COMPILED, image, ratios

COUNTED = COMPILED.replace("clang-19", "gcc").replace('["autofdo"]', '"pgo"')


@pytest.mark.long
def test_a_kernel_is_compiled_by_what_it_counted(kdyno: Kdyno, state: Path) -> None:
    path = kdyno.experiment("counted", COUNTED, baseline="plain", blocks=2)
    record = image(kdyno, path, "tuned")
    directory = state / "images" / record["key"]
    made = read_records(directory / "delegation.jsonl")
    assert {"fs/read_write.c", "fs/pipe.c", "kernel/sched/core.c"} <= {
        made_object.source for made_object in made.objects if made_object.profiles
    }
    assert "CONFIG_GCOV_KERNEL=y" not in (directory / "config").read_text(), "the tuned kernel doesn't count"
    symbols = [line.split() for line in (directory / "System.map").read_text().splitlines()]
    places = {name: int(address, 16) for address, _, name in symbols}
    hot = sorted(abs(places[name] - places["vfs_read"]) for name in ("vfs_write", "ksys_read"))
    assert hot[-1] < abs(places["kernel_restart"] - places["vfs_read"]), "what is hot lies together"
    cycles = ratios(kdyno, path)
    assert cycles["lat_pipe"] < 1 and cycles["lat_syscall.stat"] < 1, "fewer modelled cycles, the same in every run"
    again = json.loads(kdyno("plan", path, "--json").stdout)
    assert (again["training_boots"], again["boots"]) == (0, []), "the second time nothing is done"
