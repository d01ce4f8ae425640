"""Link orders of a real kernel: the same functions in another order, all else in its place, and they boot."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

import pytest

from kdyno.kernel.build import build_layouts, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.state import State
from tests.e2e.conftest import Kdyno

SEEDS = (0, 1)


@pytest.fixture(scope="session")
def layouts(state: Path) -> list[Image]:
    """Two layouts of Debian's 6.12, from one set of objects."""
    source = fetch("debian:linux-source-6.12", State(state), print)
    plans = [plan_build(Recipe(opt="O2", layout=seed), source, "dyno", State(state)) for seed in SEEDS]
    return build_layouts(plans, State(state), lambda _done, _total, _line: None)


def symbols(image: Image, types: str) -> list[str]:
    """Names by address."""
    return re.findall(rf"^[0-9a-f]+ [{types}] (\S+)$", image.symbols.read_text(), re.M)


def between(image: Image, first: str, last: str) -> list[str]:
    names = symbols(image, "a-zA-Z")
    return names[names.index(first) : names.index(last)]


def test_the_functions_are_the_same_in_another_order(layouts: list[Image]) -> None:
    one, two = (symbols(image, "tTwW") for image in layouts)
    assert len(one) > 10_000
    assert sorted(one) == sorted(two)
    neighbours = set(pairwise(one)) & set(pairwise(two))
    assert len(neighbours) < len(one) / 5  # assembly, .init.text and all that has a place of its own


def test_no_function_lies_outside_of_the_kernels_text(layouts: list[Image]) -> None:
    for image in layouts:
        inside = between(image, "_stext", "_etext")
        assert {"vfs_read", "do_sys_poll", "pipe_write", "schedule"} <= set(inside)
        assert "warning: orphan section" not in (image.directory / "build.log").read_text()


def test_what_the_script_places_stays_in_place(layouts: list[Image]) -> None:
    for first, last in (("__sched_text_start", "__sched_text_end"), ("__initcall_start", "__initcall_end")):
        one, two = (between(image, first, last) for image in layouts)
        assert one == two
        assert len(one) > 5


def test_every_layout_boots(kdyno: Kdyno, layouts: list[Image]) -> None:
    for image in layouts:
        done = kdyno("boot", image.record.key, "--lane", "model", command=("uname", "-r"))
        assert done.stdout.strip() == image.record.release
