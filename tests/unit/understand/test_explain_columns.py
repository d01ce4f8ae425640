from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kdyno.understand.explain.terminal import fit_columns

COLUMNS = ("event", "baseline", "difference", "cycles, modelled")
CELLS = [("stall_dependencies", "542.6", "-3.553", "-3.553"), ("slots", "5,047", "-200.2", "-33.38")]


def test_names_are_shortened_before_titles() -> None:
    assert fit_columns(COLUMNS, CELLS, 58, 2) == [18, 8, 10, 16]
    assert fit_columns(COLUMNS, CELLS, 54, 2) == [14, 8, 10, 16]
    assert fit_columns(COLUMNS, CELLS, 48, 2) == [12, 8, 10, 12]
    assert fit_columns(COLUMNS, CELLS, 20, 2) == [12, 5, 6, 6]


@given(st.integers(1, 200))
def test_no_figure_is_cut_at_any_width(width: int) -> None:
    widths = fit_columns(COLUMNS, CELLS, width, 2)
    assert all(size >= len(cell) for row in CELLS for size, cell in zip(widths[1:], row[1:], strict=True))
    assert sum(widths) + 6 <= max(width, 35)
