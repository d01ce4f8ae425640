"""Containerfile, the development container and the files of hosted CI agree with what tools/ and the Makefile do."""

from __future__ import annotations

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTAINER = "Containerfile"
HOSTED = (".github/workflows/ci.yml", ".gitlab-ci.yml")
SETUP = re.compile(r"tools/setup (\w+)")


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def installed(name: str) -> set[str]:
    """The packages that a file installs by apt-get."""
    commands = re.findall(r"apt-get install -q -y --no-install-recommends (.+)", text(name))
    return {package for command in commands for package in command.split()}


def test_containers_and_hosted_ci_start_from_one_release_of_debian() -> None:
    images = re.findall(r"^FROM docker\.io/library/(\S+)$", text(CONTAINER), re.MULTILINE)
    images += [image for name in HOSTED for image in re.findall(r"^ *image: (\S+)$", text(name), re.MULTILINE)]
    assert images == ["debian:12"] * 3
    assert "suite=bookworm" in text("tools/fresh"), "the same release, by its code name"


def test_the_container_installs_what_the_minimal_debian_has_in_which_set_up_is_tried() -> None:
    [tried] = re.findall(r"--include=(\S+)", text("tools/fresh"))
    assert installed(CONTAINER) == set(tried.split(",")) - {"sudo"}, "sudo is for the ordinary user there"


def test_the_container_is_set_up_for_the_tests_that_it_runs() -> None:
    [goal] = SETUP.findall(text(CONTAINER))
    [target] = re.findall(r'CMD \["make", "(\w+)"\]', text(CONTAINER))
    assert re.search(rf"^{target}: test-quick$", text("Makefile"), re.MULTILINE)
    assert re.search(rf"^test-quick: setup-{goal}$", text("Makefile"), re.MULTILINE)


def test_the_development_container_is_that_of_the_containerfile() -> None:
    container = json.loads(text(".devcontainer/devcontainer.json"))
    build = {key: (ROOT / ".devcontainer" / path).resolve() for key, path in container["build"].items()}
    assert build == {"dockerfile": ROOT / CONTAINER, "context": ROOT}
    assert SETUP.findall(container["postCreateCommand"]) == SETUP.findall(text(CONTAINER))


@pytest.mark.parametrize("name", HOSTED)
def test_hosted_ci_runs_the_script_that_is_all_of_ci(name: str) -> None:
    last = [line.strip(" -") for line in text(name).splitlines() if line.strip(" -").startswith(".ci/")]
    assert last == [".ci/run"]
    assert (ROOT / ".ci/run").stat().st_mode & 0o111
    limits = [int(minutes) for minutes in re.findall(r"timeout(?:-minutes)?: (\d+)", text(name))]
    assert limits == [90]


def test_a_container_is_given_nothing_that_git_ignores() -> None:
    """Set-up in the container would take an environment of another machine for its own."""
    ignored = {line.strip("/") for line in text(".gitignore").splitlines()}
    left_out = {line.removeprefix("**/") for line in text(".dockerignore").splitlines() if not line.startswith("#")}
    missing = {name for name in ignored if not any(fnmatchcase(name, pattern) for pattern in left_out)}
    assert not missing
