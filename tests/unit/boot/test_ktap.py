"""KTAP in consoles: one that a kernel left, and what failing, dying and lying kernels might leave."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.boot.console import read_console, warnings_of
from kdyno.boot.ktap import LONGEST_LINE, MOST_NAMED, Ktap, read_ktap
from tests.unit.growth import calls, repeated, too_steep

RECORDED = Path(__file__).parents[2] / "data" / "kunit" / "console.log"
FAILING = """\
random: crng init done
KTAP version 1
1..3
    KTAP version 1
    # Subtest: string
    1..3
    ok 1 memset16
    # memset32: EXPECTATION FAILED at lib/string_kunit.c:40
    Expected 1 == 2, but
    # memset32: EXPECTATION FAILED at lib/string_kunit.c:41
WARNING: CPU: 0 PID: 12 at lib/string.c:3 memset32+0x10/0x20
    not ok 2 memset32
    ok 3 memset64 # SKIP needs 64 bits
# string: pass:1 fail:1 skip:1 total:3
not ok 1 string
    KTAP version 1
    # Subtest: overflow
    1..2
        KTAP version 1
        # Subtest: shift
        1..2
        ok 1 8 bits
        not ok 2 16 bits
    not ok 1 shift
    not ok 2 slow # TIMEOUT 300 seconds
not ok 2 overflow
    # Subtest: broken
    # broken: failed to initialize (-12)
not ok 3 broken
"""


def named(ktap: Ktap) -> list[tuple[str, str, str]]:
    return [(failure.suite, failure.test, failure.why) for failure in ktap.failures]


def test_all_suites_of_a_real_console_are_counted() -> None:
    """Linux 6.12.117 with 20 suites; the kernel's own messages stand among the results."""
    ktap = read_ktap(read_console(RECORDED))
    assert (ktap.suites, ktap.passed, ktap.failed, ktap.skipped) == (20, 166, 0, 0)
    assert ktap.is_sound and not warnings_of(read_console(RECORDED))


def test_totals_are_those_that_the_kernel_adds_up_itself() -> None:
    """The kernel says `# Totals: pass:P ...` of suites with more than one test, parameters counted one by one."""
    text = read_console(RECORDED)
    for suite, tests in {"string": 20, "list-kunit-test": 39, "overflow": 22}.items():
        assert f"# {suite}: pass:{tests} fail:0 skip:0 total:{tests}" in text
        begin = text.index(f"    # Subtest: {suite}\n")
        end = text.index("# Totals:", begin)
        one = read_ktap(f"KTAP version 1\n1..1\n{text[begin:end]}ok 1 {suite}\n")
        assert (one.suites, one.passed) == (1, tests)


def test_what_failed_is_named_with_the_kernels_first_word_on_it() -> None:
    ktap = read_ktap(FAILING)
    assert (ktap.suites, ktap.passed, ktap.failed, ktap.skipped) == (3, 1, 3, 1)
    assert named(ktap) == [
        ("string", "memset32", "EXPECTATION FAILED at lib/string_kunit.c:40"),
        ("overflow", "shift", ""),
        ("overflow", "slow", "TIMEOUT 300 seconds"),
        ("broken", "", "failed to initialize (-12)"),
    ]
    assert not ktap.is_sound and ktap.fault == ""
    assert warnings_of(FAILING) == ("WARNING: CPU: 0 PID: 12 at lib/string.c:3 memset32+0x10/0x20",)


@pytest.mark.parametrize("prefix", ["[    1.234567] ", "[   12.345678][    T1] ", "[    0.000001][ C0] "])
def test_times_and_threads_before_lines_change_nothing(prefix: str) -> None:
    assert read_ktap("".join(f"{prefix}{line}\r\n" for line in FAILING.splitlines())) == read_ktap(FAILING)


def test_older_kernels_write_a_dash() -> None:
    ktap = read_ktap("TAP version 14\n1..1\n    # Subtest: sysctl\n    1..1\n    ok 1 - happy\nok 1 - sysctl\n")
    assert (ktap.suites, ktap.passed, ktap.is_sound) == (1, 1, True)


def test_expected_failures_count_as_skipped() -> None:
    ktap = read_ktap("KTAP version 1\n1..1\n    1..2\n    not ok 1 a # XFAIL\n    not ok 2 b # TODO later\nok 1 s\n")
    assert (ktap.failed, ktap.skipped, ktap.is_sound) == (0, 2, True)


def test_a_console_that_is_cut_anywhere_is_never_sound() -> None:
    text = read_console(RECORDED)
    end = text.index("\nok 20 ")
    for cut in range(0, end, 331):
        assert not read_ktap(text[:cut]).is_sound
    assert read_ktap(text[: text.index("\nok 5 ")]).fault == "4 of 20 suites have a result, after string"


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "no suite ran"),
        ("ok 1 fine\n", "no suite ran"),
        ("KTAP version 1\n", "0 of ? suites have a result"),
        ("KTAP version 1\n1..2\nok 1 s\n", "1 of 2 suites have a result, after s"),
    ],
)
def test_what_is_missing_is_said(text: str, fault: str) -> None:
    assert read_ktap(text).fault == fault


def test_a_kernel_with_no_suite_at_all_is_sound() -> None:
    assert read_ktap("KTAP version 1\n1..0\n").is_sound


def test_a_suite_with_fewer_results_than_it_planned_failed() -> None:
    text = "KTAP version 1\n1..1\n    1..3\n    ok 1 a\n    ok 2 b\nok 1 s\n"
    assert named(read_ktap(text)) == [("s", "", "2 of its 3 tests have a result")]


def test_names_are_cleaned_and_failures_beyond_a_limit_only_counted() -> None:
    tests = "".join(f"    not ok {n} a\x1b[31m{n}\u202e\n" for n in range(MOST_NAMED + 5))
    ktap = read_ktap(f"KTAP version 1\n1..1\n{tests}not ok 1 s\n")
    assert ktap.failed == MOST_NAMED + 5 and len(ktap.failures) == MOST_NAMED
    assert all(failure.test.isprintable() for failure in ktap.failures)


@given(st.text(alphabet="KTAP version1.\n not ok#SKIP[]0:F", max_size=400))
def test_any_text_is_read(text: str) -> None:
    ktap = read_ktap(f"KTAP version 1\n{text}")
    assert len(ktap.failures) <= MOST_NAMED and min(ktap.suites, ktap.passed, ktap.failed, ktap.skipped) >= 0


def suites_of(line: str, times: int) -> str:
    return "KTAP version 1\n" + f"{line}\n" * times


@pytest.mark.parametrize("start", ["", "# "])
@pytest.mark.parametrize("part", ["    ", "not ok 1 ", "EXPECTATION FAILE", "[", "ok 1 #"])
def test_time_grows_with_the_text_alone(start: str, part: str) -> None:
    assert not too_steep(read_ktap, repeated(f"KTAP version 1\n{start}", part, "\n"))
    line = (start + part * LONGEST_LINE)[:LONGEST_LINE]
    assert calls(lambda: read_ktap(suites_of(line, 300))) <= 10 * calls(lambda: read_ktap(suites_of(line, 30)))
