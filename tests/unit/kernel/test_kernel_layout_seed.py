"""The seed of a layout: what it decides in a plan, and what it must leave alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from kdyno.base.state import State
from kdyno.kernel import lkd
from kdyno.kernel.arch import UM, X86_64
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel_toy import plan, toy_source


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> State:
    return State(tmp_path_factory.mktemp("plan") / "state")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory, state: State) -> KernelSource:
    return toy_source(tmp_path_factory.mktemp("source"), state)


@pytest.fixture(scope="module")
def plans(source: KernelSource, state: State) -> dict[int | None, BuildPlan]:
    return {seed: plan(Recipe(layout_seed=seed), source, state) for seed in (None, 0, 1)}


def test_every_seed_is_another_image_of_the_same_objects(plans: dict[int | None, BuildPlan]) -> None:
    assert len({plan.key for plan in plans.values()}) == 3
    assert plans[0].objects_key == plans[1].objects_key != plans[None].objects_key


def test_without_a_layout_the_objects_are_the_images_own(plans: dict[int | None, BuildPlan]) -> None:
    assert plans[None].objects_key == plans[None].key
    assert "-ffunction-sections" not in " ".join(plans[None].make)
    assert not any(name.startswith("KDYNO") for name in plans[None].environment)


def test_no_word_of_make_holds_the_seed(plans: dict[int | None, BuildPlan]) -> None:
    assert plans[0].make == plans[1].make
    assert {lkd.LINKER_WORD, "KCFLAGS=-ffunction-sections"} <= set(plans[0].make)
    differ = {name for name in plans[0].environment if plans[0].environment[name] != plans[1].environment[name]}
    assert differ == {"KDYNO_LAYOUT_SEED"}
    assert plans[0].environment["KDYNO_LD"] == "ld"


def test_where_lkd_is_does_not_change_the_key(
    tmp_path: Path,
    plans: dict[int | None, BuildPlan],
    source: KernelSource,
    state: State,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    elsewhere = tmp_path / lkd.BINARY
    elsewhere.write_bytes(b"")
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    assert lkd.find_lkd() == elsewhere
    assert plan(Recipe(layout_seed=1), source, state).key == plans[1].key


def test_another_idea_of_what_a_seed_stands_for_changes_the_key(
    plans: dict[int | None, BuildPlan], source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lkd, "FORMAT", "2")
    changed = plan(Recipe(layout_seed=1), source, state)
    assert changed.key != plans[1].key
    assert changed.objects_key == plans[1].objects_key


@pytest.mark.parametrize(("name", "linker"), [("gcc", "ld"), ("clang-19", "ld.lld-19"), ("clang", "ld.lld")])
def test_the_real_linker_is_the_toolchains(plans: dict[int | None, BuildPlan], name: str, linker: str) -> None:
    toolchain = plans[0].toolchain
    family = name.partition("-")[0]
    named = toolchain.model_copy(
        update={"identity": toolchain.identity.model_copy(update={"name": name, "family": family})}
    )
    assert X86_64.linker(named) == linker
    assert UM.linker(named) == "ld"
    assert lkd.environment(linker)["KDYNO_LD"] == linker


@pytest.mark.parametrize("seed", [-1, 2**63])
def test_a_seed_is_a_number_that_a_toml_file_can_hold(seed: int) -> None:
    with pytest.raises(ValidationError):
        Recipe(layout_seed=seed)
    assert Recipe(layout_seed=2**63 - 1).layout_seed == 2**63 - 1
