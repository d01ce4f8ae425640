"""Source files of functions: from listings as llvm-dwarfdump prints them, and from a program that is compiled here."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from kdyno.profile.llvm_tools import LlvmToolMissing, find_tool
from kdyno.profile.units import Unit, UnitMap, files_by_symbol, files_of, read_units
from kdyno.profile.vmlinux import NoLineTables

LISTING = """
/b/o/vmlinux:	file format elf64-x86-64

.debug_info contents:
0x00000000: Compile Unit: length = 0x00019c86, format = DWARF32, version = 0x0004, abbr_offset = 0x0000

0x0000000b: DW_TAG_compile_unit
              DW_AT_producer	("GNU C11 12.2.0 [0x1, 0x2)")
              DW_AT_name	("../fs/read_write.c")
              DW_AT_comp_dir	("/b/o")
              DW_AT_ranges	(0x00000ae0
                 [0xffffffff81000400, 0xffffffff81000500)
                 [0xffffffff81a02010, 0xffffffff81a02028))
              DW_AT_low_pc	(0x0000000000000000)
              DW_AT_stmt_list	(0x00000000)
0x00019c8a: Compile Unit: length = 0x00002feb, format = DWARF32, version = 0x0005, abbr_offset = 0x0e77

0x00019c95: DW_TAG_compile_unit
              DW_AT_name	("../mm/slub.c")
              DW_AT_comp_dir	("/b/o")
              DW_AT_low_pc	(0xffffffff81000500)
              DW_AT_high_pc	(0xffffffff81000600)
0x00019d8a: Compile Unit: length = 0x00002feb, format = DWARF32, version = 0x0005, abbr_offset = 0x0e77

0x00019d95: DW_TAG_compile_unit
              DW_AT_name	("lib/oid_registry_data.c")
              DW_AT_comp_dir	("/b/o")
              DW_AT_low_pc	(0xffffffff81000700)
              DW_AT_high_pc	(0xffffffff81000710)
0x00019e8a: Compile Unit: length = 0x00002feb, format = DWARF32, version = 0x0005, abbr_offset = 0x0e77

0x00019e95: DW_TAG_compile_unit
              DW_AT_name	("../mm/empty.c")
              DW_AT_comp_dir	("/b/o")
"""
TWICE = 'static __attribute__((noinline)) void twice(void) { __asm__(""); }\n'
SOURCES = {
    "a/one.c": "void _start(void) { twice(); }\n",
    "b/two.c": '__attribute__((section(".other"))) void other(void) { twice(); }\n',
}
NM = """
ffffffff81000400 0000000000000010 T vfs_read
ffffffff81a02010 0000000000000010 t vfs_read.cold
ffffffff81000480 0000000000000010 t type_show
ffffffff81000500 0000000000000010 t type_show
ffffffff81000700 0000000000000010 T made
ffffffff81000600 t between
ffffffff80000000 A absolute
ffffffff81000600 0000000000000010 t between
"""


def test_functions_get_the_file_of_the_unit_that_their_address_is_in() -> None:
    assert files_by_symbol(NM, UnitMap(list(read_units(LISTING)))) == {
        "made": ("lib/oid_registry_data.c",),
        "type_show": ("fs/read_write.c", "mm/slub.c"),
        "vfs_read": ("fs/read_write.c",),
        "vfs_read.cold": ("fs/read_write.c",),
    }


@pytest.mark.parametrize(
    ("directory", "files"),
    [
        ("/usr/src/linux", ("fs/a.c", "mm/b.c")),
        ("/tmp/o", ("/usr/src/linux/fs/a.c", "/usr/src/linux/mm/b.c")),
        ("/usr/src/linux/o", ("../fs/a.c", "/usr/src/linux/mm/b.c")),
    ],
)
def test_files_are_relative_to_the_tree_wherever_the_compiler_ran(directory: str, files: tuple[str, str]) -> None:
    units = UnitMap([Unit(file, directory, ((place, place + 8),)) for place, file in enumerate(files, 1)])
    assert units.file_at(1) == "fs/a.c"
    assert units.file_at(9) == "mm/b.c"
    assert units.file_at(0) is None
    assert units.file_at(10) is None


def test_a_range_that_ends_before_it_starts_is_nobodys_code() -> None:
    assert UnitMap([Unit("a.c", "/b", ((8, 4),))]).file_at(6) is None


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files that both have a static function `twice`, one of them in two sections."""
    try:
        find_tool("llvm-dwarfdump")
    except LlvmToolMissing as missing:
        pytest.skip(str(missing))
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    directory = tmp_path_factory.mktemp("units")
    for name, body in SOURCES.items():
        (directory / name).parent.mkdir()
        (directory / name).write_text(TWICE + body)
    return directory


@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5"])
def test_a_program_of_two_files_has_the_static_function_twice(directory: Path, dwarf: str) -> None:
    command = [
        "gcc",
        "-O2",
        "-g1",
        dwarf,
        "-nostdlib",
        "-static",
        "-ffunction-sections",
        "a/one.c",
        "b/two.c",
        "-o",
        "out",
    ]
    subprocess.run(command, cwd=directory, check=True)
    assert files_of(directory / "out") == {
        "_start": ("a/one.c",),
        "other": ("b/two.c",),
        "twice": ("a/one.c", "b/two.c"),
    }


def test_a_vmlinux_without_line_tables_is_refused(directory: Path) -> None:
    subprocess.run(["gcc", "-nostdlib", "-static", "a/one.c", "-o", "bare"], cwd=directory, check=True)
    with pytest.raises(NoLineTables):
        files_of(directory / "bare")
