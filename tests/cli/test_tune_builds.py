"""`kdyno tune SPACE.toml` on toy kernels: real builds that fail or fill the disk, and boots that are replayed."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from kdyno.boot.base import Description
from kdyno.boot.fake import FakeMachine
from kdyno.kernel import build
from kdyno.tune.space.record import SearchRecord
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import BLOCKS
from tests.cli.test_tune_space import longer
from tests.unit.kernel_toy import toy_tree

REPLAYED = FakeMachine.describe
SPACE = """\
name = "toy"
source = "linux"
config = "make:tinyconfig"
baseline = "baseline"
blocks = 2
[variants.baseline]
[machine]
type = "fake"
recording = "recording"
[space.knobs]
"kconfig.PLANTED_1" = {{ choices = [false, true], risk = "none" }}
"kconfig.PLANTED_2" = {{ choices = [false, true], risk = "none" }}
"kconfig.FAKE_BREAK" = {{ choices = [false, true], risk = "none" }}
[search]
recipes = {recipes}
{search}
"""
CODE = (
    "#ifdef CONFIG_PLANTED_1\nint planted;\n#endif\n",
    '#ifndef CONFIG_PLANTED_2\nint large(int x)\n{\n\tasm(".skip 4096");\n\treturn x;\n}\n#endif\n',
)
"""The second symbol makes the text smaller."""
GAIN_BY_SYMBOL = {"PLANTED_1": -10.0, "PLANTED_2": 3.0}


class ToySpace:
    """A space over symbols of the toy kernel, the third of which breaks the build; recipes are replayed by name."""

    def __init__(self, lab: Lab) -> None:
        self.lab, self.tree = lab, toy_tree(lab.directory)
        kconfig, code = self.tree / "fs/Kconfig", self.tree / "fs/open.c"
        for number, lines in enumerate(CODE, start=1):
            symbol = f"PLANTED_{number}"
            kconfig.write_text(f'{kconfig.read_text()}\nconfig {symbol}\n\tbool "planted"\n')
            code.write_text(code.read_text() + lines)
        for one, two in ((1, 0), (0, 1), (1, 1)):
            chosen = [symbol for symbol, is_on in zip(GAIN_BY_SYMBOL, (one, two), strict=True) if is_on]
            name = "-".join(f"kconfig.{symbol}-y" for symbol in chosen)
            self.lab.recording.add(name, longer(sum(GAIN_BY_SYMBOL[symbol] for symbol in chosen)))

        for variant in self.lab.recording.directory.iterdir():
            for block in BLOCKS:  # a confirmation has a block for each of six link orders
                shutil.copytree(variant / str(block), variant / str(block + len(BLOCKS)))

    def tune(self, *words: str, recipes: int = 8, search: str = "") -> CommandResult:
        path = self.lab.directory / "space.toml"
        path.write_text(SPACE.format(recipes=recipes, search=search))
        return self.lab("tune", str(path), *words)

    def images(self) -> set[str]:
        return {path.parent.name for path in (self.lab.state / "images").glob("*/image.json")}

    def trials(self) -> SearchRecord:
        [file] = (self.lab.state / "searches").iterdir()
        return SearchRecord.model_validate_json(file.read_text())


@pytest.fixture
def toy(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> ToySpace:
    """The machine replays boots, but builds the kernel of each."""

    def describe(machine: FakeMachine) -> Description:
        return replace(REPLAYED(machine), needs_images=True)

    monkeypatch.setattr(FakeMachine, "describe", describe)
    monkeypatch.setattr(build, "NEEDED_MB", 0)
    return ToySpace(lab)


def result_of(done: CommandResult) -> dict[str, Any]:
    assert done.status == 0, done.err
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def test_recipes_that_do_not_build_are_left_out_with_the_compilers_reason(toy: ToySpace) -> None:
    found = result_of(toy.tune("--json", "--no-confirm"))
    assert {recipe["name"] for recipe in found["recipes"]} == {
        "kconfig.PLANTED_1=y",
        "kconfig.PLANTED_2=y",
        "kconfig.PLANTED_1=y, kconfig.PLANTED_2=y",
    }
    assert found["recipes"][0]["name"] == "kconfig.PLANTED_1=y"
    assert len(found["failures"]) == 4
    for failure in found["failures"]:
        assert failure["stage"] == "build"
        assert "kconfig.FAKE_BREAK=y" in failure["name"] and "undeclared_file" in failure["reason"]


@pytest.mark.parametrize(
    ("objectives", "winner"),
    [('["speed", "text"]', "kconfig.PLANTED_1=y"), ('["text", "speed"]', "kconfig.PLANTED_1=y, kconfig.PLANTED_2=y")],
)
def test_the_best_recipe_is_that_of_the_first_objective(toy: ToySpace, objectives: str, winner: str) -> None:
    found = result_of(toy.tune("--json", search=f"objectives = {objectives}"))
    assert found["winner"] == winner
    front = {recipe["name"] for recipe in found["recipes"] if recipe["is_on_front"]}
    # The second symbol alone is as small as both, and slower.
    assert front == {"kconfig.PLANTED_1=y", "kconfig.PLANTED_1=y, kconfig.PLANTED_2=y"}
    if "text" in found["objectives"][0]:
        assert "has the smallest text: -9" in found["claim"] and found["claim"].endswith("%, better")


def test_a_baseline_that_does_not_build_ends_the_search_before_any_trial(toy: ToySpace) -> None:
    code = toy.tree / "fs/open.c"
    code.write_text(code.read_text() + "#error broken\n")
    done = toy.tune()
    assert (done.status, "the baseline baseline doesn't build: " in done.err) == (1, True), done.err
    assert not list((toy.lab.state / "searches").iterdir())


def test_a_disk_that_fills_up_amid_builds_ends_in_one_message_and_the_same_command_goes_on(toy: ToySpace) -> None:
    """The compiler writes to a full disk as soon as a file is there, which a boot of the second recipe makes."""
    full = toy.lab.directory / "full"
    makefile = toy.tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("$(if $(CONFIG_FAKE_DISK_FULL)", f"$(if $(wildcard {full})"))
    orders = toy.lab.on_boot([])
    replayed = FakeMachine.boot

    def boot(machine: FakeMachine, order: Any) -> Any:
        if len(toy.images()) == 3:
            full.touch()
        return replayed(machine, order)

    toy.lab.patch.setattr(FakeMachine, "boot", boot)
    done = toy.tune("--no-confirm")
    assert done.status == 3
    [error] = [line for line in done.err.splitlines() if line.startswith("kdyno: ")]
    assert error == f"kdyno: the disk that holds {toy.lab.state}/builds is full"
    before = toy.trials()
    assert 2 <= len(before.trials) < 7
    assert not any("full" in trial.reason.lower() for trial in before.trials)
    full.unlink()
    toy.lab.patch.setattr(FakeMachine, "boot", replayed)
    orders.clear()
    found = result_of(toy.tune("--json", "--no-confirm"))
    assert toy.trials().trials[: len(before.trials)] == before.trials
    assert len(found["recipes"]) + len(found["failures"]) == 7
    measured = {"-".join(f"{key}-y" for key in trial.values) for trial in before.trials if trial.is_ok}
    assert measured and not measured & {order.variant for order in orders}


def test_the_oldest_images_go_first_when_the_budget_is_used_up_also_those_of_an_earlier_command(
    toy: ToySpace,
) -> None:
    budget = "images_gb = 0.000001"
    toy.tune("--no-confirm", recipes=3, search=budget)
    first = toy.images()
    found = result_of(toy.tune("--json", "--no-confirm", search=budget))
    assert len(found["recipes"]) == 3
    # The baseline's image stays; of the others the last one, which no further build removed.
    assert len(toy.images() & first) == 1
    assert len(toy.images()) == 2
