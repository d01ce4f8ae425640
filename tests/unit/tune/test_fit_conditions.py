"""Which lines are compiled only if a symbol is set."""

from __future__ import annotations

import pytest

from kdyno.tune.fit.conditions import conditionals


def parts(text: str) -> list[tuple[str, int, int]]:
    return [(part.symbol, part.first, part.last) for part in conditionals(text.split("\n"))]


@pytest.mark.parametrize(
    "line",
    [
        "#ifdef CONFIG_A",
        "# ifdef CONFIG_A /* why */",
        "#if defined(CONFIG_A)",
        "#if defined CONFIG_A",
        "#if IS_ENABLED(CONFIG_A)",
        "#if (IS_BUILTIN( CONFIG_A )) // why",
    ],
)
def test_lines_below_a_condition_are_its_symbols_until_it_ends(line: str) -> None:
    assert parts(f"int a;\n{line}\nint b;\nint c;\n#endif\nint d;") == [("A", 3, 4)]


def test_lines_below_the_else_of_a_negative_condition_are_its_symbols() -> None:
    for line in ("#ifndef CONFIG_A", "#if !defined(CONFIG_A)", "#if !IS_ENABLED(CONFIG_A)"):
        assert parts(f"{line}\nint a;\n#else\nint b;\n#endif") == [("A", 4, 4)]


def test_lines_below_the_else_of_a_positive_condition_are_nobodys() -> None:
    assert parts("#ifdef CONFIG_A\nint a;\n#else\nint b;\n#endif") == [("A", 2, 2)]
    assert parts("#ifdef CONFIG_A\n1\n#elif defined(CONFIG_B)\n2\n#else\n3\n#endif") == [("A", 2, 2), ("B", 4, 4)]


def test_an_alternative_says_nothing_and_a_conjunction_names_all() -> None:
    assert parts("#if defined(CONFIG_A) || defined(CONFIG_B)\n1\n#endif") == []
    assert parts("#if defined(CONFIG_A) && \\\n    IS_ENABLED(CONFIG_B) && X > 2\n1\n#endif") == [
        ("A", 3, 3),
        ("B", 3, 3),
    ]


def test_inner_conditions_are_of_their_own_symbol_and_of_the_outer_one() -> None:
    text = "#ifdef CONFIG_A\n1\n#ifdef CONFIG_B\n2\n#endif\n3\n#endif"
    assert parts(text) == [("B", 4, 4), ("A", 2, 6)]


def test_what_is_no_c_at_all_is_passed_over() -> None:
    assert parts("#endif\n#else\n#elif\n#if\n\0\n#ifdef CONFIG_A" + " \\\n" * 5000) == []
