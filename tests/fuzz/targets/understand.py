"""Readers of foreign bytes: line tables, makefiles and ELF files."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np

from kdyno.understand.coverage.executions import Executions
from kdyno.understand.coverage.functions import CodeParts, Part
from kdyno.understand.coverage.inlines import copies
from kdyno.understand.coverage.kbuild import files_of_symbols, read_rules
from kdyno.understand.coverage.line_table import read_line_table
from kdyno.understand.coverage.lines import FULLY, NEVER, PARTLY, line_coverage
from kdyno.understand.size import compare
from kdyno.understand.size.elf import read_elf
from tests.fuzz.check import Target
from tests.unit.coverage_specimen import kernels

MAKEFILE = b"ifdef CONFIG_B\nobj-$(CONFIG_A) += a.o net/ \\\n  b.o\na-y := net/core/dev.o\nelse\nobj-y := a.o\nendif\n"


def lines(path: Path) -> None:
    """Line tables: any numbers, any names; and lines of code that ran in part. And what is inlined there."""
    table = read_line_table(path)
    assert len(copies(table.pieces["start"].tolist(), path)) == len(table.pieces)
    first = 0xFFFF_FFFF_8100_0000
    parts = CodeParts([Part(first, 0x10, "f", "f", "a.c"), Part(first + 0x10, 0x1000, "g", "g", "")])
    starts = np.array([0, first, first + 4, first + 0x20], np.uint64)
    ran = Executions(starts, np.array([0, 7, 0, 3], np.uint64), np.zeros(4, bool), starts[2:3])
    coverage = line_coverage(table, parts, ran, lambda asked: list(range(len(asked))))
    assert all(state in (NEVER, PARTLY, FULLY) for state in coverage.lines["state"])
    assert np.array_equal(coverage.lines["count"] > 0, coverage.lines["state"] != NEVER)
    assert coverage.copies["count"].sum() == coverage.lines["count"].sum()


def makefile(path: Path) -> None:
    """A stranger's makefile: whatever it says, files are those that were compiled."""
    rules = list(read_rules(path.read_text(encoding="utf-8", errors="replace")))
    assert all(rule.name and "\n" not in "".join(rule.items) for rule in rules)
    known = ("a.c", "net/core/dev.c")
    assert all(added <= set(known) for added in files_of_symbols(path.parent, known).values())


def sizes(path: Path) -> None:
    for apart in (False, True):
        rows = compare.symbol_rows(compare.symbol_sizes(read_elf(path), clones_apart=apart), None)
        assert compare.totals(rows, is_pair=False)[-1].before == sum(row.before or 0 for row in rows)


@cache
def objects() -> Sequence[bytes]:
    text = ".type f, @function\nf: .skip 9\n.size f, 9\nf.cold: ret\n.size f.cold, 1\n.comm c, 8\n"
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "a.o"
        subprocess.run(["as", "-o", path, "-"], input=text, text=True, check=True)
        return [path.read_bytes()]


TARGETS = (
    Target("sizes", sizes, objects, examples=100),
    Target("lines", lines, kernels, examples=100),
    Target("makefile", makefile, lambda: [MAKEFILE], (b"obj-$(CONFIG_A) += ", b"endif\n"), file="Makefile"),
)  # fmt: skip
