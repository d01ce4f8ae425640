"""Line tables as assemblers write them."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from kdyno.base.debuginfo import Lines
from kdyno.understand.coverage.line_table import LineTable, in_tree, one_table, read_line_table

DWARF_4 = """\
.macro code bytes
.rept \\bytes
nop
.endr
.endm
.file 1 "../kernel/work.c"
.file 2 "include/generated/bounds.h"
.text
.loc 1 3 1 is_stmt 1
code 4
.loc 1 3 5 is_stmt 0
code 4
.loc 1 4 1 is_stmt 1
.loc 1 5 1 is_stmt 1
.loc 1 5 9 is_stmt 0
code 8
.loc 2 7 0 is_stmt 0
code 14
.section .text.behind, "ax"
.balign 0x100
.loc 1 9 0 is_stmt 1
code 16
"""
DWARF_5 = """\
.file 0 "/builds/key/o" "../init/main.c"
.file 1 "../include/linux" "string.h"
.text
.balign 0x100
.loc 0 184 0
.rept 4
nop
.endr
.loc 1 20 16
.rept 4
nop
.endr
"""

Rows = list[tuple[int, int, str, int, bool]]
TEXT = 0xFFFF_FFFF_8100_0000


def rows(table: LineTable, what: str) -> Rows:
    """Start and end from the text on, file, line, and whether the line begins there."""
    array = getattr(table, what)
    files = [table.files[number] for number in array["file"]]
    starts, ends = ((array[name] - np.uint64(TEXT)).tolist() for name in ("start", "end"))
    return list(zip(starts, ends, files, array["line"].tolist(), array["begins"].tolist(), strict=True))


def linked(directory: Path, *, version_5: bool = False) -> LineTable:
    """The tables of a program; version_5: a second object has one of DWARF 5."""
    sources = {"4": DWARF_4, **({"5": DWARF_5} if version_5 else {})}
    for version, text in sources.items():
        words = ["as", f"--gdwarf-{version}", "-o", f"{version}.o", "-"]
        subprocess.run(words, input=text, text=True, check=True, cwd=directory)
    objects = [f"{version}.o" for version in sources]
    words = ["ld", f"-Ttext={TEXT:#x}", "-e", f"{TEXT:#x}", *objects, "-o", "vmlinux"]
    subprocess.run(words, check=True, cwd=directory)
    return read_line_table(directory / "vmlinux")


def test_rows_behind_the_end_are_no_pieces(tmp_path: Path) -> None:
    assert rows(linked(tmp_path), "pieces") == [
        (0, 4, "kernel/work.c", 3, True),
        (4, 8, "kernel/work.c", 3, False),
        (8, 0x10, "kernel/work.c", 5, True),
        (0x10, 0x1E, "o/include/generated/bounds.h", 7, False),
        (0x100, 0x110, "kernel/work.c", 9, True),
    ]


def test_a_line_that_begins_where_another_has_the_code_is_a_mark(tmp_path: Path) -> None:
    marks = rows(linked(tmp_path), "marks")
    assert [(start, end, line) for start, end, _, line, _ in marks] == [(8, 8, 4), (8, 8, 5)]


def test_both_versions_of_dwarf_name_files_relative_to_the_tree(tmp_path: Path) -> None:
    table = linked(tmp_path, version_5=True)
    assert set(table.files) == {
        "kernel/work.c",
        "o/include/generated/bounds.h",
        "init/main.c",
        "include/linux/string.h",
    }
    assert rows(table, "pieces")[-2:] == [
        (0x200, 0x204, "init/main.c", 184, True),
        (0x204, 0x208, "include/linux/string.h", 20, True),
    ]


def test_a_file_outside_of_source_and_objects_keeps_its_path() -> None:
    assert in_tree("/usr/include/stdio.h", "/builds/key/o") == "/usr/include/stdio.h"
    assert in_tree("/builds/key/o/../mm/slub.c", "/builds/key/o") == "mm/slub.c"
    assert in_tree("include/generated/a.h", "") == "o/include/generated/a.h"


def test_a_file_without_tables_has_no_lines() -> None:
    table = one_table(Lines([], []))
    assert (table.files, len(table.pieces), len(table.marks)) == ((), 0, 0)
    assert table.lines_at(table.pieces["start"]) == []
