"""`confirm = "silicon"`: the experiment on this processor, and what it can't have there. Nothing is built or booted."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdyno.base.errors import UserError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.registry import default_machine
from kdyno.kernel import paths as kernel_paths
from kdyno.kernel.build import BuildPlan
from kdyno.kernel.paths import NoUserModeLinux
from kdyno.kernel.recipe import Recipe
from kdyno.measure.paths.table import paths
from kdyno.runs import silicon_kernels
from kdyno.runs.experiment.errors import NotToConfirm
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.resolve import experiment_of, load_experiment
from kdyno.runs.given import BuiltKernelIsNotAProgram
from kdyno.runs.images import Plans
from kdyno.runs.prepare import prepare
from kdyno.runs.session import Session
from kdyno.runs.silicon import BLOCKS, offer, on_silicon
from kdyno.runs.silicon_kernels import build_on_silicon, plan_on_silicon
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.unit.experiment_files import MINIMAL, written
from tests.unit.kernel_toy import toy_tree

CONFIRMED = 'confirm = "silicon"\n' + MINIMAL
TRAINED = """
blocks = "auto"
layouts = 6
[variants.plain]
opt = "O2"
[variants.tuned]
extends = "plain"
toolchain = "clang-19"
profile = { use = ["autofdo"] }
[variants.own]
kconfig = { HZ_100 = true }
[workload]
type = "programs"
use = ["redis"]
[judge]
looks = 3
margin = 0.02
"""


def confirmed(text: str = "", **changes: Any) -> Experiment:
    whole = CONFIRMED.replace("[variants.plain]\n", text or "[variants.plain]\n")
    return experiment_of(whole, Path("/nowhere/experiment.toml")).model_copy(update=changes)


def test_the_experiment_on_silicon_has_the_same_recipes_seeds_and_inputs_and_another_machine() -> None:
    experiment = confirmed(TRAINED)
    other = on_silicon(experiment)
    assert (other.name, other.blocks, other.auto, other.layouts) == ("small-on-silicon", BLOCKS, False, 6)
    assert (other.source, other.seed, other.seeds) == (experiment.source, experiment.seed, experiment.seeds)
    assert (other.config, other.machine, other.confirm) == ("paths", default_machine("kernel"), None)
    assert (other.judge.margin, other.judge.looks) == (0.02, 1)
    assert other.variants["tuned"].profile == experiment.variants["tuned"].profile
    names = other.workload.benchmark_names()
    assert len(names) > 40 and {paths()[name].kind for name in names} == {"path"}
    assert Experiment.model_validate_json(other.model_dump_json()) == other
    settled = experiment.model_copy(update={"auto": False, "pilot": "4 blocks are enough", "blocks": 4})
    recorded = Experiment.model_validate_json(settled.model_dump_json())
    assert on_silicon(recorded) == other


def test_symbols_that_only_programs_need_are_left_out_and_those_of_a_variant_stay() -> None:
    experiment = confirmed(TRAINED)
    assert "NET" in experiment.variants["own"].kconfig
    assert on_silicon(experiment).variants["own"].kconfig == {"HZ_100": True}
    assert on_silicon(experiment).variants["tuned"].kconfig == {}


def test_a_long_name_stays_one() -> None:
    long = on_silicon(confirmed(name="x" * 80))
    assert Experiment.model_validate_json(long.model_dump_json()).name == f"{'x' * 69}-on-silicon"


@pytest.mark.parametrize(
    ("machine", "why"),
    [('type = "uml"', "the machine `uml` is this processor already"), ('type = "local"', "`local` builds no kernels")],
)
def test_what_cannot_be_confirmed_is_refused_with_its_line(tmp_path: Path, machine: str, why: str) -> None:
    text = f"{CONFIRMED}[machine]\n{machine}\n"
    with pytest.raises(NotToConfirm, match=rf"experiment.toml:1: .*{why}"):
        load_experiment(written(tmp_path, text))
    recorded = confirmed().model_copy(update={"machine": default_machine("kernel")})
    with pytest.raises(ValueError, match="this processor already"):
        Experiment.model_validate_json(recorded.model_dump_json())


def test_a_processor_is_offered_where_the_gain_of_a_profile_is_modelled() -> None:
    trained = confirmed(TRAINED, confirm=None)
    assert offer(trained) == (
        'note: `confirm = "silicon"` in the experiment would ask this processor: 3 more builds and a minute'
    )
    assert offer(confirmed(TRAINED)) == ""
    assert offer(confirmed(confirm=None)) == ""
    wall = trained.machine.model_copy(update={"lane": "wall"})
    assert offer(trained.model_copy(update={"machine": wall})) == ""


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The toy with the files that the paths hook into."""
    place = toy_tree(tmp_path)
    for name in kernel_paths.HOOKS:
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("# first\n# last\n")
    for name in (*kernel_paths.INTERRUPTS, kernel_paths.SIGNALS):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text("")
    with (place / "Kconfig").open("a") as kconfig:
        kconfig.write('source "init/Kconfig"\n')
    monkeypatch.setattr(kernel_paths, "_nouser", lambda _release: "")
    return place


VARIANTS = {
    "plain": Recipe(opt="O2"),
    "fast": Recipe(opt="O3", config="dyno"),
    "off": Recipe(cmdline=("mitigations=off",)),
    "other": Recipe(config="make:defconfig"),
    "built": Recipe(image="/boot/vmlinuz"),
    "unknown": Recipe(kconfig={"NO_SUCH_SYMBOL": True}),
}


def with_variants(tree: Path, variants: dict[str, Recipe]) -> Experiment:
    return Experiment(name="x", source=str(tree), baseline="plain", variants=variants, confirm="silicon")


def test_variants_that_cannot_be_had_are_named_with_the_reason(tree: Path, state: State) -> None:
    plan = plan_on_silicon(with_variants(tree, VARIANTS), state)
    assert plan.experiment and list(plan.experiment.variants) == ["plain", "fast"]
    assert list(plan.left_out) == ["off", "other", "built", "unknown"]
    assert "mitigations=off, which means nothing to a kernel that is a process" in plan.left_out["off"]
    assert plan.left_out["other"] == "it has a base configuration of its own, for another architecture"
    assert plan.left_out["built"] == "it is a built kernel"
    assert "NO_SUCH_SYMBOL" in plan.left_out["unknown"]


@pytest.mark.parametrize(
    ("machine", "workload", "message"),
    [
        ('type = "uml"', 'type = "paths"\ntests = ["tcp_pin"]', "no path or group of paths is named tcp_pin"),
        ('type = "uml"', 'type = "paths"\ntests = []', "the workload of type `paths` names nothing to measure"),
        ("", "tests = []", "the workload of type `lmbench` names nothing to measure"),
    ],
)
def test_a_workload_without_a_known_path_is_refused_before_a_build_is_planned(
    tmp_path: Path, state: State, capsys: pytest.CaptureFixture[str], machine: str, workload: str, message: str
) -> None:
    text = f"{MINIMAL}[workload]\n{workload}\n[machine]\n{machine}\n"
    with pytest.raises(UserError, match=message):
        prepare(load_experiment(written(tmp_path, text)), state, Talk())
    assert capsys.readouterr().err == ""


def test_without_the_baseline_nothing_can_be_compared(tree: Path, state: State) -> None:
    (tree / "arch/um/Makefile").unlink()
    plan = plan_on_silicon(with_variants(tree, VARIANTS), state)
    assert plan.experiment is None
    assert list(plan.left_out) == ["plain"] and "it can't be built for ARCH=um" in plan.left_out["plain"]


def test_a_kernel_that_does_not_build_is_left_out_and_the_others_are_compared(
    tree: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def build_images(plans: Plans, *_others: object) -> None:
        [(name, [plan])] = plans.items()
        assert isinstance(plan, BuildPlan) and plan.arch_name == "um"
        if name == "bad":
            raise NoUserModeLinux(source="x", file="y")
        built.append(name)

    monkeypatch.setattr(silicon_kernels, "build_images", build_images)
    variants = {"bad": Recipe(opt="O1"), "fast": Recipe(opt="O3"), "plain": Recipe()}
    with Store(sqlite_file(state.store_file)) as store:
        plan = build_on_silicon(with_variants(tree, variants), Session(state, store, Talk(quiet=True)))
    assert built == ["plain", "fast"]
    assert plan.experiment and list(plan.experiment.variants) == ["fast", "plain"]
    assert list(plan.left_out) == ["bad"]


def test_a_built_kernel_is_refused_before_it_is_fetched(tmp_path: Path, state: State) -> None:
    text = f'{MINIMAL}image = "debian:linux-image-amd64"\n[machine]\ntype = "uml"\n'
    with pytest.raises(BuiltKernelIsNotAProgram, match="plain is the built kernel debian:linux-image-amd64"):
        prepare(load_experiment(written(tmp_path, text)), state, Talk(quiet=True))


def test_a_symbol_that_only_another_architecture_has_is_refused_with_the_architecture(tree: Path, state: State) -> None:
    plan = plan_on_silicon(with_variants(tree, {"plain": Recipe(), "kvm": Recipe(kconfig={"KVM": True})}), state)
    assert "this source has no such symbol for ARCH=um" in plan.left_out["kvm"]


def test_a_workload_without_a_type_is_the_one_that_the_machine_carries_out(tmp_path: Path) -> None:
    text = f'{MINIMAL}[workload]\ntests = ["pipe"]\n[machine]\ntype = "uml"\n'
    assert load_experiment(written(tmp_path, text)).workload.type == "paths"
    assert load_experiment(written(tmp_path, text.replace('"uml"', '"qemu"'))).workload.type == "lmbench"
