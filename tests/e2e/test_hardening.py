"""The dyno configuration protects a real kernel as `make defconfig` does."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import kconfig
from kdyno.kernel.build import check_configuration, plan_build
from kdyno.kernel.hardening import candidates, protections, table
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.make import build_workspace
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource, fetch


@pytest.fixture(scope="module")
def source(state: Path) -> KernelSource:
    return fetch("debian:linux-source-6.12", State(state), print)


def final_config(plan: BuildPlan, state: State) -> dict[str, str]:
    """What a build of this plan would be configured as."""
    with state.lock(f"image-{plan.objects_key}"), build_workspace(plan, state) as work:
        for command in kconfig.steps(plan.base, plan.asks, work.objects, work.make):
            work.run(command)
        return read_config((work.objects / ".config").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def defconfig(source: KernelSource, state: Path) -> dict[str, str]:
    return final_config(plan_build(Recipe(), source, "make:defconfig", State(state)), State(state))


def test_every_hardening_that_defconfig_has_on_dyno_has_on_unless_the_list_says_why_not(
    source: KernelSource, state: Path, defconfig: dict[str, str]
) -> None:
    left = {option for option, row in table().items() if row.dyno == "left"}
    dyno = final_config(plan_build(Recipe(), source, "dyno", State(state)), State(state))
    protecting = {option for option in candidates(source.tree) if defconfig.get(option) == "y"}
    assert len(protecting) > 40
    assert {option for option in protecting if dyno.get(option) != "y"} == left
    listed_as_on = {protection.option for protection in protections(dyno) if protection.dyno == "on"}
    assert listed_as_on == {protection.option for protection in protections(dyno) if protection.state == "on"}


def test_the_record_for_the_fast_test_is_what_defconfig_says(
    source: KernelSource, data: Path, defconfig: dict[str, str]
) -> None:
    recorded = read_config((data / "kconfig" / "hardening-6.12.config").read_text(encoding="utf-8"))
    assert set(recorded) == {option for option in candidates(source.tree) if defconfig.get(option) == "y"}


@pytest.mark.parametrize("toolchain", ["gcc", "clang-19"])
def test_either_compiler_takes_all_that_dyno_asks_for(source: KernelSource, state: Path, toolchain: str) -> None:
    plan = plan_build(Recipe(toolchain=toolchain), source, "dyno", State(state))
    assert check_configuration(plan, State(state)) == ()


def test_who_turns_the_mitigations_off_gets_no_note_for_each_of_them(source: KernelSource, state: Path) -> None:
    recipe = Recipe(kconfig={"CPU_MITIGATIONS": False, "STACKPROTECTOR": False, "RELOCATABLE": False})
    assert check_configuration(plan_build(recipe, source, "dyno", State(state)), State(state)) == ()
