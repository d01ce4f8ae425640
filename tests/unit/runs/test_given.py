"""Built kernels, and what the workload asks of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.metal.settings import MetalConfig
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.recipe import Recipe
from kdyno.measure.workload.programs import ProgramsWorkload
from kdyno.runs import given
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.given import KernelUnfitForWorkload, given_plans

VARIANTS = {"debian": Recipe(image="/boot/vmlinuz")}


@pytest.fixture(autouse=True)
def _a_distributions_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its modules are on the machine that it is for, and not known here."""
    asked = {"NET": "y", "UNIX": "y", "BLOCK": "y", "SQUASHFS": "m", "OVERLAY_FS": "m"}
    plan = SimpleNamespace(
        asked=asked, record=SimpleNamespace(modules=()), source=SimpleNamespace(origin="/boot/vmlinuz")
    )
    monkeypatch.setattr(given, "plan_given", lambda *_: plan)


def experiment(machine: MetalConfig | QemuConfig) -> Experiment:
    workload = ProgramsWorkload(use=("nginx",)).located(Path())
    return Experiment(name="x", baseline="debian", variants=VARIANTS, machine=machine, workload=workload)


def test_a_box_has_its_own_root_and_its_modules(state: State) -> None:
    plans = given_plans(experiment(MetalConfig(host="box7")), VARIANTS, state, Talk(quiet=True))
    assert plans.keys() == VARIANTS.keys()


def test_a_guest_needs_what_its_root_file_system_needs(state: State) -> None:
    with pytest.raises(KernelUnfitForWorkload, match=r"CONFIG_SQUASHFS=y \(here: m\)"):
        given_plans(experiment(QemuConfig(lane="wall")), VARIANTS, state, Talk(quiet=True))
