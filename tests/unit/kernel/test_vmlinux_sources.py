"""Which file the code at an address is from."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from kdyno.kernel.vmlinux.checks import NoLineTables, NotAVmlinux
from kdyno.kernel.vmlinux.sources import NOWHERE, CompilationUnit, Sources, files_of, in_tree, read_sources

UNITS = [
    CompilationUnit(
        "init/main.c",
        ((0xFFFFFFFF81000400, 0xFFFFFFFF81000543), (0xFFFFFFFF81A02010, 0xFFFFFFFF81A02028)),
        "../init/main.c",
    ),
    CompilationUnit("fs/open.c", ((0xFFFFFFFF81000543, 0xFFFFFFFF81000600),), "../fs/open.c"),
]


def test_an_address_is_in_the_range_that_begins_at_it_and_not_in_the_one_that_ends_there() -> None:
    sources = Sources(UNITS)
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
