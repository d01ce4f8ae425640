"""From executed code to lines: what a count is, and what `partly` means, on tables that can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kdyno.base.debuginfo import PIECE
from kdyno.understand.coverage.executions import PADDING, Executions
from kdyno.understand.coverage.functions import CodeParts, Part
from kdyno.understand.coverage.line_table import LineTable
from kdyno.understand.coverage.lines import FULLY, NEVER, PARTLY, line_coverage

FIRST, SECOND = 0x1000, 0x2000
PARTS = CodeParts(
    [
        Part(FIRST, 0x100, "first", "first", "a.c"),
        Part(SECOND, 0x100, "second", "second", "a.c"),
        Part(0x3000, 0x100, "first.cold", "first", "a.c"),
    ]
)
Row = tuple[int, int, int, bool]


def table(pieces: Sequence[Row], marks: Sequence[tuple[int, int]] = ()) -> LineTable:
    """Pieces are (start, end, line, whether the line begins there), marks (address, line)."""
    return LineTable(
        ("a.c",),
        np.array([(start, end, 0, line, begins) for start, end, line, begins in sorted(pieces)], PIECE),
        np.array([(at, at, 0, line, True) for at, line in marks], PIECE),
    )


def ran(*steps: tuple[int, int], one_way: Sequence[int] = (), padding: Sequence[int] = ()) -> Executions:
    """From each address on, how often; what begins at one of `padding` is nothing but that."""
    starts = np.array([0, *(start for start, _ in steps)], np.uint64)
    counts = np.array([0, *(count for _, count in steps)], np.uint64)
    return Executions(starts, counts, np.isin(starts, padding), np.array(one_way, np.uint64))


def lines(
    line_table: LineTable, executed: Executions, copies: Sequence[int] | None = None
) -> list[tuple[int, int, int]]:
    """Line, count and state of each."""
    numbers = iter(copies or [])
    coverage = line_coverage(line_table, PARTS, executed, lambda asked: [next(numbers, 0) for _ in asked])
    return [(int(row["line"]), int(row["count"]), int(row["state"])) for row in coverage.lines]


def test_a_line_s_count_is_the_highest_of_its_pieces() -> None:
    loop = table([(FIRST, FIRST + 4, 7, True), (FIRST + 4, FIRST + 8, 8, True), (FIRST + 8, FIRST + 12, 7, True)])
    executed = ran((FIRST, 1), (FIRST + 4, 99), (FIRST + 8, 100), (FIRST + 12, 0))
    assert lines(loop, executed) == [(7, 100, FULLY), (8, 99, FULLY)]


def test_copies_in_two_functions_and_two_inlined_ones_in_one_add_up() -> None:
    pieces = [(FIRST, FIRST + 4, 7, True), (FIRST + 8, FIRST + 12, 7, True), (SECOND, SECOND + 4, 7, True)]
    executed = ran((FIRST, 10), (FIRST + 4, 0), (FIRST + 8, 20), (FIRST + 12, 0), (SECOND, 5), (SECOND + 4, 0))
    assert lines(table(pieces), executed, copies=[1, 2]) == [(7, 35, FULLY)]
    assert lines(table(pieces), executed, copies=[1, 1]) == [(7, 25, FULLY)]


def test_a_line_is_partly_executed_if_some_of_its_code_never_ran_or_a_branch_went_one_way() -> None:
    pieces = [(FIRST, FIRST + 8, 7, True), (FIRST + 8, FIRST + 16, 8, True), (FIRST + 16, FIRST + 24, 9, True)]
    executed = ran((FIRST, 3), (FIRST + 4, 0), (FIRST + 8, 3), (FIRST + 16, 0), one_way=[FIRST + 14])
    assert lines(table(pieces), executed) == [(7, 3, PARTLY), (8, 3, PARTLY), (9, 0, NEVER)]


def test_padding_that_never_ran_lacks_nowhere() -> None:
    executed = ran((FIRST, 3), (FIRST + 4, 0), (FIRST + 6, 3), (FIRST + 8, 0), padding=[FIRST + 4])
    assert lines(table([(FIRST, FIRST + 8, 7, True)]), executed) == [(7, 3, FULLY)]


def test_one_copy_that_ran_wholly_makes_a_line_fully_executed() -> None:
    pieces = [(FIRST, FIRST + 8, 7, True), (SECOND, SECOND + 8, 7, True)]
    assert lines(table(pieces), ran((FIRST, 3), (FIRST + 4, 0), (SECOND, 1), (SECOND + 8, 0))) == [(7, 4, FULLY)]
    assert lines(table(pieces), ran((FIRST, 3), (FIRST + 4, 0))) == [(7, 3, PARTLY)]


def test_the_cold_part_of_a_function_is_no_other_copy() -> None:
    pieces = [(FIRST, FIRST + 8, 7, True), (0x3000, 0x3008, 7, True)]
    assert lines(table(pieces), ran((FIRST, 3), (FIRST + 8, 0)), copies=[1, 1]) == [(7, 3, PARTLY)]


def test_an_instruction_that_was_moved_does_not_make_its_line_executed() -> None:
    pieces = [(FIRST, FIRST + 4, 9, False), (FIRST + 4, FIRST + 8, 7, True), (FIRST + 8, FIRST + 12, 9, True)]
    executed = ran((FIRST, 3), (FIRST + 8, 0))
    assert lines(table(pieces), executed, copies=[1, 1]) == [(7, 3, FULLY), (9, 0, NEVER)]


def test_a_line_without_code_of_its_own_ran_where_it_begins() -> None:
    line_table = table([(FIRST, FIRST + 8, 7, True)], marks=[(FIRST, 6), (SECOND, 20)])
    assert lines(line_table, ran((FIRST, 3), (FIRST + 8, 0))) == [(6, 3, FULLY), (7, 3, FULLY), (20, 0, NEVER)]


def test_a_line_that_begins_at_code_that_ran_is_executed_partly_if_its_own_code_never_was() -> None:
    line_table = table([(FIRST, FIRST + 8, 7, True), (FIRST + 8, FIRST + 12, 6, True)], marks=[(FIRST, 6)])
    assert lines(line_table, ran((FIRST, 3), (FIRST + 8, 0))) == [(6, 3, PARTLY), (7, 3, FULLY)]


def test_code_in_no_function_has_no_lines() -> None:
    assert lines(table([(0x9000, 0x9008, 7, True)]), ran((0x9000, 1))) == []
    assert lines(table([]), ran()) == []


def test_padding_is_what_assemblers_write_and_nothing_else() -> None:
    nops = ("90", "6690", "0f1f00", "0f1f4000", "0f1f440000", "660f1f440000", "0f1f8000000000", "0f1f840000000000")
    assert all(PADDING.fullmatch(bytes.fromhex(nop)) for nop in (*nops, "cccc", "66662e0f1f8400000000009090"))
    assert not any(PADDING.fullmatch(bytes.fromhex(code)) for code in ("", "c3", "90c3", "0f1f", "0f0b", "66"))
