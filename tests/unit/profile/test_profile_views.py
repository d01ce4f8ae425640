"""Looking at a PMU record: what is chosen, what it adds up to, and which function called which."""

from __future__ import annotations

import numpy as np
import pytest

from kdyno.measure.guest.pmu_parts import RETURN, Function
from kdyno.profile.calls import CallEdge, calls
from kdyno.profile.flat import NoSuchEvent, flat, totals
from kdyno.profile.functions import NOWHERE, FunctionMap, plain_name
from kdyno.profile.select import NoSuchRegion, choose, sum_contexts
from kdyno.profile.stacks import collapse_stacks
from tests.unit.pmu_specimen import COLD, ENTRY, FUNCTIONS, MODULE, TAIL, WORK, context, specimen

RECORD = specimen()
ALL = choose(RECORD, [])


@pytest.mark.parametrize(
    ("named", "benchmarks"),
    [
        ([], [0, 2]),
        (["lat_pipe.roundtrip"], [2]),
        (["lat_syscall"], [0]),
        (["2"], [2]),
        (["#2", "0"], [0, 2]),
        (["lat_pipe", "2"], [2]),
    ],
)
def test_regions_are_named_by_benchmark_by_test_or_by_index(named: list[str], benchmarks: list[int]) -> None:
    assert [region.benchmark for region in choose(RECORD, named)] == benchmarks


@pytest.mark.parametrize("named", ["lat_sys", "lat_syscall.read", "1", ""])
def test_a_region_that_is_not_there_is_named_with_those_that_are(named: str) -> None:
    with pytest.raises(NoSuchRegion) as caught:
        choose(RECORD, [named])
    assert caught.value.advice == "choose one of lat_syscall.null, lat_pipe.roundtrip"


def test_regions_add_up_and_interrupts_only_count_if_they_are_wanted() -> None:
    work = sum_contexts(ALL)
    assert {index: int(events[0]) for index, events in work.functions.items()} == {0: 5, 1: 60, 2: 82, 4: 20, 5: 30}
    assert [row.tolist() for row in work.blocks if row["start"] == WORK] == [(WORK, 3, 6, 8, 24)]
    assert sum_contexts(ALL, ["interrupt"]).functions[6][0] == 16


def test_nothing_adds_up_to_nothing() -> None:
    nothing = sum_contexts([])
    assert (len(nothing.blocks), len(nothing.branches), nothing.functions) == (0, 0, {})
    assert flat(RECORD, []) == []
    assert calls(RECORD, []) == []


def test_the_flat_profile_has_the_most_expensive_function_first() -> None:
    rows = flat(RECORD, choose(RECORD, ["lat_syscall.null"]))
    assert [(row.name, row.events["instructions"]) for row in rows] == [
        ("do_work.constprop.0", 70),
        ("entry_SYSCALL_64", 60),
        ("asm_exc_page_fault", 30),
        ("finish", 20),
        ("[unknown]", 5),
    ]
    assert rows[0].share == pytest.approx(70 / 185)
    assert sum(row.share for row in rows) == pytest.approx(1)


def test_the_flat_profile_of_another_event_has_only_functions_with_that_event() -> None:
    rows = flat(RECORD, ALL, event="calls")
    assert [(row.name, row.events["calls"]) for row in rows] == [("entry_SYSCALL_64", 10), ("[unknown]", 1)]


def test_an_event_that_is_not_there_is_named_with_those_that_are() -> None:
    with pytest.raises(NoSuchEvent, match="llc_misses") as caught:
        flat(RECORD, ALL, event="llc_misses")
    assert "privilege_switches" in caught.value.advice


def test_totals_are_over_all_iterations_by_context() -> None:
    sums = totals(RECORD, RECORD.regions[0])
    assert {context: events["instructions"] for context, events in sums.items()} == {
        "task": 155,
        "exception": 30,
        "interrupt": 16,
    }


def test_calls_are_direct_indirect_or_tails_and_halves_of_a_function_do_not_call_each_other() -> None:
    assert calls(RECORD, ALL) == [
        CallEdge("do_work.constprop.0", "finish", "tail", 10),
        CallEdge("entry_SYSCALL_64", "do_work.constprop.0", "call", 10),
        CallEdge("entry_SYSCALL_64", "do_work.constprop.0", "indirect", 4),
    ]


def test_the_return_of_a_retpoline_is_an_indirect_call() -> None:
    functions = (*FUNCTIONS[:4], Function(TAIL, 0x20, "__x86_indirect_thunk_rax"))
    region = type(ALL[0])(0, {}, (context(branches=[(TAIL + 4, WORK, RETURN, 3)]), context(), context()), ())
    record = type(RECORD)(**{**vars(RECORD), "functions": functions})
    assert calls(record, [region]) == [CallEdge("__x86_indirect_thunk_rax", "do_work.constprop.0", "indirect", 3)]


def test_stacks_are_collapsed_with_exceptions_as_frames_and_without_interrupts() -> None:
    assert collapse_stacks(RECORD, ALL) == (
        "[unknown] 5\n"
        "do_work.constprop.0 12\n"
        "entry_SYSCALL_64 60\n"
        "entry_SYSCALL_64;do_work.constprop.0 70\n"
        "entry_SYSCALL_64;do_work.constprop.0;asm_exc_page_fault 30\n"
        "entry_SYSCALL_64;do_work.constprop.0;finish 20\n"
    )
    assert collapse_stacks(RECORD, ALL, ["interrupt"]) == (
        "entry_SYSCALL_64;do_work.constprop.0;asm_exc_page_fault;asm_sysvec_apic_timer_interrupt 16\n"
    )


def test_names_can_not_break_the_lines_of_collapsed_stacks() -> None:
    functions = (Function(0, 0, "[unknown]"), Function(1, 1, "a;b c\n9"), *FUNCTIONS[2:])
    record = type(RECORD)(**{**vars(RECORD), "functions": functions})
    assert "a:b_c_9 60\n" in collapse_stacks(record, ALL)


def test_addresses_are_in_functions_from_their_first_byte_to_their_last() -> None:
    where = FunctionMap(FUNCTIONS)
    addresses = np.array([0, ENTRY - 1, ENTRY, ENTRY + 0xFF, ENTRY + 0x100, COLD, MODULE, 2**64 - 1], np.uint64)
    assert where.find(addresses).tolist() == [NOWHERE, NOWHERE, 1, 1, NOWHERE, 3, NOWHERE, NOWHERE]
    assert where.is_start(addresses).tolist() == [False, False, True, False, False, True, False, False]
    assert FunctionMap(()).find(addresses).tolist() == [NOWHERE] * 8


def test_plain_names_are_those_of_the_source() -> None:
    assert plain_name("do_sys_poll.constprop.0.cold") == "do_sys_poll"
    assert plain_name(".Lfoo") == ".Lfoo"
