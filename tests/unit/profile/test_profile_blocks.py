"""Basic blocks, read from a map and counted by what was executed: made-up runs, and what must come out of each."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.profile import block_map
from kdyno.profile.block_counts import count_blocks
from kdyno.profile.block_map import BlockMapDamaged, Names, NoBlockMap, OtherBlockMapVersion, parse, read_block_map
from kdyno.profile.block_order import HotBlocks, order_blocks
from kdyno.profile.edges import EdgeProfile
from tests.unit.block_map_specimen import Block, listing

TEXT = 0xFFFF_FFFF_8100_0000


def test_blocks_are_read_by_address_whatever_range_they_are_in() -> None:
    split = parse(listing({TEXT: [(TEXT, [(0, 0, 16, True), (2, 16, 8, False)]), (TEXT + 0x900, [(1, 0, 5, False)])]}))
    assert split.functions.tolist() == [TEXT]
    assert split.blocks.tolist() == [
        (TEXT, 16, 0, 0, True),
        (TEXT + 16, 8, 2, 0, False),
        (TEXT + 0x900, 5, 1, 0, False),
    ]
    assert len(parse("").blocks) == 0


def test_what_a_range_runs_over_and_what_a_call_comes_back_to_fell_through() -> None:
    blocks: list[Block] = [(0, 0, 16, True), (7, 16, 8, True), (3, 24, 8, True), (4, 32, 8, False), (5, 40, 8, False)]
    block = parse(listing({TEXT: [(TEXT, blocks)]}))
    profile = EdgeProfile(
        # Block 3 ends in a call, and the range after it starts at block 4; block 7 was jumped over by 70 of 100.
        ranges=[(TEXT, TEXT + 12, 70), (TEXT, TEXT + 28, 30), (TEXT + 24, TEXT + 28, 70), (TEXT + 32, TEXT + 38, 100)],
        branches=[(TEXT + 12, TEXT + 24, 70), (TEXT + 28, 0x1000, 100), (0x1004, TEXT + 32, 100)],
    )
    (function,) = count_blocks(block, profile)
    assert function.ids == (0, 7, 3, 4, 5)
    assert function.counts == (100, 30, 100, 100, 0)
    assert function.edges == ((0, 1, 30), (0, 2, 70), (1, 2, 30), (2, 3, 100))


def test_functions_that_never_ran_are_left_out_and_nothing_at_all_is_no_error() -> None:
    two = parse(listing({TEXT: [(TEXT, [(0, 0, 8, False)])], TEXT + 64: [(TEXT + 64, [(0, 0, 8, False)])]}))
    assert [counted.address for counted in count_blocks(two, EdgeProfile([(TEXT + 64, TEXT + 64, 1)], []))] == [
        TEXT + 64
    ]
    assert list(count_blocks(two, EdgeProfile([], []))) == []
    assert list(count_blocks(parse(""), EdgeProfile([(TEXT, TEXT, 1)], [(TEXT, TEXT, 1)]))) == []


@given(st.lists(st.integers(1, 40), min_size=2, max_size=12), st.lists(st.integers(0, 11), max_size=60))
def test_the_counts_of_a_walk_are_those_of_the_walk(sizes: list[int], jumps: list[int]) -> None:
    """From each block the walk falls into the next, or jumps to another: never to the entry, which would be a call."""
    starts = [TEXT + sum(sizes[:block]) for block in range(len(sizes))]
    at, entered = 0, TEXT
    counts, edges = Counter([0]), Counter[tuple[int, int]]()
    ranges, branches = Counter[tuple[int, int]](), Counter[tuple[int, int]]()
    for jump in jumps:
        following = jump % len(sizes) or at + 1
        if following == len(sizes):
            break
        end = starts[at] + sizes[at] - 1
        if following != at + 1 or jump % 2:
            ranges[entered, end] += 1
            branches[end, starts[following]] += 1
            entered = starts[following]
        edges[at, following] += 1
        counts[following] += 1
        at = following
    ranges[entered, starts[at] + sizes[at] - 1] += 1
    rows: list[Block] = [(block, starts[block] - TEXT, size, True) for block, size in enumerate(sizes)]
    profile = EdgeProfile(
        sorted((*key, count) for key, count in ranges.items()), sorted((*key, count) for key, count in branches.items())
    )
    (function,) = count_blocks(parse(listing({TEXT: [(TEXT, rows)]})), profile)
    assert function.counts == tuple(counts[block] for block in range(len(sizes)))
    assert {(source, target): count for source, target, count in function.edges} == edges


def test_code_with_a_place_of_its_own_is_told_by_the_marks_around_it() -> None:
    names = Names(
        f"{0x1000:016x} T __sched_text_start\n{0x1010:016x} {0x10:016x} T schedule\n{0x2000:016x} T __sched_text_end\n"
        f"{0x3000:016x} T __hot_text_start\n{0x4000:016x} T __hot_text_end\n{0x5000:016x} T _sinittext\n"
        f"{0x6000:016x} T _einittext\n{0x3010:016x} t one\n{0x3010:016x} T alias\n{0x3020:016x} t one\n"
    )
    addresses = (0x1010, 0x2000, 0x3010, 0x5000, 0x6000)
    assert [names.is_apart(place) for place in addresses] == [True, False, False, True, False]
    assert names.names_at(0x3010) == ("alias", "one") and names.names_at(0x3011) == ()
    assert names.is_one("alias") and not names.is_one("one") and not names.is_one("nobody")


def test_the_program_lays_out_hot_ways_to_fall_through() -> None:
    branch = HotBlocks(
        (0, 10, 20, 30), (16, 16, 16, 16), (100, 1, 99, 100), ((0, 1, 1), (0, 2, 99), (1, 3, 1), (2, 3, 99))
    )
    assert order_blocks([branch, branch]) == [(0, 20, 30, 10)] * 2
    assert order_blocks([]) == []


def test_a_function_without_a_symbol_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    printed = listing({TEXT: [(TEXT, [(0, 0, 8, False)])]})
    warning = "warning: 'vmlinux': could not identify function symbol for address (0x10)"
    monkeypatch.setattr(block_map, "find_tool", lambda name: name)
    monkeypatch.setattr(block_map, "attempt", lambda words, **_: CompletedProcess(words, 0, printed, warning))
    assert read_block_map(Path("vmlinux")).functions.tolist() == [TEXT]


@pytest.mark.parametrize(
    ("printed", "status", "error"),
    [
        (("", "warning: unsupported SHT_LLVM_BB_ADDR_MAP version: 3"), 0, OtherBlockMapVersion),
        (("", "warning: 'vmlinux': unable to dump SHT_LLVM_BB_ADDR_MAP: malformed uleb128"), 0, BlockMapDamaged),
        (("BBAddrMap [\n]\n", ""), 0, NoBlockMap),
    ],
)
def test_a_map_that_cannot_be_read_is_refused_with_the_reason(
    printed: tuple[str, str], status: int, error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(block_map, "find_tool", lambda name: name)
    monkeypatch.setattr(block_map, "attempt", lambda words, **_: CompletedProcess(words, status, *printed))
    with pytest.raises(error) as caught:
        read_block_map(Path("vmlinux"))
    assert "vmlinux" in str(caught.value)
