"""Exports of a PMU record, each against text that was worked out by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.profile.edges import edge_profile
from kdyno.profile.export import FORMATS, NEED_VMLINUX, NoStacks, VmlinuxNeeded, export
from kdyno.profile.export_autofdo import autofdo
from kdyno.profile.export_lbr import OUTSIDE, lbr, samples
from kdyno.profile.export_llvm import unsymbolized
from kdyno.profile.select import choose
from tests.unit.pmu_specimen import TEXT, specimen, write

RECORD = specimen()
NULL = edge_profile(RECORD, choose(RECORD, ["lat_syscall.null"]))
BOTH = edge_profile(RECORD, choose(RECORD, []))


def test_the_unsymbolized_profile_has_ranges_and_branches_of_kernel_text_only() -> None:
    assert unsymbolized(NULL) == (
        "6\n"
        "ffffffff81001000-ffffffff8100100c:10\n"
        "ffffffff81001011-ffffffff81001013:10\n"
        "ffffffff81002000-ffffffff81002006:20\n"
        "ffffffff81002008-ffffffff81002008:10\n"
        "ffffffff81004000-ffffffff81004004:10\n"
        "ffffffff81005000-ffffffff81005010:5\n"
        "5\n"
        "ffffffff8100100c->ffffffff81002000:10\n"
        "ffffffff81002006->ffffffff81002000:10\n"
        "ffffffff81002006->ffffffff81003000:1\n"
        "ffffffff81002008->ffffffff81004000:10\n"
        "ffffffff81004004->ffffffff81001011:10\n"
    )


def test_a_profile_of_one_region_has_that_region_only_and_regions_add_up() -> None:
    pipe = edge_profile(RECORD, choose(RECORD, ["lat_pipe.roundtrip"]))
    assert unsymbolized(pipe) == "1\nffffffff81002000-ffffffff81002006:4\n1\nffffffff81001020->ffffffff81002000:4\n"
    assert "ffffffff81002000-ffffffff81002006:24\n" in unsymbolized(BOTH)


def test_interrupts_are_exported_if_they_are_wanted() -> None:
    tick = edge_profile(RECORD, choose(RECORD, []), ["interrupt"])
    assert unsymbolized(tick) == "1\nffffffff81006000-ffffffff8100601c:2\n0\n"


def test_autofdo_has_ranges_no_addresses_and_branches_relative_to_the_first_segment() -> None:
    assert autofdo(NULL, TEXT) == (
        "6\n"
        "1000-100c:10\n"
        "1011-1013:10\n"
        "2000-2006:20\n"
        "2008-2008:10\n"
        "4000-4004:10\n"
        "5000-5010:5\n"
        "0\n"
        "5\n"
        "100c->2000:10\n"
        "2006->2000:10\n"
        "2006->3000:1\n"
        "2008->4000:10\n"
        "4004->1011:10\n"
    )


def test_lbr_samples_pair_the_branch_that_enters_a_range_with_its_end() -> None:
    assert lbr(NULL) == (
        "10\n ffffffff8100100c 0xffffffff8100100c/0x0/P/-/-/0 0x0/0xffffffff81001000/P/-/-/0\n"
        "10\n ffffffff81001013 0xffffffff81001013/0x0/P/-/-/0 0xffffffff81004004/0xffffffff81001011/P/-/-/0\n"
        "10\n ffffffff81002006 0xffffffff81002006/0x0/P/-/-/0 0xffffffff8100100c/0xffffffff81002000/P/-/-/0\n"
        "10\n ffffffff81002006 0xffffffff81002006/0x0/P/-/-/0 0xffffffff81002006/0xffffffff81002000/P/-/-/0\n"
        "10\n ffffffff81002008 0xffffffff81002008/0x0/P/-/-/0 0x0/0xffffffff81002008/P/-/-/0\n"
        "10\n ffffffff81004004 0xffffffff81004004/0x0/P/-/-/0 0xffffffff81002008/0xffffffff81004000/P/-/-/0\n"
        "5\n ffffffff81005010 0xffffffff81005010/0x0/P/-/-/0 0x0/0xffffffff81005000/P/-/-/0\n"
        "1\n ffffffff81002006 0xffffffff81002006/0xffffffff81003000/P/-/-/0\n"
    )


def test_lbr_samples_hold_every_range_and_branch_exactly_as_often_as_it_was_executed() -> None:
    ranges: Counter[tuple[int, int]] = Counter()
    branches: Counter[tuple[int, int]] = Counter()
    for count, stack in samples(BOTH):
        for source, target in stack:
            if OUTSIDE not in (source, target):
                branches[source, target] += count
        for (end, _), (_, start) in pairwise(stack):
            ranges[start, end] += count
    assert ranges == {(start, last): count for start, last, count in BOTH.ranges}
    assert branches == {(source, target): count for source, target, count in BOTH.branches}


def test_an_empty_selection_exports_empty_lists() -> None:
    nothing = edge_profile(RECORD, [])
    assert unsymbolized(nothing) == "0\n0\n"
    assert autofdo(nothing, TEXT) == "0\n0\n0\n"
    assert lbr(nothing) == ""


def test_autofdo_and_propeller_need_the_vmlinux(tmp_path: Path) -> None:
    path = write(tmp_path / "r")
    for form in FORMATS:
        if form in NEED_VMLINUX:
            with pytest.raises(VmlinuxNeeded):
                export(read_pmu_record(path), path, form, choose(RECORD, []))
        else:
            assert export(read_pmu_record(path), path, form, choose(RECORD, []))


def test_a_record_without_stacks_says_so_instead_of_an_empty_flame_graph(tmp_path: Path) -> None:
    regions = [replace(region, stacks=()) for region in choose(RECORD, [])]
    with pytest.raises(NoStacks) as caught:
        export(RECORD, tmp_path / "r", "collapsed", regions)
    assert "--events all" in caught.value.advice
