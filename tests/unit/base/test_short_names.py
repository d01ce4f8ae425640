from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from kdyno.base.short_names import GAP, shorten_names
from tests.at_once import at_once

NAMES = st.lists(st.text("abé漢_.-…", min_size=1, max_size=40), min_size=1, max_size=30)


def test_a_name_that_fits_is_shown_whole() -> None:
    assert shorten_names(["lat_pipe", "lat_fs.create_0k"], 16) == {
        "lat_pipe": "lat_pipe",
        "lat_fs.create_0k": "lat_fs.create_0k",
    }


def test_a_longer_name_loses_its_middle() -> None:
    assert shorten_names(["lat_syscall.open_close", "lat_pipe"], 12) == {
        "lat_syscall.open_close": "lat_s…_close",
        "lat_pipe": "lat_pipe",
    }


def test_names_with_long_ends_in_common_show_what_is_between_them() -> None:
    names = [f"pgbench: scaling factor {factor}, 50 clients" for factor in (1, 10, 100, 1000)]
    assert list(shorten_names(names, 20).values()) == [
        "pgbench:… 1,…clients",
        "pgbench… 10,…clients",
        "pgbench… 100,…lients",
        "pgbenc… 1000,…lients",
    ]


def test_names_that_begin_alike_show_their_end() -> None:
    names = ["x86_64/generic-O2", "x86_64/generic-O3", "a"]
    assert list(shorten_names(names, 10).values()) == ["x86_64…-O2", "x86_64…-O3", "a"]


def test_a_name_whose_even_parts_belong_to_another_one_too_shows_uneven_parts() -> None:
    names = ["lat_fs.create_0k", "lat_fs.relate_0k", "lat_fs.delete_0k_twice"]
    assert list(shorten_names(names, 12).values()) == ["lat_…eate_0k", "lat_…late_0k", "lat_f…_twice"]


def test_names_that_differ_only_far_from_both_ends_show_a_part_of_the_middle() -> None:
    names = [f"{'x' * 30}{letter}{'y' * 30}" for letter in "abc"]
    shown = list(shorten_names(names, 12).values())
    assert [letter in text for letter, text in zip("abc", shown, strict=True)] == [True, True, True]
    assert {text.count(GAP) for text in shown} == {2}


def test_names_whose_differences_fit_nowhere_are_numbered() -> None:
    names = ["a" * length for length in range(20, 25)]
    shown = list(shorten_names(names, 8).values())
    assert len(set(shown)) == 5
    assert shown[-1] == "aaaaaa…5"


def test_thousands_of_long_names_that_nothing_tells_apart_take_seconds() -> None:
    names = ["a" * length for length in range(2000, 4000)]
    with at_once(120):
        assert len(set(shorten_names(names, 24).values())) == 2000


def test_a_cell_that_is_two_columns_wide_counts_twice() -> None:
    [shown] = shorten_names(["漢" * 10], 9).values()
    assert shown == "漢漢…漢漢"


@given(NAMES, st.integers(6, 40))
def test_no_two_names_are_shown_alike_and_none_is_too_long(names: list[str], width: int) -> None:
    shown = shorten_names(names, width)
    assert len(set(shown.values())) == len(set(names))
    assert all(cell_len(text) <= width for text in shown.values())


@given(NAMES, st.integers(6, 40))
def test_a_name_with_one_gap_belongs_to_no_other_name(names: list[str], width: int) -> None:
    plain = [name for name in dict.fromkeys(names) if GAP not in name]
    for name, text in shorten_names(plain, width).items():
        head, gap, tail = text.partition(GAP)
        if gap and GAP not in tail and name.endswith(tail):
            assert [other for other in plain if other.startswith(head) and other.endswith(tail)].count(name) == 1
