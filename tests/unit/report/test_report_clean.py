from __future__ import annotations

import pytest

from kdyno.base.text import clean, clean_lines
from tests.unit import specimen


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain [bold]text[/bold] <b>", "plain [bold]text[/bold] <b>"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]52;c;Y2xpcA==\x1b\\after", "after"),
        ("eight bit \x9b2Jclear", "eight bit clear"),
        ("bell\x07 back\x08 zero\x00", "bell\\x07 back\\x08 zero\\x00"),
        ("one\r\ntwo\n\nthree\tfour", "one two three four"),
        ("exe.\u202egnp", "exe.\\u202egnp"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("unfinished \x1b", "unfinished \\x1b"),
        ("unfinished \x1b[38;5", "unfinished 38;5"),
        ("größe ✓ 漢字", "größe ✓ 漢字"),
    ],
)
def test_what_steers_is_removed_or_made_visible_and_what_shows_stays(text: str, shown: str) -> None:
    assert clean(text) == shown


def test_a_console_keeps_its_lines() -> None:
    lines = clean_lines(specimen.HOSTILE_CONSOLE).split("\n")
    assert lines[1] == "<script>alert('boo')</script> [bold]not markup[/bold]"
    assert lines[-2].startswith("[    1.234567] Kernel panic")
    assert clean_lines("a\rb\tc") == "a\nb        c"


def test_nothing_that_steers_is_left_of_any_character() -> None:
    everything = "".join(map(chr, range(0x3000)))
    assert not set(clean_lines(everything)) & {chr(code) for code in (*range(10), 0x1B, 0x7F, 0x9B, 0x202E, 0x2028)}
