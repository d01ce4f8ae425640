from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kdyno.base.text import format_signed, number
from kdyno.judge.stats.verdict import Verdict
from kdyno.judge.verdicts.rows import Span, VerdictRow
from kdyno.report.layout import DROPPED, NARROWEST_BAR, Column, lay_out, wrap_text

WIDTHS = st.integers(20, 200)


def row(
    name: str,
    *,
    value: float = 507.9,
    ratio: float = 0.91,
    verdict: Verdict = "faster",
    unit: str = "cycles",
    shown: str = "",
    sees: str = "3.1 %",
) -> VerdictRow:
    return VerdictRow(
        name=name,
        unit=unit,
        baseline=number(value),
        variant=number(value * ratio),
        effect=f"{format_signed(ratio - 1)} %",
        interval="",
        sensitivity=sees,
        verdict=verdict,
        scope="kernels",
        verdict_shown=shown or verdict,
        reason="",
        caution="",
        sentence="",
        span=Span(-0.02, -0.01, 0.0),
        detectable=0.031,
        replicates="12",
        dropped=0,
    )


PATHS = [row("lookup"), row("tmpfs_append_4k", unit="B/cycle"), row("ext4_create_unlink", value=11795.0)]
ROWS = st.lists(
    st.builds(
        row,
        st.text("abé漢_. ", min_size=1, max_size=60),
        value=st.floats(1e-6, 1e12),
        ratio=st.floats(0.001, 1000.0),
        verdict=st.sampled_from(("faster", "slower", "equivalent", "undecided")),
        unit=st.sampled_from(("", "cycles", "B/instr", "bogo ops/s")),
    ),
    min_size=1,
    max_size=20,
    unique_by=lambda one: one.name,
)


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (120, []),
        (80, []),
        (66, ["sees"]),
        (58, ["bar", "sees"]),
        (50, ["baseline", "bar", "sees"]),
        (40, ["baseline", "variant", "bar", "sees"]),
    ],
)
def test_a_narrower_page_leaves_out_sees_then_the_bar_then_the_values(width: int, left_out: list[str]) -> None:
    layout = lay_out(PATHS, width)
    assert list(layout.left_out) == left_out
    assert layout.width <= width
    assert [layout.names[one.name] for one in PATHS] == [one.name for one in PATHS]


def test_a_page_of_the_named_width_has_all_columns() -> None:
    whole_width = lay_out(PATHS, 40).whole_width
    assert lay_out(PATHS, whole_width).left_out == ()
    assert lay_out(PATHS, whole_width - 1).left_out == ("sees",)


def test_the_unit_is_shown_with_the_variant_where_the_baseline_is_left_out() -> None:
    [first, *_] = PATHS
    assert lay_out(PATHS, 80).cells(first)["baseline"] == "507.9 cycles"
    assert lay_out(PATHS, 80).cells(first)["variant"] == "462.2"
    assert lay_out(PATHS, 50).cells(first)["variant"] == "462.2 cycles"


def test_a_column_that_no_row_fills_is_left_out_without_a_word() -> None:
    layout = lay_out([row("lookup", sees="")], 120)
    assert "sees" not in layout.widths
    assert layout.left_out == ()


def test_a_scope_in_verdicts_is_shortened_before_a_column_is_left_out() -> None:
    rows = [row("lookup", shown="faster (these boots)"), row("stat", shown="slower (these images)")]
    assert lay_out(rows, 120).cells(rows[0])["verdict"] == "faster (these boots)"
    narrow = lay_out(rows, lay_out(rows, 120).whole_width)
    assert narrow.cells(rows[0])["verdict"] == "faster (boots)"
    assert narrow.left_out == ()


def test_long_names_lose_their_middle_and_no_column_that_fits() -> None:
    rows = [row(f"pgbench: scaling factor {factor}, 50 clients, read only") for factor in (1, 10, 100)]
    layout = lay_out(rows, 80)
    assert layout.left_out == ()
    assert len(set(layout.names.values())) == 3
    assert all("…" in name and name.endswith("read only") for name in layout.names.values())


@given(ROWS, WIDTHS)
def test_no_number_is_cut_and_no_two_rows_are_shown_alike(rows: list[VerdictRow], width: int) -> None:
    layout = lay_out(rows, width)
    cells = [layout.cells(one) for one in rows]
    assert len({one["benchmark"] for one in cells}) == len(rows)
    for shown, one in zip(cells, rows, strict=True):
        assert shown["effect"] == one.effect
        assert shown["verdict"] == one.verdict_shown
        assert shown.get("sees", one.sensitivity) == one.sensitivity
        assert shown.get("variant", one.variant).startswith(one.variant)
        assert one.unit in shown.get("baseline", shown.get("variant", one.unit))
        assert all(cell_len(text) <= layout.widths[column] for column, text in shown.items())


@given(ROWS, WIDTHS)
def test_a_table_fits_on_the_page_unless_effects_and_verdicts_alone_do_not(rows: list[VerdictRow], width: int) -> None:
    layout = lay_out(rows, width)
    if set(layout.widths) > {"benchmark", "effect", "verdict"} or width >= 60:
        assert layout.width <= width
    assert layout.widths.get("bar", NARROWEST_BAR) >= NARROWEST_BAR


@given(ROWS)
def test_what_fits_on_a_page_fits_on_a_wider_one(rows: list[VerdictRow]) -> None:
    left_out = [set(lay_out(rows, width).left_out) for width in range(20, 200, 4)]
    assert all(after <= before for before, after in pairwise(left_out))
    assert all(_is_in_order(columns) for columns in left_out)


def _is_in_order(columns: set[Column]) -> bool:
    return columns == set(DROPPED[: len(columns)])


def test_wrapped_text_is_indented_and_keeps_numbers_with_their_percent_signs() -> None:
    text = "gcc-Os: 3 faster, 84 slower, 2 equivalent; mean -22.4 %, slower"
    assert wrap_text(text, 80) == [text]
    assert wrap_text(text, 54) == ["gcc-Os: 3 faster, 84 slower, 2 equivalent; mean", "  -22.4 %, slower"]
    assert wrap_text("  a: b c", 6) == ["  a: b", "    c"]


@given(st.lists(st.sampled_from(("bars:", "+1.5 %", "from", "80 %,", "x" * 30, "—")), max_size=30), st.integers(8, 100))
def test_wrapping_loses_no_character(words: Sequence[str], width: int) -> None:
    lines = wrap_text(" ".join(words), width)
    assert "".join("".join(lines).split()) == "".join("".join(words).split())
    assert all(len(line) <= width for line in lines)
    assert not any(line.lstrip().startswith("%") for line in lines)
