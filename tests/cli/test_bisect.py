"""`kdyno bisect` on toy kernels: real builds of commits and patches, and boots that are replayed."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.boot.base import BootEnd, BootOrder, Description
from kdyno.boot.fake import FakeMachine
from kdyno.kernel import build
from kdyno.kernel.recipe import Recipe
from kdyno.measure.guest.stream import AgentReport
from kdyno.tune.bisect.choice import TrialCosts
from kdyno.tune.bisect.culprit import Culprit
from kdyno.tune.bisect.evidence import Check
from kdyno.tune.bisect.recipes import read_recipes
from kdyno.tune.bisect.search import Search
from tests.cli.busy_host import disturb
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import Change, died, slower
from tests.cli.test_golden import check
from tests.unit.kernel_toy import commit, git, toy_repository

REPLAYED = FakeMachine.describe
COMMITS = 16


class ToyRange:
    """A repository of toy kernels with a recording of each; its commits are numbered from 0, the good end."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.tree = toy_repository(lab.directory)
        git(self.tree, "tag", "good")
        self.commits = [git(self.tree, "rev-parse", "HEAD").strip()]
        self.record(self.name(0))

    def name(self, number: int) -> str:
        return self.commits[number][:12]

    def add(
        self,
        percent: int = 0,
        *,
        line: str | None = None,
        changes: tuple[Change, ...] = (),
        file: str = "fs/open.c",
    ) -> None:
        """Commit one more kernel, whose pipes are so many percent slower than at the good end."""
        number = len(self.commits)
        code = f"int change_{number}(void) {{ return {number}; }}" if line is None else line
        with (self.tree / file).open("a", encoding="utf-8") as source:
            source.write(f"{code}\n")
        self.commits.append(commit(self.tree, f"fs: change number {number}"))
        self.record(self.name(number), *([slower("lat_pipe", percent)] if percent else []), *changes)

    def repair(self) -> None:
        """Remove what keeps the kernel from being built; the next commit has that."""
        code = self.tree / "fs/open.c"
        code.write_text(code.read_text().replace("#error broken\n", ""))

    def record(self, variant: str, *changes: Change) -> None:
        """Record one boot of a kernel, which is replayed in every block."""
        place = self.lab.recording.directory / variant
        shutil.copytree(self.lab.recording.directory / "baseline" / "0", place)
        for change in changes:
            change(place)

    def plant(self, culprit: int, percent: int = 2, total: int = COMMITS) -> None:
        """Commit all kernels, from the culprit on slower."""
        for number in range(1, total + 1):
            self.add(percent if number >= culprit else 0)

    def bisect(self, *words: str, named: str | Sequence[str] = "good..main") -> CommandResult:
        """Bisect and print JSON, with two link orders for the check."""
        return self.command(*words, "--json", "--layouts", "2", "--no-revert", named=named)

    def command(self, *words: str, named: str | Sequence[str] = "good..main") -> CommandResult:
        machine = f"fake,recording={self.lab.recording.directory}"
        options = ("--benchmark", "lat_pipe", "--machine", machine, "--config", "make:tinyconfig")
        ranges = (named,) if isinstance(named, str) else named
        return self.lab("bisect", *words, *options, *ranges)

    def masked(self, text: str) -> str:
        """The text with the numbers of commits for their names, which are as wide."""
        for number, name in enumerate(self.commits):
            text = text.replace(name, f"COMMIT-{number}").replace(name[:12], f"COMMIT-{number:05}")
        text = re.sub(r"(explain|bisection) [0-9a-f]{12}", r"\1 ID-123456789", text)
        return re.sub(r"about \d+ (s|min)", "about N s", text)


@pytest.fixture
def replayed(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> ToyRange:
    """The machine replays boots, and builds nothing."""
    made = ToyRange(lab)
    monkeypatch.chdir(made.tree)
    return made


@pytest.fixture
def toy(replayed: ToyRange, monkeypatch: pytest.MonkeyPatch) -> ToyRange:
    """The machine replays boots, but builds the kernel of each."""

    def describe(machine: FakeMachine) -> Description:
        return replace(REPLAYED(machine), needs_images=True)

    monkeypatch.setattr(FakeMachine, "describe", describe)
    monkeypatch.setattr(build, "NEEDED_MB", 0)
    return replayed


def result_of(done: CommandResult) -> dict[str, Any]:
    assert done.out, done.err
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def culprits(done: CommandResult) -> list[list[str]]:
    return [[change["name"] for change in one["changes"]] for one in result_of(done)["culprits"]]


def answers(done: CommandResult) -> dict[str, str]:
    return {kernel["name"]: kernel["answer"] for kernel in result_of(done)["kernels"]}


def test_the_commit_that_made_pipes_slower_is_found_and_checked(toy: ToyRange) -> None:
    toy.plant(11)
    done = toy.command("--json", "--no-revert")
    assert done.status == 0, done.err
    found = result_of(done)
    assert culprits(done) == [[toy.name(11)]]
    assert (found["verdict"], found["builds"]) == ("found", 6)
    [culprit] = found["culprits"]
    assert culprit["confirmed"] and culprit["layouts"] == 4
    assert culprit["share"] == pytest.approx(1.0, abs=0.05)
    assert culprit["before"] == toy.name(10)
    runs = json.loads(toy.lab("runs", "--json").out)
    assert {run["id"] for run in runs} == set(found["runs"])


def test_a_second_command_repeats_nothing(toy: ToyRange) -> None:
    toy.plant(5, total=8)
    first = toy.bisect()
    orders = toy.lab.on_boot([])
    second = toy.bisect()
    assert orders == []
    assert "continues: 5 trials on record" in second.err
    assert result_of(second) == result_of(first)


@pytest.mark.parametrize("boots", [1, 9, 14])
def test_a_bisection_that_was_interrupted_continues_and_finds_the_same(toy: ToyRange, boots: int) -> None:
    toy.plant(5, total=8)
    toy.lab.on_boot([*[None] * boots, KeyboardInterrupt()])
    assert toy.bisect().status == 130
    done = toy.bisect()
    assert culprits(done) == [[toy.name(5)]]
    built = [json.loads(path.read_text()) for path in (toy.lab.state / "images").glob("*/image.json")]
    first_orders = [image for image in built if image["recipe"]["layout_seed"] == 1]
    assert len(first_orders) == result_of(done)["builds"]


def test_a_commit_that_does_not_build_is_skipped_and_named(toy: ToyRange) -> None:
    for number in range(1, 9):
        if number == 5:
            toy.repair()
        toy.add(2 if number >= 6 else 0, line="#error broken" if number == 4 else None)
    done = toy.bisect()
    assert culprits(done) == [[toy.name(6)]]
    assert answers(done)[toy.name(4)] == "skipped"
    [reason] = [kernel["reason"] for kernel in result_of(done)["kernels"] if kernel["answer"] == "skipped"]
    assert "doesn't build" in reason and "#error broken" in reason


def test_a_commit_that_is_not_a_kernel_tree_is_skipped(toy: ToyRange) -> None:
    kconfig = (toy.tree / "Kconfig").read_text()
    for number in range(1, 6):
        if number == 3:
            (toy.tree / "Kconfig").unlink()
        if number == 4:
            (toy.tree / "Kconfig").write_text(kconfig)
        toy.add(2 if number >= 5 else 0)
    done = toy.bisect()
    assert culprits(done) == [[toy.name(5)]]
    [skipped] = [kernel for kernel in result_of(done)["kernels"] if kernel["answer"] == "skipped"]
    assert "is not a kernel source tree" in skipped["reason"]


def test_a_culprit_among_commits_that_do_not_build_is_a_set(toy: ToyRange) -> None:
    """Commits 3 and 4 don't build, and one of them or the next is the culprit."""
    for number in range(1, 7):
        if number == 5:
            toy.repair()
        toy.add(2 if number >= 4 else 0, line="#error broken" if number == 3 else None)
    done = toy.bisect()
    assert (done.status, result_of(done)["verdict"]) == (2, "set")
    assert culprits(done) == [[toy.name(3), toy.name(4), toy.name(5)]]
    [culprit] = result_of(done)["culprits"]
    assert culprit["confirmed"] and (culprit["before"], culprit["after"]) == (toy.name(2), toy.name(5))


def test_a_commit_without_an_effect_on_the_code_is_not_booted(toy: ToyRange) -> None:
    for number in range(1, 9):
        toy.add(2 if number >= 7 else 0, line=f"/* remark {number} */" if 2 <= number <= 6 else None)
    orders = toy.lab.on_boot([])
    done = toy.bisect()
    assert culprits(done) == [[toy.name(7)]]
    same = [name for name, answer in answers(done).items() if answer == "same code"]
    assert same and not {order.variant for order in orders} & set(same)


def test_ends_with_the_same_code_are_equal_and_not_booted(toy: ToyRange) -> None:
    toy.add(2, line="/* a remark */")
    orders = toy.lab.on_boot([])
    done = toy.bisect()
    assert (done.status, result_of(done)["verdict"], orders) == (2, "equal", [])
    assert result_of(done)["sentence"].endswith("they have the same code")


def test_the_configuration_that_a_culprit_changes_is_named(toy: ToyRange) -> None:
    toy.add()
    kconfig = toy.tree / "fs/Kconfig"
    kconfig.write_text(kconfig.read_text() + "\nconfig PLANTED\n\tbool\n\tdefault y\n")
    toy.add(2)
    done = toy.bisect()
    assert culprits(done) == [[toy.name(2)]]
    assert result_of(done)["culprits"][0]["config"] == ["PLANTED: absent to y"]


def test_symbols_that_vanish_in_the_range_are_named(toy: ToyRange) -> None:
    kconfig = toy.tree / "fs/Kconfig"
    before = kconfig.read_text()
    kconfig.write_text(before + "\nconfig PLANTED\n\tbool\n\tdefault y\n")
    toy.add()
    kconfig.write_text(before)
    toy.add(2)
    toy.add(2)
    done = toy.bisect(named="HEAD~2..HEAD")
    assert result_of(done)["lost_config"] == ["PLANTED: y to absent"]
    assert result_of(done)["culprits"][0]["config"] == ["PLANTED: y to absent"]


def test_a_culprit_is_reverted_on_top_of_the_bad_end(toy: ToyRange) -> None:
    for number in range(1, 5):
        toy.add(2 if number >= 2 else 0, file="lib/crc32.c" if number == 2 else "fs/open.c")
    toy.record(f"without-{toy.name(2)}")
    done = toy.command("--json", "--layouts", "2")
    [culprit] = result_of(done)["culprits"]
    assert culprit["revert"]["effect"] == pytest.approx(-0.0196, abs=0.001)
    built = [json.loads(path.read_text()) for path in (toy.lab.state / "images").glob("*/image.json")]
    reverted = [image for image in built if image["patches"]]
    assert {image["source"]["identity"] for image in reverted} == {f"git:{toy.commits[4]}"}
    assert {image["recipe"]["layout_seed"] for image in reverted} == {1, 2}


def test_a_culprit_that_cannot_be_reverted_is_named_with_the_reason(toy: ToyRange) -> None:
    toy.plant(2, total=4)
    [culprit] = result_of(toy.command("--json", "--layouts", "2"))["culprits"]
    assert culprit["confirmed"] and culprit["revert"] is None
    assert "doesn't apply to" in culprit["revert_reason"]


# A stack of patches.


@pytest.fixture
def stack(toy: ToyRange) -> ToyRange:
    """Patches of four commits, the third of which makes pipes slower; the second doesn't apply without another."""
    toy.plant(3, total=4)
    git(toy.tree, "format-patch", "-q", "-o", str(toy.lab.directory / "stack"), "good..main")
    git(toy.tree, "reset", "-q", "--hard", "good")
    toy.record("unpatched")
    for number, path in enumerate(stack_of(toy), start=1):
        toy.record(f"{number}-{path.stem}", *([slower("lat_pipe", 2)] if number >= 3 else []))
    return toy


def stack_of(toy: ToyRange) -> list[Path]:
    return sorted((toy.lab.directory / "stack").glob("*.patch"))


def test_the_patch_of_a_stack_that_made_pipes_slower_is_found(stack: ToyRange) -> None:
    done = stack.bisect("--source", ".", named=str(stack.lab.directory / "stack"))
    assert culprits(done) == [["3-0003-fs-change-number-3"]]
    [culprit] = result_of(done)["culprits"]
    assert culprit["changes"][0]["title"] == "fs: change number 3"
    assert (done.status, result_of(done)["kind"]) == (0, "patches")


def test_patches_are_taken_in_the_order_of_a_series_or_of_the_command(stack: ToyRange) -> None:
    first, second, third, fourth = stack_of(stack)
    done = stack.bisect("--source", ".", named=[*map(str, (first, second, third, fourth))])
    assert culprits(done) == [["3-0003-fs-change-number-3"]]
    (first.parent / "series").write_text(f"# of quilt\n{first.name}\n{second.name} # mine\n\n{third.name}\n")
    done = stack.bisect("--source", ".", named=str(first.parent))
    assert result_of(done)["steps"] == 3


def test_a_stack_that_does_not_apply_is_refused_with_the_patch(stack: ToyRange) -> None:
    first, second, third, _ = stack_of(stack)
    second.write_text(second.read_text().replace(" int change_1", " long change_1"))
    done = stack.bisect("--source", ".", named=[*map(str, (first, second, third))])
    assert (done.status, result_of(done)["verdict"]) == (2, "untestable")
    assert "0002-fs-change-number-2.patch doesn't apply to" in result_of(done)["sentence"]


# Two recipes.


def test_the_word_of_a_command_line_that_made_pipes_slower_is_found(replayed: ToyRange) -> None:
    words = ["quiet", "nosmt", "mitigations=on", "threadirqs"]
    bad = ",".join(f"cmdline={word}" for word in words)
    replayed.record("good")
    for number, word in enumerate(words, start=1):
        changes = [slower("lat_pipe", 3)] if number >= 3 else []
        replayed.record(f"{number}-{word.replace('=', '-')}", *changes)
    replayed.record("without-3-mitigations-on")
    done = replayed.command("--json", "--source", ".", named=["plain", bad])
    assert done.status == 0, done.err
    [culprit] = result_of(done)["culprits"]
    assert culprit["changes"][0]["title"] == "cmdline: with mitigations=on"
    runs = [json.loads(replayed.lab("show", run, "--json").out) for run in result_of(done)["runs"]]
    recipes = {name: recipe["cmdline"] for run in runs for name, recipe in recipes_of(run).items()}
    assert recipes["2-nosmt"] == words[:2]
    assert recipes["without-3-mitigations-on"] == [words[0], words[1], words[3]]


def recipes_of(run: dict[str, Any]) -> dict[str, Any]:
    return {variant["name"]: variant["recipe"] for variant in run["run"]["variants"]}


def test_words_of_a_command_line_share_an_image_and_are_booted_all_the_same(toy: ToyRange) -> None:
    toy.record("good")
    toy.record("1-quiet")
    toy.record("2-nosmt", slower("lat_pipe", 3))
    words = ["plain", "cmdline=quiet,cmdline=nosmt"]
    done = toy.command("--json", "--source", ".", "--layouts", "0", "--no-revert", named=words)
    assert culprits(done) == [["2-nosmt"]]
    assert len(list((toy.lab.state / "images").glob("*/image.json"))) == 1


def test_knobs_symbols_and_removed_words_are_steps(replayed: ToyRange) -> None:
    good, bad = "cmdline=quiet,kconfig.NET=y", "opt=O3,kconfig.NET=n,kconfig.SMP=y,toolchain=gcc-12"
    kernels = read_recipes([good, bad], Path.cwd(), State(replayed.lab.state))
    titles = [kernels.title(state) for state in range(kernels.steps + 1)]
    assert titles == [
        "the good end",
        "toolchain: gcc to gcc-12",
        "opt: None to O3",
        "kconfig.NET: y to n",
        "kconfig.SMP: absent to y",
        "cmdline: without quiet",
    ]
    bad_end = kernels.recipe(Recipe(kconfig={"AGENT": True}), kernels.steps)
    assert bad_end == Recipe(opt="O3", kconfig={"AGENT": True, "NET": "n", "SMP": "y"}, toolchain="gcc-12", cmdline=())


def test_the_symbol_of_a_configuration_that_made_pipes_slower_is_found(toy: ToyRange) -> None:
    """Symbols that depend on others are set when these are; a symbol without an effect gives the same code."""
    (toy.tree / "fs/Kconfig").write_text(
        (toy.tree / "fs/Kconfig").read_text()
        + "".join(f'\nconfig PLANTED_{number}\n\tbool "planted"\n' for number in range(1, 9))
        + '\nconfig DEPENDENT\n\tbool "dependent"\n\tdepends on PLANTED_6\n'
    )
    code = toy.tree / "fs/open.c"
    code.write_text(
        code.read_text()
        + "".join(f"#ifdef CONFIG_PLANTED_{number}\nint planted_{number};\n#endif\n" for number in (2, 4, 6, 8))
    )
    common = "CONFIG_64BIT=y\nCONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y\nCONFIG_KERNEL_GZIP=y\n"
    numbers = range(1, 9)
    off = "".join(f"# CONFIG_PLANTED_{number} is not set\n" for number in numbers)
    on = "".join(f"CONFIG_PLANTED_{number}=y\n" for number in numbers)
    for name, text in (("a", off), ("b", f"CONFIG_DEPENDENT=y\n{on}")):
        (toy.lab.directory / f"{name}.config").write_text(common + text)
    toy.record("good")
    toy.record("1-DEPENDENT")
    for number in numbers:
        toy.record(f"{number + 1}-PLANTED_{number}", *([slower("lat_pipe", 2)] if number >= 6 else []))
    recipes = [f"config=file:{toy.lab.directory}/{name}.config" for name in ("a", "b")]
    done = toy.lab(
        *("bisect", "--json", "--benchmark", "lat_pipe", "--layouts", "2", "--no-revert", "--source", "."),
        *("--machine", f"fake,recording={toy.lab.recording.directory}", *recipes),
    )
    assert culprits(done) == [["7-PLANTED_6"]], done.err
    [culprit] = result_of(done)["culprits"]
    assert culprit["changes"][0]["title"] == "PLANTED_6: n to y"
    assert result_of(done)["kernel"] == "gcc"
    assert {"DEPENDENT", "PLANTED_6"} <= {change.split(":")[0] for change in culprit["config"]}


def test_one_of_more_than_200_symbols_is_found_with_a_few_kernels(toy: ToyRange) -> None:
    """Some depend on the one before them, one is selected by another, and two are a choice."""
    total, culprit = 220, 143
    symbols = [
        f'config PLANTED_{number}\n\tbool "planted"\n'
        + (f"\tdepends on PLANTED_{number - 1}\n" if number % 5 == 0 else "")
        + ("\tselect PLANTED_90\n" if number == 30 else "")
        for number in range(1, total + 1)
    ]
    choice = 'choice\n\tprompt "ticks"\nconfig TICK_A\n\tbool "a"\nconfig TICK_B\n\tbool "b"\nendchoice\n'
    kconfig, code = toy.tree / "fs/Kconfig", toy.tree / "fs/open.c"
    kconfig.write_text(kconfig.read_text() + "\n" + "\n".join(symbols) + "\n" + choice)
    lines = (f"#ifdef CONFIG_PLANTED_{n}\nint planted_{n};\n#endif\n" for n in range(1, total + 1))
    code.write_text(code.read_text() + "".join(lines))
    common = "CONFIG_64BIT=y\nCONFIG_CC_OPTIMIZE_FOR_PERFORMANCE=y\nCONFIG_KERNEL_GZIP=y\n"
    numbers = range(1, total + 1)
    off = "".join(f"# CONFIG_PLANTED_{number} is not set\n" for number in numbers)
    on = "".join(f"CONFIG_PLANTED_{number}=y\n" for number in numbers)
    ticks = ("CONFIG_TICK_A=y\n# CONFIG_TICK_B is not set\n", "# CONFIG_TICK_A is not set\nCONFIG_TICK_B=y\n")
    for name, text in (("a", off + ticks[0]), ("b", on + ticks[1])):
        (toy.lab.directory / f"{name}.config").write_text(common + text)
    toy.record("good")
    recipes = [f"config=file:{toy.lab.directory}/{name}.config" for name in ("a", "b")]
    kernels = read_recipes(recipes, toy.tree, State(toy.lab.state))
    assert kernels.steps == total + 2
    for state in range(1, kernels.steps + 1):
        toy.record(kernels.name(state), *([slower("lat_pipe", 2)] if state >= culprit else []))
    words = ("--layouts", "0", "--no-revert", "--source", ".")
    machine = f"fake,recording={toy.lab.recording.directory}"
    done = toy.lab("bisect", "--json", "--benchmark", "lat_pipe", "--machine", machine, *words, *recipes)
    found = result_of(done)
    assert culprits(done) == [[f"{culprit}-PLANTED_{culprit}"]], done.err
    assert found["culprits"][0]["confirmed"]
    assert found["builds"] <= 12


def test_a_configuration_of_a_range_is_the_same_to_the_byte_in_the_next_command(tmp_path: Path) -> None:
    """Otherwise its kernel would be built again. Each process has another order of a set of texts."""
    numbers = range(30)
    (tmp_path / "good.config").write_text("".join(f"# CONFIG_GOOD_{number} is not set\n" for number in numbers))
    (tmp_path / "bad.config").write_text(
        "CONFIG_PLANTED=y\n" + "".join(f"# CONFIG_BAD_{number} is not set\n" for number in numbers)
    )
    state = State(tmp_path / "state")
    kernels = read_recipes([f"config=file:{tmp_path}/{name}.config" for name in ("good", "bad")], tmp_path, state)
    config = kernels.recipe(Recipe(), 1).config
    assert config is not None
    off = [f"# CONFIG_{end}_{number} is not set" for end in ("GOOD", "BAD") for number in numbers]
    assert Path(config.removeprefix("file:")).read_text().splitlines() == [*off, "CONFIG_PLANTED=y"]


def test_the_flag_that_made_pipes_slower_is_found(toy: ToyRange) -> None:
    flags = [f"-DPLANTED_{number}" for number in range(1, 5)]
    toy.record("good")
    for number, flag in enumerate(flags, start=1):
        toy.record(f"{number}-{flag}", *([slower("lat_pipe", 2)] if number >= 3 else []))
    code = toy.tree / "fs/open.c"
    lines = (f"#ifdef PLANTED_{number}\nint planted_{number};\n#endif\n" for number in range(1, 5))
    code.write_text(code.read_text() + "".join(lines))
    words = ("--source", ".", "--layouts", "0", "--no-revert")
    bad = ",".join(f"cflags={flag}" for flag in flags)
    done = toy.command("--json", *words, named=["plain", bad])
    assert culprits(done) == [["3--DPLANTED_3"]], done.err
    assert result_of(done)["culprits"][0]["changes"][0]["title"] == "cflags: with -DPLANTED_3"


@pytest.mark.parametrize(
    ("recipes", "message"),
    [
        (("plain", "plain"), "are the same recipe"),
        (("plain", "optt=O3"), "unknown key `optt`"),
        (("plain", "source=."), "differ in source, which has no steps in between"),
        (("config=file:nowhere", "config=file:elsewhere"), "can't read"),
    ],
)
def test_recipes_that_cannot_be_bisected_are_refused(
    replayed: ToyRange, recipes: tuple[str, str], message: str
) -> None:
    done = replayed.bisect("--source", ".", named=recipes)
    assert (done.status, message in done.err) == (1, True), done.err


def test_recipes_and_improvements_have_no_script(replayed: ToyRange) -> None:
    replayed.add()
    for done, why in (
        (replayed.bisect("--source", ".", "--script", "script", named=["plain", "opt=O3"]), "recipes are not commits"),
        (replayed.bisect("--better", "--script", "script"), "it finds only what made a benchmark worse"),
    ):
        assert (done.status, f"can't repeat this bisection: {why}" in done.err) == (1, True)


# Ranges that can't be bisected.


@pytest.mark.parametrize(
    ("named", "message"),
    [
        ("good..nowhere", "has no revision `nowhere`"),
        ("nowhere..main", "has no revision `nowhere`"),
        ("good..good", "good and good are the same commit"),
        ("main..good", "the range main..good is reversed: good is an ancestor of main"),
        ("good...main", "has three dots"),
        ("good..side", "good is not an ancestor of side"),
        ("side..merged", "side is not on the first-parent line of merged"),
        ("./nowhere#good..main", "there is no kernel source at"),
        ("no-such.patch", "`no-such.patch` is neither a range of commits nor a patch"),
        ("main", "`main` is neither a range of commits nor a patch"),
        ("empty", "has no patches"),
        ("Makefile", "holds no patch"),
    ],
)
def test_a_range_that_cannot_be_bisected_is_refused_before_anything_is_built(
    replayed: ToyRange, named: str, message: str
) -> None:
    tree = replayed.tree
    replayed.add()
    git(tree, "checkout", "-q", "--orphan", "side")
    (tree / "side").write_text("side")
    commit(tree, "another root")
    git(tree, "checkout", "-q", "-b", "merged", "main")
    git(tree, "merge", "-q", "--allow-unrelated-histories", "-s", "ours", "-m", "a merge", "side")
    (tree / "empty").mkdir()
    orders = replayed.lab.on_boot([])
    done = replayed.bisect(named=named)
    assert (done.status, message in done.err, orders) == (1, True, []), done.err


@pytest.mark.parametrize(
    ("percent", "verdict", "sentence"),
    [(0, "equal", "is not worse than"), (-3, "reversed", "the ends are reversed")],
)
def test_ends_that_are_not_worse_are_refused_after_they_were_measured(
    replayed: ToyRange, percent: int, verdict: str, sentence: str
) -> None:
    replayed.plant(3, percent, total=6)
    orders = replayed.lab.on_boot([])
    done = replayed.bisect()
    assert (done.status, result_of(done)["verdict"]) == (2, verdict)
    assert sentence in result_of(done)["sentence"]
    assert {order.variant for order in orders} == {replayed.name(0), replayed.name(6)}


def test_a_set_that_more_builds_would_divide_is_printed_with_the_option_for_them(toy: ToyRange) -> None:
    toy.plant(3, total=8)
    done = toy.bisect("--most-builds", "3")
    assert (done.status, result_of(done)["verdict"]) == (2, "set")
    assert result_of(done)["advice"] == "`--most-builds 6` lets it go on"


def test_an_improvement_is_found_if_it_is_sought(replayed: ToyRange) -> None:
    replayed.plant(3, -3, total=6)
    done = replayed.bisect("--better")
    assert culprits(done) == [[replayed.name(3)]]
    assert "made it better" in result_of(done)["sentence"]


def test_an_end_that_never_boots_is_refused(replayed: ToyRange) -> None:
    replayed.plant(2, total=3)
    replayed.add(changes=(died("init-exited.log"),))
    bad = replayed.bisect()
    assert (bad.status, result_of(bad)["verdict"]) == (2, "untestable")
    assert "never boots" in result_of(bad)["sentence"]
    died("init-exited.log")(replayed.lab.recording.directory / replayed.name(0))
    good = replayed.bisect(named="good..HEAD~1")
    assert (good.status, "the good end" in good.err, "never boots" in good.err) == (1, True, True)
    assert "begin with another good end" in good.err


def test_ends_that_differ_in_one_benchmark_alone_are_undecided_and_that_benchmark_is_advised(
    replayed: ToyRange,
) -> None:
    """Pipes are 1 % slower in each block, and another benchmark is much slower or faster, in turns."""
    for _ in range(2):
        replayed.add(1)
    bad = replayed.name(2)
    recording = replayed.lab.recording.directory
    for block in range(4):
        place = recording / bad / str(block)
        shutil.copytree(recording / "baseline" / "0", place)
        slower("lat_pipe", 1)(place)
        slower("lat_unix", 20 if block % 2 else -20)(place)
    machine = f"fake,recording={recording}"
    words = ("--machine", machine, "--config", "make:tinyconfig", "--benchmark", "lat_pipe,lat_unix")
    done = replayed.lab("bisect", *words, "--most-blocks", "4", "good..main")
    assert done.status == 2, done.err
    assert f"{bad} in lat_pipe: +1.0 %" in done.out
    assert "the others dilute what lat_pipe shows: `--benchmark lat_pipe`" in done.out


@pytest.mark.parametrize("failed", [1, 2])
def test_a_kernel_that_fails_once_is_booted_again_and_one_that_fails_twice_is_skipped(
    replayed: ToyRange, failed: int
) -> None:
    replayed.plant(6, total=8)
    place = replayed.lab.recording.directory / replayed.name(4)
    for block in range(failed):
        shutil.copytree(replayed.lab.recording.directory / "baseline" / "0", place / str(block))
        died("init-exited.log")(place / str(block))
    done = replayed.bisect()
    assert culprits(done) == [[replayed.name(6)]]
    [kernel] = [kernel for kernel in result_of(done)["kernels"] if kernel["name"] == replayed.name(4)]
    if failed == 1:
        assert kernel["effect"]["blocks"] == 1
    else:
        assert kernel["answer"] == "skipped"
        assert "never boots: panic" in kernel["reason"]


def test_a_check_whose_only_boots_fail_is_made_again(replayed: ToyRange, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a check of one block nothing is measured if both of its boots fail."""
    replayed.plant(1, total=1)
    checked, replay = Search.check_trial, FakeMachine.boot
    seeds: list[int] = []

    def check_one_block(search: Search, culprit: Culprit, costs: TrialCosts) -> Check | None:
        trial = checked(search, culprit, costs)
        return replace(trial, blocks=1) if trial and not search.evidence.checks else trial

    def boot(machine: FakeMachine, order: BootOrder) -> BootEnd:
        end = replay(machine, order)
        seeds.append(order.seed)
        is_first_of_check = order.block == 0 and order.seed not in seeds[:8]
        return replace(end, status="failed", reason="hung at boot", report=AgentReport()) if is_first_of_check else end

    monkeypatch.setattr(Search, "check_trial", check_one_block)
    monkeypatch.setattr(FakeMachine, "boot", boot)
    done = replayed.bisect()
    assert culprits(done) == [[replayed.name(1)]], done.err
    assert result_of(done)["culprits"][0]["confirmed"]


def test_ends_whose_boots_fail_now_and_then_are_not_measured_for_ever(replayed: ToyRange) -> None:
    """The effect is too small for one block of two, and the others fail."""
    replayed.add()
    recording = replayed.lab.recording.directory
    for block in range(1, 8):
        shutil.copytree(recording / "baseline" / "0", recording / replayed.name(1) / str(block))
        died("init-exited.log")(recording / replayed.name(1) / str(block))
    done = replayed.bisect("--most-blocks", "8")
    assert (done.status, result_of(done)["verdict"]) == (2, "undecided")


def test_lost_boots_end_with_3_and_the_same_command_goes_on(replayed: ToyRange) -> None:
    replayed.plant(3, total=6)
    replayed.lab.on_boot(["the host failed"] * 3)
    lost = replayed.bisect()
    assert (lost.status, "boots were lost" in lost.err) == (3, True)
    assert culprits(replayed.bisect()) == [[replayed.name(3)]]


@pytest.mark.parametrize("number", [0, 3])
def test_kernels_that_other_work_disturbed_are_booted_once_more_and_not_skipped(
    replayed: ToyRange, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    replayed.plant(3, total=6)
    boots = disturb(monkeypatch, replayed.name(number), "lat_pipe", times=1)
    done = replayed.bisect()
    assert culprits(done) == [[replayed.name(3)]]
    assert "skipped" not in answers(done).values()
    assert boots[replayed.name(number), 0] > 1


def test_a_host_that_leaves_nothing_to_measure_ends_with_3_and_the_same_command_goes_on(
    replayed: ToyRange, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed.plant(3, total=6)
    with monkeypatch.context() as busy:
        disturb(busy, replayed.name(3), "lat_pipe", times=100)
        done = replayed.bisect()
    assert (done.status, f"left no value of lat_pipe in any boot of {replayed.name(3)}" in done.err) == (3, True)
    assert culprits(replayed.bisect()) == [[replayed.name(3)]]


def test_a_disk_that_fills_up_amid_builds_ends_in_one_message_and_the_same_command_goes_on(toy: ToyRange) -> None:
    """The compiler writes to a full disk as soon as a file is there, which a boot of the second kernel makes."""
    full = toy.lab.directory / "full"
    makefile = toy.tree / "Makefile"
    makefile.write_text(makefile.read_text().replace("$(if $(CONFIG_FAKE_DISK_FULL)", f"$(if $(wildcard {full})"))
    toy.add()
    git(toy.tree, "tag", "-f", "good")
    toy.plant(5, total=8)
    orders = toy.lab.on_boot([])
    replay = FakeMachine.boot

    def boot(machine: FakeMachine, order: BootOrder) -> BootEnd:
        if len({earlier.variant for earlier in orders}) == 2:
            full.touch()
        return replay(machine, order)

    toy.lab.patch.setattr(FakeMachine, "boot", boot)
    done = toy.bisect()
    assert done.status == 3
    errors = [line for line in done.err.splitlines() if line.startswith("kdyno: ")]
    assert errors == [f"kdyno: the disk that holds {toy.lab.state}/builds is full"]
    before = {(order.variant, order.block, order.seed) for order in orders}
    full.unlink()
    orders.clear()
    toy.lab.patch.setattr(FakeMachine, "boot", replay)
    done = toy.bisect()
    assert culprits(done) == [[toy.name(6)]]
    assert "on record" in done.err
    assert not [kernel for kernel in result_of(done)["kernels"] if kernel["answer"] == "skipped"]
    assert not before & {(order.variant, order.block, order.seed) for order in orders}


def test_changes_of_the_work_tree_are_not_measured_and_that_is_said(replayed: ToyRange) -> None:
    replayed.plant(3, total=4)
    (replayed.tree / "fs/open.c").write_text("changed\n")
    done = replayed.bisect()
    assert "note: 1 file changed in" in done.err and "without these changes" in done.err
    assert culprits(done) == [[replayed.name(3)]]
    assert (replayed.tree / "fs/open.c").read_text() == "changed\n"
    assert git(replayed.tree, "rev-parse", "HEAD").strip() == replayed.commits[-1]


def test_a_branch_that_moved_is_refused_until_the_bisection_begins_anew(replayed: ToyRange) -> None:
    replayed.plant(3, total=6)
    assert culprits(replayed.bisect()) == [[replayed.name(3)]]
    replayed.add(2)
    moved = replayed.bisect()
    assert (moved.status, "good..main has changed since this bisection began" in moved.err) == (1, True)
    assert f"main was {replayed.name(6)} and is {replayed.name(7)}" in moved.err
    again = replayed.bisect("--again")
    assert (culprits(again), result_of(again)["steps"]) == ([[replayed.name(3)]], 7)


def test_a_damaged_record_is_named_and_again_replaces_it(replayed: ToyRange) -> None:
    replayed.plant(3, total=6)
    replayed.bisect()
    [record] = (replayed.lab.state / "bisects").iterdir()
    record.write_text(record.read_text()[:-40])
    damaged = replayed.bisect()
    assert (damaged.status, "can't read the record of this bisection" in damaged.err) == (3, True)
    assert culprits(replayed.bisect("--again")) == [[replayed.name(3)]]


@pytest.mark.parametrize(
    "damage",
    [{"state": 99}, {"state": 0}, {"same": 7}, {"values": [1e999]}, {"kind": "revert", "state": 7}, {"blocks": 0}],
)
def test_a_record_with_impossible_trials_is_refused(replayed: ToyRange, damage: dict[str, Any]) -> None:
    replayed.plant(3, total=6)
    replayed.bisect()
    [path] = (replayed.lab.state / "bisects").iterdir()
    record = json.loads(path.read_text())
    record["events"][1] |= damage
    path.write_text(json.dumps(record))
    done = replayed.bisect()
    assert (done.status, "can't read the record of this bisection" in done.err) == (3, True), done.err


def test_trials_whose_runs_were_removed_are_made_again(replayed: ToyRange) -> None:
    replayed.plant(3, total=6)
    first = result_of(replayed.bisect())
    assert replayed.lab("store", "rm", "--yes", first["runs"][0]).status == 0
    second = replayed.bisect()
    assert "on record" in second.err
    assert culprits(second) == [[replayed.name(3)]]


def test_a_benchmark_that_is_not_measured_is_refused(replayed: ToyRange) -> None:
    replayed.plant(3, total=4)
    done = replayed.command("--benchmark", "lat_pip")
    assert (done.status, "--benchmark names lat_pip, which is not a benchmark" in done.err) == (1, True)


def test_the_way_into_a_merge_is_named(replayed: ToyRange) -> None:
    tree = replayed.tree
    replayed.add()
    git(tree, "checkout", "-q", "-b", "topic", "good")
    (tree / "topic").write_text("topic")
    commit(tree, "on the topic")
    git(tree, "checkout", "-q", "main")
    git(tree, "merge", "-q", "-m", "Merge topic", "topic")
    replayed.commits.append(git(tree, "rev-parse", "HEAD").strip())
    replayed.record(replayed.name(2), slower("lat_pipe", 2))
    replayed.add(2)
    done = replayed.bisect()
    assert culprits(done) == [[replayed.name(2)]]
    assert (
        f"#{replayed.name(0)}..{replayed.name(2)}^2` bisects what it merged" in result_of(done)["culprits"][0]["advice"]
    )


# What is written.


def test_the_report_on_a_terminal(toy: ToyRange) -> None:
    toy.add()
    toy.add(line="#error broken")
    toy.repair()
    for number in range(3, 9):
        toy.add(2 if number >= 6 else 0, file="lib/crc32.c" if number == 6 else "fs/open.c")
    toy.record(f"without-{toy.name(6)}")
    done = toy.command("--mail", str(toy.lab.directory / "mail"), "--layouts", "2")
    check("bisect", toy.lab, CommandResult(done.status, toy.masked(done.out), toy.masked(done.err)))
    check("bisect-mail", toy.lab, CommandResult(0, toy.masked((toy.lab.directory / "mail").read_text()), ""))


def test_help_of_bisect_names_its_options(lab: Lab) -> None:
    check("help-bisect", lab, lab("bisect", "--help"))


def test_the_script_finds_the_same_commit_by_git_bisect_run(replayed: ToyRange) -> None:
    """Of recordings that `kdyno ab` plays, which has other names for the same kernels."""
    replayed.plant(4, total=7)
    path = replayed.lab.directory / "script"
    assert replayed.command("--no-revert", "--script", str(path)).status == 0
    text = path.read_text()
    assert f"git bisect start --first-parent {replayed.commits[7]} {replayed.commits[0]}" in text
    assert subprocess.run(["sh", "-n", path], check=False).returncode == 0
    for name in ("HEAD", replayed.commits[0]):
        replayed.record(name)
    # The recording of HEAD is that of the commit which git checks out.
    switch = 'rm -rf "$1/HEAD"; cp -r "$1/$(git rev-parse --short=12 HEAD)" "$1/HEAD"'
    recording = replayed.lab.recording.directory
    stepped = text.replace(
        "git bisect run kdyno", f"git bisect run sh -c '{switch}; shift; \"$@\"' sh {recording} kdyno"
    )
    path.write_text(stepped)
    environment = {**replayed.lab.environment, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", path], env=environment, capture_output=True, text=True, check=False)
    assert f"{replayed.commits[4]} is the first bad commit" in done.stdout, done.stdout + done.stderr


def test_the_script_for_a_stack_has_a_commit_for_each_patch(stack: ToyRange) -> None:
    path = stack.lab.directory / "script"
    stack.record("without-3-0003-fs-change-number-3")
    words = ("--source", str(stack.tree), "--layouts", "2", "--script", str(path))
    assert stack.command(*words, named=str(stack.lab.directory / "stack")).status == 0
    kdyno = stack.lab.directory / "bin/kdyno"
    kdyno.parent.mkdir()
    kdyno.write_text('#!/bin/sh\ncase "$3" in *0003-*) exit 2;; esac\n')
    kdyno.chmod(0o755)
    environment = {**stack.lab.environment, "PATH": f"{kdyno.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["sh", path], env=environment, capture_output=True, text=True, check=False)
    assert "0003-fs-change-number-3.patch" in done.stdout.split("is the first bad commit")[1], done.stdout + done.stderr
