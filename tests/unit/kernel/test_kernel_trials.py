"""Trials on the toy kernel: one object directory for images that are asked for one after the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.build import BuildFailed, build
from kdyno.kernel.delegation.plan_file import DelegationPlan, DelegationRule
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.kernel.trials import open_trials
from tests.unit.kernel_toy import no_progress, plan


@pytest.fixture(autouse=True)
def _no_ccache(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_DISABLE", "1")


def planned(source: KernelSource, state: State, flag: str | None = None, layout: int | None = None) -> BuildPlan:
    rules = (DelegationRule(files=("fs/open.c",), add=(flag,)),) if flag else ()
    return plan(Recipe(delegation=DelegationPlan(rule=rules), layout_seed=layout), source, state)


def vmlinux(plan: BuildPlan, state: State) -> bytes:
    return (state.images / plan.key / "vmlinux").read_bytes()


def compiled(lines: list[str]) -> list[str]:
    return sorted(line.split()[-1] for line in lines if line.split()[:1] == ["CC"])


def test_a_later_image_compiles_only_what_is_chosen_otherwise(source: KernelSource, state: State) -> None:
    lines: list[str] = []
    with open_trials(state) as trials:
        trials.build([planned(source, state)], lambda _done, _total, line: lines.append(line))
        assert "fs/open.o" in compiled(lines) and len(compiled(lines)) > 1
        lines.clear()
        [image] = trials.build([planned(source, state, "-O1")], lambda _done, _total, line: lines.append(line))
        assert compiled(lines) == ["fs/open.o"]
    assert image.record.key == planned(source, state, "-O1").key
    assert not list(state.builds.iterdir())


def test_an_image_is_the_same_whatever_was_tried_before_it(tmp_path: Path, source: KernelSource, state: State) -> None:
    wanted = planned(source, state, "-O1")
    with open_trials(state) as trials:
        trials.build([planned(source, state), planned(source, state, "-O3"), wanted], no_progress)
    alone = State(tmp_path / "alone")
    build(planned(source, alone, "-O1"), alone, no_progress)
    assert vmlinux(wanted, state) == vmlinux(wanted, alone)


def test_after_a_trial_that_does_not_compile_the_next_one_is_made_of_what_is_there(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    with open_trials(state) as trials:
        trials.build([planned(source, state)], no_progress)
        with pytest.raises(BuildFailed):
            trials.build([planned(source, state, "-fno-such-flag")], no_progress)
        [image] = trials.build([planned(source, state, "-O1")], no_progress)
    alone = State(tmp_path / "alone")
    [other] = [build(planned(source, alone, "-O1"), alone, no_progress)]
    assert (image.directory / "vmlinux").read_bytes() == (other.directory / "vmlinux").read_bytes()


def test_a_first_trial_that_does_not_compile_leaves_a_directory_for_the_second(
    source: KernelSource, state: State
) -> None:
    with open_trials(state) as trials:
        with pytest.raises(BuildFailed):
            trials.build([planned(source, state, "-fno-such-flag")], no_progress)
        [image] = trials.build([planned(source, state)], no_progress)
    assert image.record.steps > 0


def test_images_that_are_there_need_no_object_directory(source: KernelSource, state: State) -> None:
    build(planned(source, state), state, no_progress)
    lines: list[str] = []
    with open_trials(state) as trials:
        trials.build([planned(source, state)], lambda _done, _total, line: lines.append(line))
        assert not list(state.builds.iterdir())
    assert lines == []
