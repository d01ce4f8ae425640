"""What a boot and a run are known by."""

from __future__ import annotations

import os
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdyno.boot.base import BootLimits
from kdyno.boot.guest_root import GuestRoot
from kdyno.boot.initramfs import initramfs
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.images import content_digest
from kdyno.kernel.recipe import Recipe
from kdyno.measure.guest.job import Job, Program
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.keys import boot_key
from kdyno.runs.prepare import Prepared
from kdyno.runs.run_plan import RunPlan, plan_run
from tests.unit.fake_qemu import FakeQemu
from tests.unit.runs.test_forecast import prepared


def changed(of: Prepared, **settings: Any) -> Prepared:
    return replace(of, experiment=of.experiment.model_copy(update=settings))


def in_lane(lane: str, **facts: Any) -> Prepared:
    of = prepared()
    about = replace(of.about, lane=lane, facts={"type": "qemu", **facts}, host={"cpu": "a"})
    return replace(of, about=about)


def shared(one: RunPlan, two: RunPlan) -> int:
    """How many boots both have."""
    return len(set(one.keys.values()) & set(two.keys.values()))


@pytest.mark.parametrize("lane", ["model", "wall"])
def test_more_blocks_keep_the_boots_that_there_are(lane: str) -> None:
    of = in_lane(lane)
    few, more = plan_run(of), plan_run(changed(of, blocks=8))
    assert few.id != more.id
    assert set(few.keys.values()) < set(more.keys.values())


def test_a_record_has_the_experiment_with_the_machine_that_was_chosen() -> None:
    of = prepared()
    assert of.recorded == of.experiment.model_dump_json()
    chosen = replace(of, settings=QemuConfig(platform="q35"))
    recorded = Experiment.model_validate_json(chosen.recorded)
    assert recorded == of.experiment.model_copy(update={"machine": QemuConfig(platform="q35")})


@pytest.mark.parametrize("lane", ["model", "wall"])
def test_how_a_run_is_judged_and_called_decides_no_boot(lane: str) -> None:
    of = in_lane(lane)
    judged = changed(of, name="other", baseline="fast", judge=of.experiment.judge.model_copy(update={"margin": 0.02}))
    assert plan_run(of).id != plan_run(judged).id
    assert plan_run(of).keys == plan_run(judged).keys


def test_in_the_model_lane_a_boot_belongs_to_no_run() -> None:
    of = in_lane("model")
    fewer = {name: recipe for name, recipe in of.experiment.variants.items() if name != "off"}
    assert set(plan_run(changed(of, variants=fewer)).keys.values()) < set(plan_run(of).keys.values())
    assert plan_run(of).keys == plan_run(replace(of, about=replace(of.about, host={"cpu": "b"}))).keys


def test_in_the_wall_lane_it_belongs_to_its_host_and_to_those_that_it_took_turns_with() -> None:
    of = in_lane("wall")
    fewer = {name: recipe for name, recipe in of.experiment.variants.items() if name != "off"}
    assert shared(plan_run(of), plan_run(changed(of, variants=fewer))) == 0
    assert shared(plan_run(of), plan_run(replace(of, about=replace(of.about, host={"cpu": "b"})))) == 0
    assert len(set(plan_run(of).keys.values())) == len(plan_run(of).boots)


def test_in_the_model_lane_variants_that_are_the_same_share_their_boots() -> None:
    of = in_lane("model")
    twins = changed(of, variants={"one": Recipe(toolchain="gcc-12"), "two": Recipe(toolchain="gcc-12")})
    twins = replace(twins, plans=dict.fromkeys(("one", "two"), of.plans["plain"]))
    plan = plan_run(twins)
    assert len(plan.boots_of(boot.cell for boot in plan.boots)) == len(plan.boots) / 2
    own = plan_run(changed(twins, seeds="own"))
    assert len(set(own.keys.values())) == len(own.boots)


@pytest.mark.parametrize("lane", ["model", "wall"])
def test_seed_job_machine_limits_command_line_and_repeat_decide_a_boot(lane: str) -> None:
    of = in_lane(lane)
    others = [
        plan_run(changed(of, seed=2)),
        plan_run(replace(of, job=of.job.model_copy(update={"iterations": 8}))),
        plan_run(in_lane(lane, qemu="10")),
        plan_run(replace(of, about=replace(of.about, limits=BootLimits(total=1.0)))),
        plan_run(of, repeat=1),
    ]
    assert [shared(plan_run(of), other) for other in others] == [0] * len(others)
    assert plan_run(of).keys["plain", 0] != plan_run(of).keys["off", 0]  # one image, two command lines


@pytest.mark.parametrize("program", ["kdyno-agent", "busybox", "kdyno-loads", "root.squashfs"])
def test_another_build_of_any_program_that_a_guest_is_given_is_another_boot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    FakeQemu(tmp_path, monkeypatch)
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    for name in ("kdyno-agent", "busybox", "kdyno-loads"):
        (tmp_path / name).write_text(f"#!/bin/sh\necho {name}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "root.squashfs").write_text("a root\n")
    programs = (Program(name="x", command=("sh", "-c", "kdyno-loads sieve"), in_root=True),)
    job = Job(lane="model", icount_shift=5, iterations=1, programs=programs)

    def guest() -> tuple[bytes, str]:
        machine, squashfs = QemuMachine(QemuConfig()), tmp_path / "root.squashfs"
        machine._root = GuestRoot(squashfs, content_digest(squashfs), ())
        key = boot_key("image", (), job, machine.describe(), seed=1, replicate={})
        return initramfs(machine._tools, job, squashfs), key

    before, same = guest(), guest()
    with (tmp_path / program).open("a") as file:
        file.write("# another build\n")
    os.utime(tmp_path / program, ns=(1, 1))
    after = guest()
    assert before == same and after[0] != before[0] and after[1] != before[1]


def test_another_kdyno_loads_is_no_other_boot_of_a_job_that_does_not_run_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    of = prepared()
    key = boot_key("image", (), of.job, of.about, seed=1, replicate={})
    monkeypatch.setattr(sysconfig, "get_path", lambda _name: str(tmp_path))
    assert boot_key("image", (), of.job, of.about, seed=1, replicate={}) == key


def test_a_directory_that_a_guest_may_read_is_part_of_the_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    FakeQemu(tmp_path, monkeypatch)
    (tmp_path / "other").mkdir()
    shares = (None, tmp_path, tmp_path / "other")
    about = [QemuMachine(QemuConfig(share=share)).describe() for share in shares]
    keys = {boot_key("image", (), prepared().job, one, seed=1, replicate={}) for one in about}
    assert len(keys) == 3
