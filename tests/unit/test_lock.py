"""The files of requirements/, which set-up installs, against pyproject.toml, which says what kdyno needs."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[2]
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
FILES = ("dev.txt", "pages.txt")


def lines_of(file: str) -> list[str]:
    text = (ROOT / "requirements" / file).read_text(encoding="utf-8").replace("\\\n", " ")
    return [line.strip() for line in text.splitlines() if not line.lstrip().startswith("#")]


def locked(python: str, files: tuple[str, ...] = FILES) -> dict[str, str]:
    """By name the version that Linux gets with this Python."""
    surroundings = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    lines = [Requirement(line.partition("--hash")[0]) for file in files for line in lines_of(file)]
    return {
        canonicalize_name(line.name): str(line.specifier).removeprefix("==")
        for line in lines
        if line.marker is None or line.marker.evaluate(surroundings)
    }


PINNED = "symbolic"
"""An extra that set-up doesn't install: its pins are older than what the rest needs."""


def needed() -> list[Requirement]:
    """What pyproject.toml asks for: to run, to develop and to be built."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = settings["project"]
    extras = [texts for name, texts in project["optional-dependencies"].items() if name != PINNED]
    lists = (project["dependencies"], *extras, settings["build-system"]["requires"])
    every = [Requirement(text) for texts in lists for text in texts]
    return [requirement for requirement in every if requirement.name != project["name"]]


def lacks(requirements: list[Requirement], versions: dict[str, str]) -> list[str]:
    """Those that no locked version fulfils."""
    names = [(requirement, canonicalize_name(requirement.name)) for requirement in requirements]
    return [str(one) for one, name in names if name not in versions or versions[name] not in one.specifier]


@pytest.mark.parametrize("python", PYTHONS)
def test_all_that_pyproject_asks_for_is_locked_in_a_version_that_it_allows(python: str) -> None:
    assert lacks(needed(), locked(python)) == [], "make lock"


def test_what_is_not_locked_or_too_old_is_named() -> None:
    asked = [Requirement("numpy>=9999"), Requirement("not-there"), Requirement("Jinja2>=3.1")]
    assert lacks(asked, locked("3.11")) == ["numpy>=9999", "not-there"]


@pytest.mark.parametrize("python", PYTHONS)
def test_both_files_lock_the_same_versions_of_what_they_share(python: str) -> None:
    first, second = (locked(python, (file,)) for file in FILES)
    assert {name for name in first.keys() & second.keys() if first[name] != second[name]} == set()


@pytest.mark.parametrize("file", FILES)
def test_every_locked_file_is_known_by_its_hash_and_comes_from_whatever_index_pip_is_told(file: str) -> None:
    assert all(
        re.fullmatch(r"[\w.-]+==[^ ]+( +;[^\\]*?)?( +--hash=sha256:[0-9a-f]{64})+", line) for line in lines_of(file)
    )
