"""`kdyno bisect` on toy kernels: real builds of commits and patches, and boots that are replayed."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from kdyno.boot.base import Description
from kdyno.boot.fake import FakeMachine
from kdyno.kernel import build
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import Change, died, slower
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

    def add(self, percent: int = 0, *, line: str | None = None, changes: tuple[Change, ...] = ()) -> None:
        """Commit one more kernel, whose pipes are so many percent slower than at the good end."""
        number = len(self.commits)
        code = f"int change_{number}(void) {{ return {number}; }}" if line is None else line
        with (self.tree / "fs/open.c").open("a", encoding="utf-8") as source:
            source.write(f"{code}\n")
        self.commits.append(commit(self.tree, f"fs: change number {number}"))
        self.record(self.name(number), *([slower("lat_pipe", percent)] if percent else []), *changes)

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

    def bisect(self, *words: str, named: str = "good..main") -> CommandResult:
        machine = f"fake,recording={self.lab.recording.directory}"
        return self.lab("bisect", *(words or ("--json",)), named, *self.options(machine))

    def options(self, machine: str) -> list[str]:
        return ["--benchmark", "lat_pipe", "--machine", machine, "--config", "make:tinyconfig"]


@pytest.fixture
def toy(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> ToyRange:
    """The machine replays boots, but builds the kernel of each."""

    def describe(machine: FakeMachine) -> Description:
        return replace(REPLAYED(machine), needs_images=True)

    monkeypatch.setattr(FakeMachine, "describe", describe)
    monkeypatch.setattr(build, "NEEDED_MB", 0)
    made = ToyRange(lab)
    monkeypatch.chdir(made.tree)
    return made


def result_of(done: CommandResult) -> dict[str, object]:
    assert done.out, done.err
    found = json.loads(done.out)
    assert isinstance(found, dict)
    return found


def culprits(done: CommandResult) -> list[list[str]]:
    return [[change["name"] for change in one["changes"]] for one in result_of(done)["culprits"]]  # type: ignore[attr-defined]


def test_the_commit_that_made_pipes_slower_is_found_and_checked(toy: ToyRange) -> None:
    toy.plant(11)
    done = toy.bisect()
    assert done.status == 0, done.err
    found = result_of(done)
    assert culprits(done) == [[toy.name(11)]]
    assert (found["verdict"], found["builds"]) == ("found", 6)
    [culprit] = found["culprits"]  # type: ignore[misc]
    assert culprit["confirmed"] and culprit["layouts"] == 4
    assert culprit["share"] == pytest.approx(1.0, abs=0.05)
    assert culprit["before"] == toy.name(10)
    runs = json.loads(toy.lab("runs", "--json").out)
    assert {run["id"] for run in runs} >= {culprit["run"]}


def test_a_second_command_repeats_nothing(toy: ToyRange) -> None:
    toy.plant(5, total=8)
    first = toy.bisect()
    orders = toy.lab.on_boot([])
    second = toy.bisect()
    assert orders == []
    assert "continues: 5 trials on record" in second.err
    assert result_of(second) == result_of(first)


@pytest.mark.parametrize("boots", [1, 5, 9, 11, 14])
def test_a_bisection_that_was_interrupted_continues_and_finds_the_same(toy: ToyRange, boots: int) -> None:
    toy.plant(5, total=8)
    toy.lab.on_boot([*[None] * boots, KeyboardInterrupt()])
    assert toy.bisect().status == 130
    done = toy.bisect()
    assert culprits(done) == [[toy.name(5)]]
    built = [json.loads(path.read_text()) for path in (toy.lab.state / "images").glob("*/image.json")]
    plain = [image for image in built if image["recipe"]["layout_seed"] is None]
    assert len(plain) == result_of(done)["builds"]
