"""What a boot and a run are known by."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kdyno.boot.base import Limits
from kdyno.kernel.recipe import Recipe
from kdyno.run.prepare import Prepared
from kdyno.run.run_plan import RunPlan, plan_run
from tests.unit.run.test_forecast import prepared


def changed(of: Prepared, **settings: Any) -> Prepared:
    return replace(of, experiment=of.experiment.model_copy(update=settings))


def in_lane(lane: str, **facts: Any) -> Prepared:
    of = prepared()
    about = replace(of.about, lane=lane, facts={"type": "qemu", **facts}, host={"cpu": "a"})  # type: ignore[arg-type]
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
        plan_run(replace(of, about=replace(of.about, limits=Limits(total=1.0)))),
        plan_run(of, repeat=1),
    ]
    assert [shared(plan_run(of), other) for other in others] == [0] * len(others)
    assert plan_run(of).keys["plain", 0] != plan_run(of).keys["off", 0]  # one image, two command lines
