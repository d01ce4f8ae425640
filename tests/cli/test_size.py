"""`kdyno kernel size`, word for word and as JSON."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdyno.cli.schemas import schema
from tests.cli.conftest import Lab
from tests.cli.test_golden import check

HEAD = ".macro function name size\n.type \\name, @function\n\\name: .skip \\size, 0x90\n.size \\name, \\size\n.endm\n"
BEFORE = """.text
function vfs_read 100
function vfs_read.cold 20
function __pfx_vfs_read 16
function vfs_write 50
function old_path 30
.section .init.text,"ax"
function start_kernel 400
.section .rodata,"a"
.type names, @object
names: .skip 64
.size names, 64
.local table.1
.comm table.1, 4096, 8
.section .debug_line
.skip 999
"""
AFTER = (
    BEFORE.replace("vfs_read 100", "vfs_read.constprop.0 140")
    .replace("old_path 30", "new_path 1234")
    .replace("names, 64", "names, 60")
)


@pytest.fixture
def two(lab: Lab) -> Lab:
    """A laboratory with two objects, before.o and after.o, in its directory."""
    lab.patch.chdir(lab.directory)
    for name, text in (("before.o", BEFORE), ("after.o", AFTER)):
        subprocess.run(["as", "-o", name, "-"], input=HEAD + text, text=True, check=True)
    return lab


def test_sizes_of_one_file_are_printed(two: Lab) -> None:
    check("size", two, two("kernel", "size", "before.o"))


def test_two_files_are_compared(two: Lab) -> None:
    check("size-two", two, two("kernel", "size", "before.o", "after.o", "--top", "3"))


def test_clones_can_be_counted_apart(two: Lab) -> None:
    check("size-clones", two, two("kernel", "size", "before.o", "after.o", "--clones"))


def test_what_is_no_elf_file_is_refused(two: Lab) -> None:
    Path("text").write_text("hello\n")
    check("size-text", two, two("kernel", "size", "text"))


def test_the_json_is_as_its_schema_has_it(two: Lab) -> None:
    for words in (("before.o",), ("before.o", "after.o")):
        report = json.loads(two("kernel", "size", *words, "--json").out)
        Draft202012Validator(schema("size")).validate(report)
    changes = {row["name"]: row["change"] for row in report["symbols"]}
    assert changes == {"new_path": 1234, "vfs_read": 40, "old_path": -30, "names": -4} | dict.fromkeys(
        ("vfs_write", "start_kernel", "table"), 0
    )
    assert report["totals"][-1]["change"] == sum(changes.values())
