"""What goes to a terminal: cleaned whatever it holds, in as many lines as it should have, with kdyno's own colours."""

from __future__ import annotations

import io
import json
import sys
import unicodedata
from collections.abc import Callable
from functools import partial

import pytest
from rich.table import Table
from rich.text import Text

from kdyno.base import terminal
from kdyno.base.talk import Talk
from kdyno.base.text import clean, clean_line, clean_lines, cut, harmless_json
from tests.unit.growth import FACTOR, characters, repeated, too_steep

HOSTILE = "\x1b]0;owned\x07\x1b[31mred\x9b2J\u202egnp.exe\n\u2028next"
SHOWN = "red\\u202egnp.exe \\u2028next"
EVERYTHING = "".join(map(chr, [*range(0x3000), *range(0xD700, 0xE100), 0xE0001, 0x10FFFF]))


def steers(text: str) -> set[str]:
    return {c for c in text if unicodedata.category(c) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}} - {"\n"}


def test_a_line_stays_one_line_and_its_columns_stay(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.line(f"run   {HOSTILE}")
    terminal.tell(f"run   {HOSTILE}")
    assert capsys.readouterr() == (f"run   {SHOWN}\n", f"run   {SHOWN}\n")


def test_lines_stay_and_those_of_a_message_are_indented_but_the_first(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.lines("one\r\ntwo\x1b[2J\n")
    terminal.tell_error("kdyno: one\nhint: two")
    assert capsys.readouterr() == ("one\ntwo\n\n", "kdyno: one\n  hint: two\n")


def test_a_message_of_a_megabyte_is_cut_and_its_end_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    for tell in (terminal.tell, terminal.tell_error, Talk().say, Talk().warn):
        tell(f"begin {'x' * 1_000_000} end")
        err = capsys.readouterr().err
        assert len(err) < terminal.MOST_TOLD + 100
        assert err.startswith("begin xxx")
        assert err.endswith("xxx end\n")
        assert "characters left out" in err


def test_nothing_of_any_character_steers(capsys: pytest.CaptureFixture[str]) -> None:
    for show in (terminal.line, terminal.lines, terminal.tell, terminal.tell_error):
        show(EVERYTHING)
    terminal.console().print(Text(EVERYTHING))
    out, err = capsys.readouterr()
    assert len(out + err) > 5 * len(EVERYTHING)
    assert not steers(out + err)


def test_progress_on_a_terminal_shows_no_steering_character_but_its_own(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    with Talk().working(f"building {HOSTILE}") as advance:
        advance(1, 2, HOSTILE)
    err = capsys.readouterr().err
    assert "building red" in err
    assert "\x1b[" in err
    assert "owned" not in err
    assert not steers(err) - {"\x1b", "\r"}


def test_colours_of_tables_are_kdynos_own_and_names_are_no_markup(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    table = Table(box=None)
    table.add_column("name")
    table.add_row("[link=https://evil.example]click[/link] :bomb:\x1b]52;c;x\x07")
    terminal.console().print(table)
    terminal.console().print(Text("faster", style="green"))
    out = capsys.readouterr().out
    assert "[link=https://evil.example]click[/link] :bomb:" in out
    assert "\x1b[32mfaster\x1b[0m" in out
    assert "\x1b]" not in out


def test_data_is_as_it_is_unless_a_terminal_shows_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal.data("a\x1b[31m\tb\n")
    assert capsys.readouterr().out == "a\x1b[31m\tb\n"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    terminal.data("a\x1b[31m\tb\n")
    assert capsys.readouterr().out == "a        b\n"


def test_without_standard_streams_nothing_is_said_and_nothing_fails(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    terminal.tell("nobody hears")
    assert not terminal.can_draw()
    monkeypatch.setattr(sys, "stdout", None)
    terminal.line("nobody hears")
    terminal.data("nobody hears")
    assert isinstance(terminal.data_file(), io.StringIO)
    monkeypatch.undo()
    assert capsys.readouterr() == ("", "")


def test_json_of_any_character_is_the_same_json_and_steers_nothing() -> None:
    text = json.dumps([*EVERYTHING, {"\x9b2J": "é漢🙂"}], indent=2, ensure_ascii=False)
    harmless = harmless_json(text)
    assert json.loads(harmless) == json.loads(text)
    assert not steers(harmless)
    assert "é漢🙂" in harmless
    assert r'"\u009b2J"' in harmless


@pytest.mark.parametrize("cleaned", [clean, clean_line, clean_lines])
def test_an_unfinished_sequence_hides_nothing_of_what_follows(cleaned: object) -> None:
    assert callable(cleaned)
    assert cleaned("unknown key \x1b]0;owned in line 3") == "unknown key 0;owned in line 3"


def test_a_name_in_utf_8_is_readable_in_every_locale_and_other_bytes_are_shown() -> None:
    assert clean("d\udcc3\udca4tei") == "dätei"
    assert clean("caf\udce9") == "caf\\xe9"
    assert clean("half \ud800") == "half \\ud800"


def test_text_is_cut_in_its_middle() -> None:
    assert cut("short", 10) == "short"
    assert cut("0123456789ab", 10) == "01234 [... 2 characters left out ...] 789ab"


@pytest.mark.parametrize(
    "part", ["\x1b[", "\x1b[0", "\x9b", "\x1b]", "\x1b]0;x", "\x1bP\x1b", "\x1b ", "\x1b[ ", "\x9b0 "]
)
def test_cleaning_takes_time_in_proportion(part: str) -> None:
    assert not too_steep(clean_lines, repeated("", part, ""), most=48_000)


@pytest.mark.parametrize("shown", [clean, clean_line, clean_lines, harmless_json])
@pytest.mark.parametrize("part", ["\x07", "\u202e", "\udce9", "é\x7f", "\t\x07\n"])
def test_no_text_is_built_anew_for_each_of_its_characters(shown: Callable[[str], str], part: str) -> None:
    few, many = (characters(partial(shown, part * times)) for times in (100, 100 * FACTOR))
    assert many <= 2 * FACTOR * few


@pytest.mark.parametrize(("columns", "width"), [("72", 72), ("", 110), ("wide", 110), ("0", 110), ("-5", 110)])
def test_a_page_without_a_terminal_is_as_wide_as_columns_says_or_110(
    monkeypatch: pytest.MonkeyPatch, columns: str, width: int
) -> None:
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("COLUMNS", columns)
    assert terminal.console().width == width
    monkeypatch.delenv("COLUMNS")
    assert terminal.console().width == 110


def test_a_table_that_is_wider_than_the_page_is_printed_whole(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "10")
    table = Table(box=None, show_header=False, padding=0)
    table.add_column(width=12, no_wrap=True)
    table.add_row("1,234,567.89")
    console = terminal.console()
    terminal.print_whole(console, table, 12)
    assert capsys.readouterr().out == "1,234,567.89\n"
    assert console.width == 10
