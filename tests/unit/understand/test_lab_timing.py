"""Times of routines: cells and sizes, programs of several link orders, and the judgement of planted times."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import jsonschema
import numpy as np
import pytest
from numpy.typing import NDArray

from kdyno.base import process
from kdyno.cli.schemas import schema
from kdyno.kernel.routines.families import RoutineFamily, counted_routines, routine_families
from kdyno.understand.lab.build import RoutineBuild, link_program
from kdyno.understand.lab.heat_map import heat_map
from kdyno.understand.lab.lines import time_lines, verdict_text
from kdyno.understand.lab.time_lab import load_sizes
from kdyno.understand.lab.timing import (
    CallCell,
    RoutineTimes,
    SizesUnreadable,
    cell_text,
    plan_cells,
    read_cycles,
    read_distributions,
)
from kdyno.understand.lab.verdicts import LabTimes, judge_times
from tests.unit.lab_specimen import rewrite_build

MEMCPY = routine_families()["memcpy"]
SMALL = MEMCPY.model_copy(
    update={"sizes": (8, 64), "offsets": ((0, 0), (3, 5)), "modes": ("warm",), "classes": ((9, 16), (17, 64))}
)
NAMES = ("words", "words-rep-from-256", "words-rep-from-1024", "rep-but-128-to-383")


def cells_of(family: RoutineFamily) -> list[CallCell]:
    return plan_cells(family, np.random.default_rng(3))


def times_of(build: RoutineBuild, factors: NDArray[np.float64], blocks: int = 16) -> RoutineTimes:
    """Times of 100 cycles with 1 % of noise, multiplied by factors of shape (cells, candidates)."""
    noise = np.exp(np.random.default_rng(4).normal(0, 0.01, (blocks, *factors.shape)))
    return RoutineTimes(replace(build, family=SMALL), tuple(cells_of(SMALL)), 100 * noise * factors)


def report_of(times: RoutineTimes) -> LabTimes:
    return LabTimes(
        cpu="a CPU", source="Linux 6.12", arch="x86_64", blocks=len(times.cycles), families=(judge_times(times),)
    )


@pytest.fixture(name="build", scope="module")
def made_build(tmp_path_factory: pytest.TempPathFactory) -> RoutineBuild:
    return rewrite_build("memcpy", tmp_path_factory.mktemp("routines"))


# Cells.


def test_cells_are_of_each_size_and_offset_and_of_each_class() -> None:
    cells = cells_of(SMALL)
    assert [cell.name for cell in cells] == [
        "8 at 0,0, warm",
        "8 at 3,5, warm",
        "64 at 0,0, warm",
        "64 at 3,5, warm",
        "9-16, warm",
        "17-64, warm",
    ]
    for size, to, from_ in cells[1].requests:
        assert (size, to % 64, from_ % 64) == (8, 3, 5)
    sizes = {size for size, _, _ in cells[4].requests}
    assert sizes <= set(range(9, 17)) and len(sizes) > 4


def test_sizes_of_a_load_are_as_frequent_as_in_its_distribution() -> None:
    cells = plan_cells(SMALL, np.random.default_rng(3), [(40, 3), (1500, 1)])
    drawn = [size for cell in cells if cell.name.startswith("load") for size, _, _ in cell.requests]
    assert set(drawn) == {40, 1500}
    assert drawn.count(40) / len(drawn) == pytest.approx(0.75, abs=0.01)


def test_a_distribution_is_read_from_csv(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text("size,count,to\n40,3,0\n1500,1,8\n", encoding="utf-8")
    assert read_distributions(path)[""] == [(40, 3.0), (1500, 1.0)]


def test_a_distribution_may_be_of_several_families(tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_text(
        "routine,size,count\nmemcpy,40,3\nstrlen,5,2\nstrlen,6,0\nmemset,1,0\nmemcpy,2000000,9\n", encoding="utf-8"
    )
    assert read_distributions(path) == {"memcpy": [(40, 3.0)], "strlen": [(5, 2.0), (6, 0.0)]}


@pytest.mark.parametrize(
    "text",
    [
        *("", "a,b\n1,2\n", "size,count\n", "size,count\n1,0\n", "size,count\n-1,5\n", "size,count\n1\n", "\xff"),
        *(
            f"size,count\n1,{'9' * 400}\n",
            f"size,count\n{'9' * 5000},1\n",
            "size,count\n9999999,1\n",
            "size,count\n1,\0\n",
        ),
    ],
)
def test_a_distribution_without_sizes_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "sizes.csv"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(SizesUnreadable):
        read_distributions(path)


def test_a_distribution_in_something_else_than_a_file_is_refused_in_plain_words() -> None:
    with pytest.raises(SizesUnreadable) as refused:
        read_distributions(Path("/dev/zero"))
    assert "not a regular file" in str(refused.value) and "Errno" not in str(refused.value)


# The harness.


def test_the_harness_times_each_candidate_in_each_cell(build: RoutineBuild, tmp_path: Path) -> None:
    program = link_program(tmp_path, build.family, build.built, 0, np.random.default_rng(1))
    cells = cells_of(SMALL.model_copy(update={"modes": ("warm", "cold", "used")}))
    done = process.attempt([program, "time", "7"], stdin="".join(map(cell_text, cells)))
    assert done.returncode == 0, done.stderr
    cycles = read_cycles(done.stdout, (len(cells), len(build.built)))
    assert np.isfinite(cycles).all() and (cycles > 0).all()
    warm, cold = cycles[2].min(), cycles[[cell.mode for cell in cells].index("cold") + 2].min()
    assert cold > warm


@pytest.mark.parametrize(
    "text", ["warm 0\n", "warm 65\n", "warm 1\n1 0\n", "warm 1\n9999999 0 0\n", "warm 1\n1 4096 0\n"]
)
def test_the_harness_refuses_cells_that_it_cannot_place(text: str, build: RoutineBuild, tmp_path: Path) -> None:
    program = link_program(tmp_path, build.family, build.built, 0, np.random.default_rng(1))
    assert process.attempt([program, "time", "7"], stdin=text).returncode == 2


def test_programs_of_two_blocks_have_their_routines_at_other_places(build: RoutineBuild, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    places = []
    for number in range(2):
        program = link_program(tmp_path, build.family, build.built, number, rng)
        symbols = process.output(["nm", program])
        places.append([line for line in symbols.splitlines() if "lab_candidate" in line])
    assert len(places[0]) == len(build.built)
    assert places[0] != places[1]


# Judgements.


def test_a_candidate_that_is_faster_wins_with_its_interval(build: RoutineBuild) -> None:
    factors = np.ones((6, len(NAMES)))
    factors[4, 2] = 0.7
    report = judge_times(times_of(build, factors))
    wins = {row.name: row.winner for row in report.mixed}
    assert (wins["9-16"].name, wins["9-16"].verdict) == ("words-rep-from-1024", "faster")
    low, high = wins["9-16"].low, wins["9-16"].high
    assert low is not None and high is not None
    assert low < 0.7 < high and high - low < 0.05
    assert not wins["17-64"].is_faster


def test_the_kernels_own_choice_is_best_where_all_others_are_slower(build: RoutineBuild) -> None:
    factors = np.full((6, len(NAMES)), 1.3)
    factors[:, 0] = 1
    report = judge_times(times_of(build, factors))
    winners = [row.winner for row in report.mixed] + [row.winner for row in report.fixed]
    assert all(winner.is_own and winner.ratio == 1 for winner in winners)
    assert verdict_text(report.mixed[0].winner) == "the kernel's own is best"


def test_of_equal_candidates_none_is_faster(build: RoutineBuild) -> None:
    """The best of four by chance isn't, in the blocks that didn't choose it."""
    report = judge_times(times_of(build, np.ones((6, len(NAMES)))))
    winners = [row.winner for row in report.mixed] + [row.winner for row in report.fixed]
    assert not any(winner.is_faster for winner in winners)


def test_times_are_printed_drawn_and_written_as_their_schema_says(build: RoutineBuild) -> None:
    factors = np.ones((6, len(NAMES)))
    factors[1, 3] = 0.5
    report = report_of(times_of(build, factors))
    text = "\n".join(time_lines(report))
    assert "memcpy: copies bytes between places that do not overlap; a kernel takes words here" in text
    assert "rep-but-128-to-383 faster at 1; none faster than the kernel's own at 3" in text
    assert "lane wall: cycles of the core per call, on a CPU" in text
    picture = ElementTree.fromstring(heat_map(report))
    labels = [element.text for element in picture.iter("{http://www.w3.org/2000/svg}text")]
    assert "D-50" in labels and "64" in labels
    jsonschema.validate(json.loads(report.model_dump_json()), schema("lab-time"))


def test_a_family_gets_the_sizes_of_all_routines_that_are_counted_as_it() -> None:
    families = routine_families()
    distributions = {"copy_from_user": [(8, 2.0)], "copy_to_user": [(16, 1.0)], "": [(32, 1.0)]}
    assert load_sizes(families["copy_user"], distributions) == [(8, 2.0), (16, 1.0)]
    assert load_sizes(families["memcpy"], distributions) == [(32, 1.0)]
    assert load_sizes(families["memcpy"], {"strlen": [(8, 1.0)]}) == ()
    counted = {routine.name for routine in counted_routines()}
    assert all(counted.issuperset(family.counted_as) for family in families.values())
