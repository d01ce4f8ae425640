"""Orders of functions: units of a vmlinux, clusters, what kdyno-layout is asked, and the lines that come out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kdyno.base.installed import find_program
from kdyno.base.process import attempt
from kdyno.kernel.vmlinux.sources import CompilationUnit as File
from kdyno.kernel.vmlinux.sources import Sources
from kdyno.measure.cycles.family import load_family
from kdyno.profile.order import _lines
from kdyno.profile.order_c3 import c3
from kdyno.profile.order_job import MAGIC, Answer, OrderSearch, job, read_answer
from kdyno.profile.order_start import start_order
from kdyno.profile.order_units import OrderUnit, Text, text_of
from tests.unit.pmu_specimen import COLD, ENTRY, TAIL, TEXT, WORK, traced

LISTING = """
ffffffff81000000 T _text
ffffffff81000000 0000000000000056 T startup_64
ffffffff81000100 0000000000000010 t __pfx_vfs_read
ffffffff81000110 0000000000000030 T alias_of_vfs_read
ffffffff81000110 0000000000000030 t vfs_read
ffffffff81000140 0000000000000020 T memcpy
ffffffff81000160 0000000000000020 T memset
ffffffff81000180 0000000000000014 t twice
ffffffff810001a0 0000000000000014 t twice
ffffffff81000200 0000000000000018 t late
ffffffff81000219 0000000000000005 t vfs_read.cold
ffffffff81000300 T __noinstr_text_start
ffffffff81000300 0000000000000010 T exc_page_fault
ffffffff81200000 T __entry_text_start
ffffffff81200000 0000000000000010 T entry_SYSCALL_64
ffffffff81400000 T _etext
"""
FILES = Sources(
    [
        File("arch/x86/kernel/head_64.S", ((TEXT, TEXT + 0x100),)),
        File("fs/read_write.c", ((TEXT + 0x100, TEXT + 0x140), (TEXT + 0x180, TEXT + 0x400))),
        File("arch/x86/lib/memcpy_64.S", ((TEXT + 0x140, TEXT + 0x180),)),
    ]
)


def test_units_are_functions_with_their_padding_and_assembly_code_stays() -> None:
    text = text_of(LISTING, FILES)
    units = [(unit.name, unit.start - TEXT, unit.end - TEXT, unit.align, unit.kind) for unit in text.units]
    assert units == [
        ("startup_64", 0, 0x56, 16, "fixed"),
        ("alias_of_vfs_read", 0x100, 0x140, 16, "movable"),
        ("memcpy", 0x140, 0x180, 16, "staying"),
        ("twice", 0x180, 0x194, 16, "staying"),  # lkd would move both
        ("twice", 0x1A0, 0x1B4, 16, "staying"),
        ("", 0x1C0, 0x200, 1, "staying"),  # of a weak function that was overridden
        ("late", 0x200, 0x218, 16, "movable"),
        ("", 0x218, 0x219, 1, "staying"),
        ("vfs_read.cold", 0x219, 0x21E, 1, "movable"),
        ("exc_page_fault", 0x300, 0x310, 16, "behind"),
    ]
    assert text.base == TEXT + 0x100


def test_functions_join_the_cluster_of_their_most_frequent_caller_and_dense_clusters_come_first() -> None:
    sizes = {0: 100, 1: 100, 2: 100, 3: 100, 4: 1000}
    weights = {0: 50.0, 1: 40.0, 2: 90.0, 3: 80.0, 4: 1.0}
    calls = {(0, 1): 5.0, (2, 1): 4.0, (2, 3): 9.0, (0, 4): 1.0}
    # 4 would thin its caller's cluster out less than eightfold; 1 follows 0, which calls it more often than 2 does.
    assert c3(sizes, weights, calls) == [2, 3, 0, 1, 4]


def test_what_would_thin_a_cluster_out_stays_alone() -> None:
    assert c3({0: 10, 1: 10, 2: 1000}, {0: 90.0, 1: 50.0, 2: 1.0}, {(0, 2): 9.0}) == [0, 1, 2]


def specimen_text() -> Text:
    units = [
        OrderUnit("do_work.constprop.0", WORK, WORK + 0x80, 16, "movable"),
        OrderUnit("do_work.constprop.0.cold", COLD, COLD + 0x10, 1, "movable"),
        OrderUnit("finish", TAIL, TAIL + 0x20, 16, "movable"),
        OrderUnit("never", TAIL + 0x40, TAIL + 0x80, 16, "movable"),
    ]
    return Text(units, ENTRY)


def test_a_search_starts_from_what_ran_and_can_be_moved() -> None:
    assert start_order([traced()], specimen_text()) == [0, 2]


def test_a_job_is_answered_with_every_unit_where_it_should_be(tmp_path: Path) -> None:
    families = [load_family("znver4"), load_family("sapphirerapids")]
    data = job([traced()], specimen_text(), families, [[0, 2]], OrderSearch(50, 1, 0.01))
    (tmp_path / "job").write_bytes(data)
    assert data.startswith(f"{MAGIC}\n".encode())
    done = attempt([find_program("kdyno-layout", "a test"), tmp_path / "job"])
    assert done.returncode == 0, done.stderr
    answer = read_answer(done.stdout)
    # Two regions have a trace.
    assert answer.recorded.shape == answer.start.shape == answer.best.shape == (2, 2)
    assert sorted(unit for unit, _ in answer.units) == [0, 2, 3]
    assert json.loads(done.stdout)["orders"][0][0][0]["l1i_misses"] == 0
    assert attempt([find_program("kdyno-layout", "a test"), tmp_path / "job"]).stdout == done.stdout


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        (lambda data: data[:-8], "cut short"),
        (lambda data: data + b"x", "more follows"),
        (lambda data: data.replace(b"kdyno-layout 1", b"kdyno-layout 9"), "does not begin"),
        (lambda data: data.replace(b"[[0, 2]]", b"[[0, 0]]"), "comes twice"),
        (lambda data: data.replace(b"[[0, 2]]", b"[[0, 9]]"), "can't be ordered"),
    ],
)
def test_a_job_that_is_none_is_refused(tmp_path: Path, changed: object, why: str) -> None:
    data = job([traced()], specimen_text(), [load_family("znver4")], [[0, 2]], OrderSearch(0, 1, None))
    assert callable(changed)
    (tmp_path / "job").write_bytes(changed(data))
    done = attempt([find_program("kdyno-layout", "a test"), tmp_path / "job"])
    assert done.returncode == 1
    assert why in done.stderr


def test_gaps_are_comments_and_a_part_that_has_no_alignment_gets_one() -> None:
    cycles = np.ones((1, 1))
    answer = Answer(cycles, cycles, cycles, [(2, 0), (3, 32), (1, 96), (0, 160)], 8192)
    lines = list(_lines(answer, specimen_text(), 3, "none"))
    assert lines[1:] == [
        "#: align 4096",
        "finish",
        "never",
        "#: at 96",
        "do_work.constprop.0.cold",
        "#: at 160",
        "do_work.constprop.0",
        "#: at 8192",
    ]
