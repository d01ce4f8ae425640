"""`kdyno ab`, on the machine that replays: an A/B in one line, and what its exit code says to `git bisect run`."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib

import pytest

from kdyno.kernel import build
from kdyno.kernel.make import BuildFailed
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import Change, Recording, died, ended, slower
from tests.unit.kernel_toy import commit, git, toy_repository

MACHINE = ("--machine", "fake,recording=recording", "--source", "a-tree", "--blocks", "3")


@pytest.fixture
def ab(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """In the directory of the recording, which has the plain recipe."""
    monkeypatch.chdir(lab.directory)
    lab.recording.add("plain")
    return lab


def compared(lab: Lab, *words: str) -> CommandResult:
    return lab("ab", "plain", "opt=O3", *MACHINE, *words)


def test_an_ab_is_stored_resumed_and_reported_like_any_run(ab: Lab) -> None:
    ab.recording.add("opt-O3", slower("lat_pipe", 10))
    ab.on_boot([None, None, KeyboardInterrupt()])
    assert compared(ab).status == 130
    second = compared(ab, "--json")
    assert "to do: boot 4 times (3 blocks of 2 variants, 2 on record)" in second.err
    report = json.loads(second.out)
    assert report["run"]["name"] == "plain-vs-opt-O3"
    assert {row["benchmark"]: row["verdict"] for row in report["comparisons"]}["lat_pipe"] == "more"
    assert "is complete: nothing to do" in compared(ab).err
    assert "opt-O3 against plain" in ab("report", "latest").out


def test_an_ab_writes_the_page_too_and_is_quiet_where_asked(ab: Lab) -> None:
    ab.recording.add("opt-O3")
    result = compared(ab, "-q", "--html", "page.html")
    assert (result.status, result.err) == (0, "")
    assert (ab.directory / "page.html").read_text().startswith("<!DOCTYPE html>")


def test_toml_is_the_experiment_that_is_run(ab: Lab) -> None:
    ab.recording.add("opt-O3")
    printed = compared(ab, "--toml")
    assert tomllib.loads(printed.out)["machine"]["recording"] == str(ab.directory / "recording")
    assert (printed.status, ab("runs").out.startswith("no runs yet")) == (0, True)
    path = ab.directory / "elsewhere" / "x.toml"
    path.parent.mkdir()
    path.write_text(printed.out)
    assert compared(ab).status == 0
    assert "is complete: nothing to do" in ab("run", str(path)).err


@pytest.mark.parametrize("named", [[], ["lat_syscall.null"], ["lat_pipe", "lat_syscall"]])
def test_slower_is_exit_code_2_in_what_was_named_or_in_anything(ab: Lab, named: list[str]) -> None:
    ab.recording.add("opt-O3", slower("lat_syscall.null", 10))
    assert compared(ab, "--fail-on-regression", *named).status == 2
    assert compared(ab).status == 0


def test_slower_in_something_else_is_exit_code_0(ab: Lab) -> None:
    ab.recording.add("opt-O3", slower("lat_syscall.null", 10), slower("lat_sig.install", -10))
    assert compared(ab, "--fail-on-regression", "lat_pipe", "lat_sig").status == 0


def test_a_benchmark_that_is_not_measured_is_refused_before_anything_is_booted(ab: Lab) -> None:
    result = compared(ab, "-t", "lat_pipe", "--fail-on-regression", "lat_pip")
    assert result.status == 129
    assert "--fail-on-regression names lat_pip, which is not a benchmark of this workload" in result.err
    assert "did you mean lat_pipe? it measures lat_pipe" in result.err
    assert ab("runs").out.startswith("no runs yet")


def test_a_kernel_that_never_boots_is_exit_code_125_unless_another_is_slower(ab: Lab) -> None:
    ab.recording.add("opt-O3", died("init-exited.log"))
    ab.recording.add("opt-Os", slower("lat_pipe", 10))
    for _ in range(2):
        assert compared(ab, "--fail-on-regression").status == 125
    assert compared(ab).status == 0
    both = ("ab", "plain", "opt=O3", "opt=Os", *MACHINE, "--fail-on-regression")
    assert ab(*both, "lat_pipe").status == 2
    assert ab(*both, "lat_sig").status == 125


def test_a_baseline_that_never_boots_is_exit_code_125(ab: Lab) -> None:
    ab.recording.add("opt-O3")
    ab.recording.change("plain", died("init-exited.log"))
    assert compared(ab, "--fail-on-regression", "lat_pipe").status == 125


def test_a_kernel_that_does_not_build_is_exit_code_125(ab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def unbuildable(*_: object) -> None:
        raise BuildFailed(what="a-tree (6.12)", error="fs/pipe.c:1: error: no", log="log")

    ab.recording.add("opt-O3")
    monkeypatch.setattr("kdyno.runs.carrier.build_images", unbuildable)
    result = compared(ab, "--fail-on-regression", "lat_pipe")
    assert (result.status, "a-tree (6.12) doesn't build: fs/pipe.c:1" in result.err) == (125, True)
    assert compared(ab).status == 1


def test_what_says_nothing_about_the_kernel_stops_git_bisect(ab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1 and 3, as else, git bisect would make a bad revision."""
    ab.recording.add("opt-O3", ended(lost="QEMU was killed by signal 9"), blocks=[0])
    asked = "--fail-on-regression"
    assert (compared(ab).status, compared(ab, asked).status) == (3, 131)
    assert (compared(ab, "--bloks", "3").status, compared(ab, "--bloks", "3", asked).status) == (1, 129)
    assert ab("ab", "plain", "optt=O3", *MACHINE, asked).status == 129
    assert ab("ab", "plain", "optt=O3", *MACHINE, "--fail-on").status == 129
    assert ab("ab", "--help", asked).status == 0

    def crashes(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("kdyno.understand.judged_run.run_experiment", crashes)
    assert compared(ab, asked).status == 129


def test_a_revision_that_is_not_there_is_named_before_another_is_unpacked(ab: Lab) -> None:
    toy_repository(ab.directory)
    refused = ab("ab", "./linux#main", "./linux#nowhere", "--config", "make:tinyconfig", "-t", "lat_pipe")
    assert (refused.status, "has no revision `nowhere`" in refused.err) == (1, True)
    assert not list((ab.state / "sources").glob("*"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["plain", "plain"], "`plain` and `plain` are the same recipe"),
        (["plain", "O3"], "`O3` is neither a recipe nor a source"),
        (["plain", "optt=O3"], "unknown key `optt`; did you mean `opt`?"),
        (["plain", "kconfig.A"], "is neither a recipe nor a source"),
        (["git:linux#nowhere", "opt=O3"], "has no revision `nowhere`"),
        (["git:empty", "opt=O3"], "empty has no revision `HEAD`: fatal: not a git repository"),
        (["./empty", "opt=O3"], "is not a kernel source tree: it has no readable Makefile"),
        (["git:notes", "opt=O3"], "is not a kernel source tree: it has no readable Makefile"),
        (["./linux#v1", "opt=O3"], "has no revision `v1`"),
    ],
)
def test_bad_input_is_a_user_error_that_names_it(ab: Lab, words: list[str], message: str) -> None:
    toy_repository(ab.directory)
    for name in ("empty", "notes"):
        (ab.directory / name).mkdir()
    git(ab.directory / "notes", "init", "-q")
    (ab.directory / "notes/README").write_text("no kernel\n")
    commit(ab.directory / "notes", "notes")
    refused = ab("ab", *words, "--config", "make:tinyconfig", "-t", "lat_pipe")
    assert (refused.status, message in refused.err) == (1, True), refused.err


def test_a_work_tree_with_changes_is_measured_as_it_is_and_that_is_said(
    ab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree = toy_repository(ab.directory)
    git(tree, "tag", "v1")
    monkeypatch.chdir(tree)
    words = ("build", str(ab.directory / "x.toml"))
    written = ab("ab", ".#v1", ".", "--config", "make:tinyconfig", "--toml")
    (ab.directory / "x.toml").write_text(written.out)
    monkeypatch.setattr(build, "NEEDED_MB", 0)
    clean = ab(*words)
    assert (clean.status, "measured as it is" in clean.err) == (0, False), clean.err
    with (tree / "fs/open.c").open("a", encoding="utf-8") as source:
        source.write("/* changed */\n")
    (tree / "fs/new.h").write_text("/* new */\n")
    changed = ab(*words)
    assert changed.status == 0, changed.err
    assert f"note: {tree} is measured as it is: v1, and 2 files changed since" in changed.err
    images = [json.loads(path.read_text()) for path in (ab.state / "images").glob("*/image.json")]
    assert f"{tree} (v1, 2 files changed)" in {image["source"]["origin"] for image in images}


def test_git_bisect_finds_the_revision_that_made_pipes_slower(lab: Lab) -> None:
    """Of ten, one of which doesn't boot."""
    changes: dict[str, list[Change]] = {"fine": [], "dead": [died("init-exited.log")], "slow": [slower("lat_pipe", 10)]}
    for speed, change in changes.items():
        recording = Recording(lab.directory / f"recording-{speed}")
        recording.add("good")
        recording.add("HEAD", *change)
    tree = toy_repository(lab.directory)
    git(tree, "tag", "good")
    revisions = []
    for number, speed in enumerate(["fine"] * 4 + ["dead"] + ["fine"] + ["slow"] * 4):
        (tree / "speed").write_text(f"{speed}\n")
        (tree / "number").write_text(f"{number}\n")
        revisions.append(commit(tree, f"change {number}"))
    git(tree, "bisect", "start", "HEAD", "good")
    machine = f'"fake,recording={lab.directory}/recording-$(cat speed)"'
    words = f"ab .#good .#HEAD --machine {machine} --blocks 3 --fail-on-regression lat_pipe"
    done = subprocess.run(
        ["git", "bisect", "run", "sh", "-c", f"{sys.executable} -m kdyno {words}"],
        cwd=tree,
        env=lab.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{revisions[6]} is the first bad commit" in done.stdout
    assert f"git bisect skip {revisions[4]}" in git(tree, "bisect", "log")
