from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

from kdyno.judge.verdicts.rows import VerdictRow
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.cycles.predict import cycles
from kdyno.understand.explain.compare import ComparedSubject, event_changes, explain, function_changes
from kdyno.understand.explain.measured import RecordsUnlike
from kdyno.understand.explain.model import Explanation
from kdyno.understand.explain.terminal import render
from tests.unit.explain_specimen import NAMES, Kernel, pair

SUBJECT = ComparedSubject("lat_syscall.read", "gcc-O2", "gcc-O3", "op", "the boots of block 0, seed 7")
ROW = VerdictRow(
    *("lat_syscall.read", "cycles", "100", "90", "-10 %", "", ""),
    verdict="faster",
    scope="kernels",
    verdict_shown="faster",
    reason="",
    caution="",
    sentence="10 % lower",
    span=None,
    detectable=None,
    replicates="3",
    dropped=0,
)


@pytest.fixture(scope="module")
def family() -> Family:
    return load_family("znver4")


@pytest.fixture(scope="module")
def explanation(family: Family) -> Explanation:
    before, after = pair()
    return explain(SUBJECT, before.measured(), after.measured(), family)


def shown(explanation: Explanation, top: int = 10) -> str:
    out = io.StringIO()
    render(explanation, ROW, Console(file=out, width=100), top)
    return out.getvalue()


def test_a_planted_difference_is_found_and_ranked_first(family: Family) -> None:
    quiet = Kernel().function("vfs_read", 100, locked=1).function("fput", 30)
    planted = Kernel().function("vfs_read", 101, locked=1).function("fput", 30 + 400, l1d_misses=3)
    explanation = explain(SUBJECT, quiet.measured(), planted.measured(), family)
    assert explanation.functions[0].function == "fput"
    assert explanation.functions[0].instructions.difference == pytest.approx(400)
    assert explanation.functions[1].function == "vfs_read"


@pytest.mark.parametrize("thunk", ["its_return_thunk", "__x86_indirect_its_thunk_rax"])
def test_a_difference_that_is_one_of_addresses_is_said_to_be_the_linkers(family: Family, thunk: str) -> None:
    """A patch of pipe_read made write dearer: some of its returns had come to lie in lower halves of cache lines."""
    before = Kernel().function("vfs_write", 327).function(thunk, 14)
    after = Kernel().function("vfs_write", 327).function(thunk, 18)
    [note] = explain(SUBJECT, before.measured(), after.measured(), family).notes
    assert note.startswith("+4.0 instructions per op are of thunks for returns and branches in the lower half")
    assert "`layouts = 6`" in note
    assert f"note: {note[:40]}" in shown(explain(SUBJECT, before.measured(), after.measured(), family))


def test_thunks_that_one_image_turns_off_by_a_word_are_not_the_linkers(family: Family) -> None:
    before, after = (
        replace(kernel.measured(), record=replace(kernel.record(), image="e" * 64))
        for kernel in (Kernel().function("its_return_thunk", 14), Kernel().function("vfs_write", 327))
    )
    assert explain(SUBJECT, before, after, family).notes == ()


def test_thunks_that_cost_the_same_are_not_spoken_of(family: Family, explanation: Explanation) -> None:
    same = Kernel().function("vfs_write", 327).function("its_return_thunk", 14)
    more = Kernel().function("vfs_write", 330).function("its_return_thunk", 14)
    assert explain(SUBJECT, same.measured(), more.measured(), family).notes == () == explanation.notes


def test_events_are_ranked_by_weight_times_difference() -> None:
    weights = np.array([0, 0, 0, 14.0, 18.0, 0.25, 0, 0.25])
    before, after = np.array([100, 10, 4, 1.0, 1.0, 0, 0, 100]), np.array([110, 60, 4, 2.0, 1.0, 0, 0, 110])
    changes = event_changes(NAMES, before, after, weights)
    assert [(change.event, change.cycles) for change in changes[:3]] == [
        ("l1d_misses", 14.0),
        ("slots", 2.5),
        ("taken_branches", 0.0),
    ]
    assert {change.event for change in changes} == set(NAMES) - {"user_instructions", "serializing"}


def test_the_parts_add_up_to_the_difference(explanation: Explanation) -> None:
    assert sum(event.cycles for event in explanation.events) == pytest.approx(explanation.cycles.difference)
    assert sum(function.cycles.difference for function in explanation.functions) == pytest.approx(
        explanation.cycles.difference
    )


def test_amounts_are_per_operation_whatever_the_work(family: Family) -> None:
    little, much = (Kernel(work=work).function("vfs_read", 100).measured() for work in (1000, 50_000))
    explanation = explain(SUBJECT, little, much, family)
    assert explanation.instructions.baseline == explanation.instructions.variant == 100
    assert explanation.cycles.difference == 0


def test_interrupt_work_is_kept_apart(explanation: Explanation, family: Family) -> None:
    assert (explanation.interrupt_instructions.baseline, explanation.interrupt_instructions.variant) == (500, 900)
    assert explanation.instructions.baseline == 40 + 60 + 100 + 30 + 96 + 20
    assert "tick" not in {function.function for function in explanation.functions}
    tick = np.array([[900.0, 0, 0, 90, 0, 0, 0, 900.0]])
    assert explanation.interrupt_cycles.variant == pytest.approx(cycles(tick, NAMES, family)[0])


def test_exceptions_are_the_benchmarks_own_work(explanation: Explanation) -> None:
    assert "asm_exc_page_fault" in {function.function for function in explanation.functions}


def test_clones_are_one_function_and_are_named(explanation: Explanation) -> None:
    [copy_out] = (function for function in explanation.functions if function.function == "copy_out")
    assert copy_out.clones == ("copy_out", "copy_out.isra.0")
    assert copy_out.instructions.difference == 0


def test_the_parts_of_a_split_function_are_added(family: Family) -> None:
    whole = Kernel().function("f", 100, size=200)
    split = Kernel().function("f.part.0.constprop.0", 70, size=90).function("f.cold", 30, size=40)
    explanation = explain(SUBJECT, whole.measured(), split.measured(), family)
    [only] = explanation.functions
    assert (only.instructions.variant, only.size.variant) == (100, 130)


def test_functions_of_one_kernel_alone_are_there(explanation: Explanation) -> None:
    by_name = {function.function: function for function in explanation.functions}
    assert (by_name["fput"].instructions.variant, by_name["fput"].size.variant) == (0, 0)
    assert (by_name["take_lock"].instructions.baseline, by_name["take_lock"].instructions.variant) == (0, 50)


def test_nothing_executed_is_nothing_said() -> None:
    assert function_changes({}, {}, np.ones(len(NAMES)), 0) == ()


def test_code_that_is_executed_is_counted_in_lines_and_pages(explanation: Explanation) -> None:
    assert (explanation.footprint.functions.baseline, explanation.footprint.functions.variant) == (6, 6)
    assert explanation.footprint.pages.baseline == 6
    assert explanation.footprint.code_bytes.difference == (400 - 128) + 128 - 64


def test_hot_lines_are_those_of_nearly_all_instructions(family: Family) -> None:
    skewed = Kernel().function("hot", 1000, size=64).function("cold", 1, size=64)
    explanation = explain(SUBJECT, skewed.measured(), skewed.measured(), family)
    assert (explanation.footprint.lines.variant, explanation.footprint.hot_lines.variant) == (2, 1)


def test_an_empty_region_can_be_compared(family: Family) -> None:
    explanation = explain(SUBJECT, Kernel().measured(), Kernel().function("f", 10).measured(), family)
    assert explanation.footprint.lines.baseline == 0
    assert [function.function for function in explanation.functions] == ["f"]


@pytest.mark.parametrize(
    ("other", "what"), [(Kernel(family="haswell"), "the CPU family"), (Kernel(events="edges"), "events")]
)
def test_records_of_different_hardware_are_not_compared(other: Kernel, what: str, family: Family) -> None:
    with pytest.raises(RecordsUnlike, match=what):
        explain(SUBJECT, Kernel().measured(), other.measured(), family)


def test_the_verdict_comes_first_and_cycles_are_said_to_be_modelled(explanation: Explanation) -> None:
    lines = shown(explanation).splitlines()
    assert lines[0] == "lat_syscall.read: gcc-O3 against gcc-O2"
    assert lines[1] == "verdict of the run: faster, 100 → 90 cycles, -10 %"
    assert explanation.modelled in " ".join(lines)
    assert explanation.modelled.startswith("modelled, znver4")


def test_a_table_has_no_more_rows_than_asked_for(explanation: Explanation) -> None:
    text = shown(explanation, top=1)
    assert "\ntake_lock " in text
    assert "\nksys_read " not in text


def test_a_narrow_page_cuts_names_and_no_figures(family: Family) -> None:
    long = Kernel().function("a_function_with_quite_a_long_name.constprop.0.isra.0", 12_345)
    out = io.StringIO()
    render(explain(SUBJECT, Kernel().measured(), long.measured(), family), ROW, Console(file=out, width=80), 10)
    [line] = [line for line in out.getvalue().splitlines() if line.startswith("a_function")]
    assert "…" in line
    assert line.endswith("0 → 128")
    assert "+12,345" in line


def test_names_from_a_kernel_steer_no_terminal(family: Family) -> None:
    hostile = Kernel().function("\x1b[2J[red]f[/red]", 10)
    text = shown(explain(SUBJECT, Kernel().measured(), hostile.measured(), family))
    assert "\x1b" not in text
    assert "[red]f[/red]" in text
