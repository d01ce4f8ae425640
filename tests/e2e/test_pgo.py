"""Instrumented kernels, really: built with counters, trained, and compiled again by what they counted."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdyno.base.process import output
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.delegation.records import read_records
from kdyno.kernel.image import Image
from kdyno.kernel.images import load_image
from kdyno.measure.guest.counters import read_snapshots
from kdyno.measure.guest.job import ClangCounters
from kdyno.measure.guest.pmu_parts import CONTEXTS
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.needs import Load
from kdyno.profile.code import Code
from kdyno.profile.ir_profile import counted_functions, counts_of
from kdyno.runs.one_boot import BootRequest
from kdyno.runs.single_boots import pmu_job, pmu_machine
from kdyno.understand.coverage.executions import executions
from tests.e2e.conftest import Kdyno
from tests.e2e.test_feedback import COMPILED, image, ratios

pytestmark = pytest.mark.long

LOAD = Load(tests=("lat_syscall", "lat_pipe"))
SYSTEM_CALL = "__x64_sys_"


def counted(kdyno: Kdyno, compiler: str) -> str:
    text = COMPILED.replace("clang-19", compiler).replace('["autofdo"]', '"pgo"')
    return kdyno.experiment(f"counted-{compiler}", text, baseline="plain", blocks=2)


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
def test_a_kernel_is_compiled_by_what_it_counted(kdyno: Kdyno, state: Path, compiler: str) -> None:
    path = counted(kdyno, compiler)
    record = image(kdyno, path, "tuned")
    directory = state / "images" / record["key"]
    made = read_records(directory / "delegation.jsonl")
    assert {"fs/read_write.c", "fs/pipe.c", "kernel/sched/core.c"} <= {
        made_object.source for made_object in made.objects if made_object.profiles
    }
    assert "CONFIG_GCOV_KERNEL=y" not in (directory / "config").read_text(), "the tuned kernel doesn't count"
    symbols = [line.split() for line in (directory / "System.map").read_text().splitlines()]
    addresses = {name: int(address, 16) for address, _, name in symbols}
    hot = sorted(abs(addresses[name] - addresses["vfs_read"]) for name in ("vfs_write", "ksys_read"))
    assert hot[-1] < abs(addresses["kernel_restart"] - addresses["vfs_read"]), "what is hot lies together"
    cycles = ratios(kdyno, path)
    assert cycles["lat_pipe"] < 1 and cycles["lat_syscall.stat"] < 1, "fewer modelled cycles, the same in every run"
    again = json.loads(kdyno("plan", path, "--json").stdout)
    assert (again["training_boots"], again["boots"]) == (0, []), "the second time nothing is done"


def test_the_kernel_counts_the_system_calls_that_the_emulated_pmu_counts(
    kdyno: Kdyno, state: Path, tmp_path: Path
) -> None:
    """A boot with both, of the kernel that clang instrumented. Functions with one counter, that of their entry, which
    no other function has inlined: system calls. The PMU sees the whole boot, counters end with the last snapshot.
    """
    kernel = counting_kernel(image(kdyno, counted(kdyno, "clang-19"), "tuned"), State(state))
    machine = pmu_machine("edges", "znver4", LOAD, state=State(state), talk=Talk(quiet=True))
    job = pmu_job(machine.describe(), LOAD).model_copy(update={"counters": ClangCounters()})
    (tmp_path / "boot").mkdir()
    order = BootRequest("both", kernel, (), job, 1).order(tmp_path / "boot")
    end = machine.boot(order)
    assert end.status == "ok" and end.pmu and end.counters, end.reason
    own = own_counts(kernel, order.job.counters.address, end.counters)  # type: ignore[union-attr]
    emulated = emulated_entries(kernel, end.pmu, own)
    assert all(own[name] <= emulated[name] for name in own)
    apart = {name: (own[name], emulated[name]) for name in own if own[name] != emulated[name]}
    ran = [name for name in own if emulated[name]]
    print(f"{len(ran)} of {len(own)} system calls ran, {sum(own.values()):,} times; after the last snapshot: {apart}")
    assert own[f"{SYSTEM_CALL}getppid"] > 1000 and f"{SYSTEM_CALL}getppid" not in apart
    assert len(ran) > 12 and len(apart) < len(ran) / 3
    assert sum(after - before for before, after in apart.values()) < sum(own.values()) / 20


def counting_kernel(tuned: dict[str, Any], state: State) -> Image:
    """The image that was booted to train another."""
    provenance = state.inputs / f"{tuned['inputs']['pgo']}.json"
    return load_image(json.loads(provenance.read_text())["image"], state)


def own_counts(kernel: Image, start: int, snapshots: Path) -> dict[str, int]:
    """What the last snapshot says of each system call with one counter."""
    [contents] = read_snapshots(snapshots).items.values()
    functions = counted_functions(kernel.vmlinux)
    counts = iter(counts_of(functions, start, contents[-1]).tolist())
    own = {function.name: [next(counts) for _ in range(function.counters)] for function in functions}
    return {name: counts[0] for name, counts in own.items() if name.startswith(SYSTEM_CALL) and len(counts) == 1}


def emulated_entries(kernel: Image, pmu: Path, names: dict[str, int]) -> dict[str, int]:
    """How often the first instruction of each of these functions was executed in the whole boot."""
    record = read_pmu_record(pmu)
    executed = executions(record, list(record.regions.values()), CONTEXTS, Code(kernel.vmlinux), with_boot=True)
    symbols = [line.split() for line in output(["nm", "--defined-only", kernel.vmlinux]).splitlines()]
    addresses = {name: int(address, 16) for address, _, name in symbols}
    entries = executed.at(np.array([addresses[name] for name in names], np.uint64))
    return dict(zip(names, entries.tolist(), strict=True))
