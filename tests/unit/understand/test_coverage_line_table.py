"""Line tables as llvm-dwarfdump lists them."""

from __future__ import annotations

import numpy as np

from kdyno.understand.coverage.line_table import LineTable, in_tree, parse_line_table

DWARF_4 = """\
vmlinux:	file format elf64-x86-64

.debug_line contents:
debug_line[0x00000000]
Line table prologue:
         version: 4
include_directories[  1] = "../kernel"
include_directories[  2] = "include/generated"
file_names[  1]:
           name: "work.c"
      dir_index: 1
       mod_time: 0x00000000
file_names[  2]:
           name: "bounds.h"
      dir_index: 2
       mod_time: 0x00000000

Address            Line   Column File   ISA Discriminator OpIndex Flags
------------------ ------ ------ ------ --- ------------- ------- -------------
0xffffffff81000000      3      1      1   0             0       0  is_stmt
0xffffffff81000004      3      5      1   0             2       0 
0xffffffff81000008      4      1      1   0             0       0  is_stmt
0xffffffff81000008      5      1      1   0             0       0  is_stmt
0xffffffff81000008      5      9      1   0             0       0 
0xffffffff81000010      0      0      1   0             0       0 
0xffffffff81000012      7      0      2   0             0       0 
0xffffffff81000020      7      0      2   0             0       0  is_stmt end_sequence
0xffffffff81000100      9      0      1   0             0       0  is_stmt
0xffffffff81000110      9      0      1   0             0       0  end_sequence
"""  # noqa: W291

DWARF_5 = """\
debug_line[0x00000040]
         version: 5
include_directories[  0] = "/builds/key/o"
include_directories[  1] = "../include/linux"
file_names[  0]:
           name: "../init/main.c"
      dir_index: 0
   md5_checksum: 7c8422714200c72a011743f92b93f4d0
file_names[  1]:
           name: "string.h"
      dir_index: 1

Address            Line   Column File   ISA Discriminator Flags
------------------ ------ ------ ------ --- ------------- -------------
0xffffffff81000010    184      0      0   0             0  is_stmt
0xffffffff81000014     20     16      1   0             0  is_stmt prologue_end
0xffffffff81000018     20     16      1   0             0  end_sequence
"""

Rows = list[tuple[int, int, str, int, bool]]
TEXT = 0xFFFF_FFFF_8100_0000


def rows(table: LineTable, what: str) -> Rows:
    """Start and end from the text on, file, line, and whether the line begins there."""
    array = getattr(table, what)
    files = [table.files[number] for number in array["file"]]
    starts, ends = ((array[name] - np.uint64(TEXT)).tolist() for name in ("start", "end"))
    return list(zip(starts, ends, files, array["line"].tolist(), array["begins"].tolist(), strict=True))


def test_rows_without_a_line_or_behind_the_end_are_no_pieces() -> None:
    table = parse_line_table(DWARF_4)
    assert rows(table, "pieces") == [
        (0, 4, "kernel/work.c", 3, True),
        (4, 8, "kernel/work.c", 3, False),
        (8, 0x10, "kernel/work.c", 5, True),
        (0x12, 0x20, "o/include/generated/bounds.h", 7, False),
        (0x100, 0x110, "kernel/work.c", 9, True),
    ]


def test_a_line_that_begins_where_another_has_the_code_is_a_mark() -> None:
    marks = rows(parse_line_table(DWARF_4), "marks")
    assert [(start, end, line) for start, end, _, line, _ in marks] == [(8, 8, 4), (8, 8, 5)]


def test_both_versions_of_dwarf_name_files_relative_to_the_tree() -> None:
    table = parse_line_table(DWARF_4 + "\n" + DWARF_5)
    assert set(table.files) == {
        "kernel/work.c",
        "o/include/generated/bounds.h",
        "init/main.c",
        "include/linux/string.h",
    }
    assert rows(table, "pieces")[3:5] == [
        (0x10, 0x14, "init/main.c", 184, True),
        (0x12, 0x20, "o/include/generated/bounds.h", 7, False),
    ]


def test_a_file_outside_of_source_and_objects_keeps_its_path() -> None:
    assert in_tree("/usr/include/stdio.h", "/builds/key/o") == "/usr/include/stdio.h"
    assert in_tree("/builds/key/o/../mm/slub.c", "/builds/key/o") == "mm/slub.c"
    assert in_tree("include/generated/a.h", "") == "o/include/generated/a.h"


def test_a_listing_without_tables_has_no_lines() -> None:
    table = parse_line_table("vmlinux:	file format elf64-x86-64\n")
    assert (table.files, len(table.pieces), len(table.marks)) == ((), 0, 0)
    assert table.lines_at(table.pieces["start"]) == []
