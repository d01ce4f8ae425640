"""Which file the code at an address is from: what llvm-dwarfdump lists, and what compilers write."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kdyno.profile.sources import NOWHERE, Sources, Unit, files_of, in_tree, read_sources, read_units
from kdyno.profile.vmlinux import NoLineTables, NotAVmlinux

LISTING = """vmlinux:	file format elf64-x86-64

.debug_info contents:
0x00000000: Compile Unit: length = 0x00019c86, format = DWARF32, version = 0x0004

0x0000000b: DW_TAG_compile_unit
              DW_AT_producer	("GNU C11 12.2.0 -O2")
              DW_AT_name	("../init/main.c")
              DW_AT_comp_dir	("/state/builds/key/o")
              DW_AT_ranges	(0x00000ae0
                 [0xffffffff81000400, 0xffffffff81000543)
                 [0xffffffff81a02010, 0xffffffff81a02028))
              DW_AT_low_pc	(0x0000000000000000)
0x00019c8a: Compile Unit: length = 0x00002feb, format = DWARF32, version = 0x0005

0x00019c95: DW_TAG_compile_unit
              DW_AT_name	("../fs/open.c")
              DW_AT_comp_dir	("/state/builds/key/o")
              DW_AT_low_pc	(0xffffffff81000543)
              DW_AT_high_pc	(0xffffffff81000600)
0x0001cc79: Compile Unit: length = 0x00000020, format = DWARF32, version = 0x0004

0x0001cc84: DW_TAG_compile_unit
              DW_AT_name	("../init/version-timestamp.c")
              DW_AT_comp_dir	("/state/builds/key/o")
"""


def test_a_unit_has_its_ranges_or_its_bounds_and_one_without_code_is_left_out() -> None:
    main, opened = read_units(LISTING)
    assert main == Unit(
        "init/main.c",
        ((0xFFFFFFFF81000400, 0xFFFFFFFF81000543), (0xFFFFFFFF81A02010, 0xFFFFFFFF81A02028)),
        "../init/main.c",
    )
    assert opened == Unit("fs/open.c", ((0xFFFFFFFF81000543, 0xFFFFFFFF81000600),), "../fs/open.c")


def test_an_address_is_in_the_range_that_begins_at_it_and_not_in_the_one_that_ends_there() -> None:
    sources = Sources(read_units(LISTING))
    addresses = [0, 0xFFFFFFFF81000400, 0xFFFFFFFF81000542, 0xFFFFFFFF81000543, 0xFFFFFFFF81000600, 0xFFFFFFFF81A02027]
    expected = [NOWHERE, "init/main.c", "init/main.c", "fs/open.c", NOWHERE, "init/main.c"]
    assert sources.files(np.array(addresses, np.uint64)) == expected
    assert sources.names(np.array(addresses[1:5], np.uint64)) == [*["../init/main.c"] * 2, "../fs/open.c", NOWHERE]
    assert Sources([]).files(np.array(addresses, np.uint64)) == [NOWHERE] * len(addresses)


@pytest.mark.parametrize(
    ("name", "objects", "expected"),
    [
        ("../kernel/fork.c", "/state/builds/key/o", "kernel/fork.c"),
        ("/state/builds/key/kernel/fork.c", "/state/builds/key/o", "kernel/fork.c"),
        ("drivers/tty/vt/defkeymap.c", "/state/builds/key/o", "drivers/tty/vt/defkeymap.c"),
        ("kernel/fork.c", "", "kernel/fork.c"),
        ("/usr/src/other.c", "/state/builds/key/o", "/usr/src/other.c"),
    ],
)
def test_a_name_is_relative_to_the_tree_however_it_was_given_to_the_compiler(
    name: str, objects: str, expected: str
) -> None:
    assert in_tree(name, objects) == expected


@pytest.mark.parametrize("compiler", ["gcc", "clang-19"])
@pytest.mark.parametrize("dwarf", ["-gdwarf-4", "-gdwarf-5"])
def test_functions_of_real_objects_are_found_in_the_file_that_was_compiled(
    tmp_path: Path, compiler: str, dwarf: str
) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    (tmp_path / "o").mkdir()
    (tmp_path / "inline.h").write_text("static int of_header(int x) { return x * 7; }\n")
    (tmp_path / "first.c").write_text(
        '#include "inline.h"\nint (*pointer)(int) = of_header;\nint second(int);\n'
        "int main(void) { return second(3); }\n"
    )
    (tmp_path / "second.c").write_text("int second(int x) { return x + 1; }\n")
    for name in ("first", "second"):
        words = [compiler, "-c", "-O1", "-g1", dwarf, "-ffunction-sections", f"../{name}.c", "-o", f"{name}.o"]
        subprocess.run(words, cwd=tmp_path / "o", check=True)
    subprocess.run(["gcc", "-no-pie", "first.o", "second.o", "-o", "program"], cwd=tmp_path / "o", check=True)
    program = tmp_path / "o" / "program"
    listed = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout
    addresses = {line.split()[-1]: int(line.split()[0], 16) for line in listed.splitlines() if len(line.split()) == 3}
    wanted = np.array([addresses[name] for name in ("main", "of_header", "second", "_start")], np.uint64)
    assert read_sources(program).files(wanted) == ["first.c", "first.c", "second.c", NOWHERE]
    assert files_of(program) == {"main": ("first.c",), "of_header": ("first.c",), "second": ("second.c",)}


def test_what_has_no_line_tables_or_is_no_elf_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(NoLineTables):
        read_sources(Path(shutil.which("true") or "/bin/true"))
    (tmp_path / "text").write_text("x" * 100)
    with pytest.raises(NotAVmlinux):
        read_sources(tmp_path / "text")
