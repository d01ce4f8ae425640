"""Link orders of a real kernel: the same functions in another order, all else in its place, and they boot."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.judge.stats.verdict import DIFFERENT
from kdyno.kernel.build import build_layouts, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.plan import recipes
from tests.e2e.conftest import ROOT_KCONFIG, WITH_ROOT, Kdyno

ONE = Recipe(opt="O2", lines=True, kconfig=ROOT_KCONFIG)
RECIPES = {"one": ONE, "other": ONE.model_copy(update={"layout_seed": 7})}
"""They differ in nothing but link order."""
EXPERIMENT = Experiment(
    name="order", source="debian:linux-source-6.12", baseline="one", variants=RECIPES, blocks=4, layouts=2
)


FIRST = ("vfs_write", "pipe_write", "vfs_read", "do_sys_poll", "ksys_read")
UNPLACED = ("start_kernel", "memcpy", "no_such_function")
"""In .init.text, in assembly code, and nowhere."""


@pytest.fixture(scope="session")
def built(state: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Image]:
    """From one set of objects: two layouts of each variant, then an order alone and one with the first one's seed."""
    source = fetch(EXPERIMENT.source, State(state), print)
    wanted = [recipe for name in RECIPES for recipe in recipes(EXPERIMENT, name)]
    order = tmp_path_factory.mktemp("order") / "functions.order"
    order.write_text("\n".join((*FIRST[:2], *UNPLACED, *FIRST[2:])))
    wanted += [wanted[0].model_copy(update={"order": str(order), "layout_seed": None})]
    wanted += [wanted[0].model_copy(update={"order": str(order)})]
    plans = [plan_build(recipe, source, "dyno", State(state)) for recipe in wanted]
    return build_layouts(plans, State(state), lambda _done, _total, _line: None)


@pytest.fixture(scope="session")
def all_layouts(built: list[Image]) -> list[Image]:
    """Two layouts of each variant."""
    return built[:4]


@pytest.fixture(scope="session")
def ordered(built: list[Image]) -> list[Image]:
    return built[4:]


@pytest.fixture(scope="session")
def layouts(all_layouts: list[Image]) -> list[Image]:
    return all_layouts[:2]


def symbols(image: Image, types: str) -> list[str]:
    """Names by address, without the paddings before functions, which go where their function goes."""
    return re.findall(rf"^[0-9a-f]+ [{types}] (?!__pfx_)(\S+)$", image.symbols.read_text(), re.M)


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


def test_the_functions_of_a_file_come_first_and_all_others_as_they_were(
    layouts: list[Image], ordered: list[Image]
) -> None:
    text = [between(image, "_stext", "_etext") for image in (layouts[0], *ordered)]
    for names in text[1:]:
        assert sorted(names) == sorted(text[0])
        at = names.index(FIRST[0])
        assert [name for name in names[at : at + 2 * len(FIRST)] if name in FIRST] == list(FIRST)
        assert names.index("entry_SYSCALL_64") > at
    seeded, _, both = ([name for name in names if name not in FIRST] for names in text)
    assert seeded == both
    for image in ordered:
        [note] = (note for note in image.record.notes if note.startswith("order: "))
        assert note.startswith("order: 5 of its 8 functions come first; 3 (37.5 %) were not placed: 2 have no section")


def test_what_the_script_places_stays_in_place(layouts: list[Image]) -> None:
    for first, last in (("__sched_text_start", "__sched_text_end"), ("__initcall_start", "__initcall_end")):
        one, two = (between(image, first, last) for image in layouts)
        assert one == two
        assert len(one) > 5


def test_every_layout_boots(kdyno: Kdyno, layouts: list[Image], ordered: list[Image]) -> None:
    for image in (*layouts, *ordered):
        done = kdyno("boot", image.record.key, "--lane", "model", command=("uname", "-r"))
        assert done.stdout.strip() == image.record.release


MEASURED = """
[workload]
tests = ["lat_syscall"]
[machine.pmu]
clock = "cycles"
"""


def test_variants_that_differ_only_in_link_order_are_no_different_once_layout_is_sampled(
    kdyno: Kdyno, all_layouts: list[Image]
) -> None:
    text = f"layouts = 2\n[variants.one]\n{WITH_ROOT}[variants.other]\n{WITH_ROOT}layout_seed = 7\n{MEASURED}"
    report = json.loads(kdyno("run", kdyno.experiment("order", text, baseline="one", blocks=4), "--json").stdout)
    booted = {image["key"] for variant in report["run"]["variants"] for image in variant["images"]}
    assert booted == {image.record.key for image in all_layouts}
    assert {boot["layout_index"] for boot in report["boots"]} == {0, 1}
    for comparison in report["comparisons"]:
        assert (
            comparison["estimate"]["method"],
            comparison["estimate"]["units"],
            comparison["estimate"]["blocks"],
        ) == ("layouts", 2, 4)
        assert comparison["verdict"] not in DIFFERENT, comparison["sentence"]
    assert not any("layout wasn't sampled" in notice for notice in report["notices"])


def test_without_layouts_the_report_says_that_layout_was_not_sampled(kdyno: Kdyno, layouts: list[Image]) -> None:
    seeds = [image.record.recipe.layout_seed for image in layouts]
    text = "".join(f"[variants.order-{seed}]\n{WITH_ROOT}layout_seed = {seed}\n" for seed in seeds) + MEASURED
    path = kdyno.experiment("two", text, baseline=f"order-{seeds[0]}", blocks=2)
    assert "\nnote: cycles are modelled" in kdyno("run", path).stdout
    notices = json.loads(kdyno("report", "latest", "--json").stdout)["notices"]
    assert any(notice.startswith("layout wasn't sampled") for notice in notices)
