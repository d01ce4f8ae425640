from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kdyno.report.grids import Grid
from kdyno.report.tables import fit_grid

PAIRS = Grid(
    title="All pairs",
    columns=("pair", "effect", "95 % interval", "Q", "p"),
    rows=(
        ("generic / x86-64-v3", "+0.43 %", "+0.251 to +0.437", "12.8362", "< 0.0001"),
        ("generic / CPU family", "+0.45 %", "+0.267 to +0.453", "13.4333", "< 0.0001"),
    ),
)
GRIDS = st.integers(1, 8).flatmap(
    lambda figures: st.builds(
        Grid,
        st.just("table"),
        st.tuples(*[st.text("ab ", max_size=20)] * (figures + 1)),
        st.lists(
            st.tuples(st.text("abc", min_size=1, max_size=60), *[st.text("0123456789.", max_size=15)] * figures),
            min_size=1,
            max_size=8,
            unique_by=lambda row: row[0],
        ).map(tuple),
    )
)


def test_a_table_that_fits_has_two_spaces_between_its_columns_and_a_narrower_one_has_one() -> None:
    [wide] = fit_grid(PAIRS, 66)
    assert (wide.gap, wide.width) == (2, 66)
    [narrow] = fit_grid(PAIRS, 65)
    assert (narrow.gap, narrow.width, narrow.rows) == (1, 62, PAIRS.rows)


def test_the_texts_of_the_first_column_are_shortened_before_the_table_is_turned() -> None:
    [fitted] = fit_grid(PAIRS, 54)
    assert [row[0] for row in fitted.rows] == ["g… x86-64-v3", "… CPU family"]
    assert [row[1:] for row in fitted.rows] == [row[1:] for row in PAIRS.rows]
    assert fitted.width == 54


def test_a_table_whose_figures_are_too_wide_is_turned_as_many_rows_at_a_time_as_fit() -> None:
    one, other = fit_grid(PAIRS, 53)
    assert one.columns == ("pair", "generic / x86-64-v3")
    assert one.rows[:2] == (("effect", "+0.43 %"), ("95 % interval", "+0.251 to +0.437"))
    assert other.columns == ("pair", "generic / CPU family")
    both = replace(PAIRS, rows=tuple((name[-6:], *row) for name, *row in PAIRS.rows))
    [fitted] = fit_grid(both, 47)
    assert fitted.columns == ("pair", "-64-v3", "family")
    assert fitted.rows[0] == ("effect", "+0.43 %", "+0.45 %")


@given(GRIDS, st.integers(20, 120))
def test_no_figure_of_a_table_is_lost_or_cut_at_any_width(grid: Grid, width: int) -> None:
    fitted = fit_grid(grid, width)
    figures = sorted(cell for row in grid.rows for cell in row[1:])
    is_turned = fitted[0].columns != grid.columns
    rows = [row[1:] for table in fitted for row in table.rows]
    assert sorted(cell for row in rows for cell in row) == figures
    assert all(
        cell_len(cell) <= table.widths[place]
        for table in fitted
        for row in table.rows
        for place, cell in enumerate(row)
    )
    names = (
        [name for table in fitted for name in table.columns[1:]]
        if is_turned
        else [row[0] for table in fitted for row in table.rows]
    )
    assert len(set(names)) == len(grid.rows)
