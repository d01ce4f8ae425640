"""CPU families on a real tree, with real compilers and a real QEMU."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.boot.base import CpuLacks
from kdyno.boot.cpu_flags import CpuUnusable
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.build import check_configuration, plan_build
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource, fetch
from tests.e2e.conftest import ROOT, Kdyno

V3 = ("cx16", "popcnt", "abm", "bmi1", "bmi2", "movbe")


@pytest.fixture(scope="session")
def source(state: Path) -> KernelSource:
    return fetch("debian:linux-source-6.12", State(state), print)


def test_the_patch_goes_in_every_family_can_be_chosen_and_the_code_is_that_of_kcflags(source: KernelSource) -> None:
    """`git am`, olddefconfig for some families, then the scheduler through Kconfig and through KCFLAGS."""
    words = ["--config", "tinyconfig", "--march", "znver3", "--target", "kernel/sched/"]
    words += ["--select", "x86-64-v2,x86-64-v3,k8,haswell,znver3,znver6,penryn,novalake"]
    tool = [sys.executable, str(ROOT / "tools" / "try-march"), str(source.tree)]
    done = subprocess.run([*tool, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "olddefconfig: 5 kept, 3 not to be had" in done.stdout
    assert "all is well" in done.stdout and ", 0 differ by KCFLAGS" in done.stdout


def test_a_recipe_that_goes_through_the_patch_gets_its_symbol(source: KernelSource, state: Path) -> None:
    plan = plan_build(Recipe(march="patch:x86-64-v3"), source, "dyno", State(state))
    assert plan.needs == V3 and "march=x86-64-v3" not in " ".join(plan.make)
    check_configuration(plan, State(state))


def test_qemu_is_asked_what_its_cpus_really_have() -> None:
    QemuMachine(QemuConfig()).require_cpu(V3, "x")
    old = QemuMachine(QemuConfig(cpu="Nehalem"))
    old.require_cpu(("cx16", "popcnt"), "x")
    with pytest.raises(
        CpuLacks, match=r"^x needs a CPU with abm, bmi1, bmi2, movbe, which the machine's \(Nehalem\) lacks"
    ):
        old.require_cpu(V3, "x")
    with pytest.raises(CpuLacks, match="needs a CPU with no_such_flag"):
        old.require_cpu(("no_such_flag",), "x")
    with pytest.raises(CpuUnusable, match="unable to find CPU model 'Nehalemm'"):
        QemuMachine(QemuConfig(cpu="Nehalemm")).require_cpu(V3, "x")


def test_a_kernel_for_a_newer_cpu_is_refused_before_anything_is_built(kdyno: Kdyno) -> None:
    text = """
[variants.plain]
[variants.new]
march = "x86-64-v3"
[machine]
cpu = "Nehalem"
"""
    path = kdyno.experiment("refused", text, baseline="plain", blocks=2)
    errors = kdyno("run", path, status=1).stderr
    assert "variant new needs a CPU with abm, bmi1, bmi2, movbe" in errors and "building" not in errors


def test_what_auto_became_is_said_with_the_reason(kdyno: Kdyno) -> None:
    path = kdyno.experiment("auto", '[variants.plain]\n[variants.here]\nmarch = "auto"\n', baseline="plain", blocks=2)
    assert "note: here: march=auto is " in kdyno("plan", path).stderr
