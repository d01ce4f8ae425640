"""Which symbols stay and which may go, from evidence and a small Kconfig."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.kernel import hardening
from kdyno.kernel.kconfig_tree import KconfigTree, read_tree
from kdyno.tune.fit.evidence import Evidence, ExecutedPlace, Functions, gather_evidence
from kdyno.tune.fit.kinds import kind_of, kinds
from kdyno.tune.fit.splitting import Splitting, WontDo
from kdyno.tune.fit.symbols import find_dependencies, find_reasons, missing_firm, removal_causes, removal_order
from kdyno.understand.coverage.model import FunctionCoverage

KCONFIG = """
config RAN
	bool "code of it ran"
	depends on BELOW || OTHER

config BELOW
	bool "what it depends on"

config OTHER
	bool "what it could depend on instead"

config IDLE
	bool "nothing of it ran"
	select HIDDEN

config STARTED
	bool "it was initialised"
	depends on IDLE

config HIDDEN
	bool

config MENU
	bool "a menu"

config WANTED
	bool "somebody wants it"

choice
	prompt "one of two"
config ONE
	bool "one"
config TWO
	bool "two"
endchoice

source "mm/Kconfig"
"""
SOURCE = ExecutedPlace("a.c", 3, "work")
RAN, STARTED, NEVER = Evidence(9, load=SOURCE), Evidence(9, start=SOURCE), Evidence(9)
CONFIG = dict.fromkeys(("RAN", "BELOW", "IDLE", "STARTED", "HIDDEN", "MENU", "WANTED", "ONE", "COMPACTION"), "y")
EVIDENCE = {"RAN": RAN, "BELOW": NEVER, "IDLE": NEVER, "STARTED": STARTED, "ONE": NEVER, "COMPACTION": NEVER}


@pytest.fixture(name="kconfig")
def small_tree(tmp_path: Path) -> KconfigTree:
    (tmp_path / "mm").mkdir()
    (tmp_path / "Kconfig").write_text(KCONFIG)
    (tmp_path / "mm" / "Kconfig").write_text('config COMPACTION\n\tbool "Memory"\n')
    return read_tree(tmp_path)


def test_each_symbol_has_one_reason_and_only_what_did_not_run_may_go(kconfig: KconfigTree) -> None:
    reasons = find_reasons({**CONFIG, "OTHER": "n", "NAME": '"x"'}, kconfig, EVIDENCE, {"WANTED": "the agent wants it"})
    assert {symbol: reason.why for symbol, reason in reasons.items()} == {
        "RAN": "load",
        "BELOW": "never",
        "IDLE": "never",
        "STARTED": "start",
        "HIDDEN": "derived",
        "MENU": "no code",
        "WANTED": "asked",
        "ONE": "choice",
        "COMPACTION": "kind",
    }
    assert reasons["RAN"].text == "the load ran work() of a.c"
    assert reasons["IDLE"].text == "none of its 9 lines of code ran"
    assert reasons["STARTED"].text == "only the start of the kernel ran code of it, such as work() of a.c"
    assert removal_order(reasons, kconfig) == ["BELOW", "IDLE", "STARTED"]


def test_what_a_needed_symbol_depends_on_is_held(kconfig: KconfigTree) -> None:
    reasons = find_reasons(CONFIG, kconfig, EVIDENCE, {})
    kept = find_dependencies(["BELOW", "IDLE", "STARTED"], reasons, CONFIG, kconfig)
    assert {symbol: reason.text for symbol, reason in kept.items()} == {"BELOW": "RAN depends on it"}
    both = {**CONFIG, "OTHER": "y"}
    reasons = find_reasons(both, kconfig, {**EVIDENCE, "OTHER": NEVER}, {})
    assert set(find_dependencies(["BELOW", "IDLE"], reasons, both, kconfig)) == set(), "the other one is enough"
    assert set(find_dependencies(["BELOW", "OTHER"], reasons, both, kconfig)) == {"BELOW"}, "one of them is enough"


def test_a_hidden_symbol_that_ran_holds_one_that_selects_it_and_all_below_that(kconfig: KconfigTree) -> None:
    reasons = find_reasons(CONFIG, kconfig, {**EVIDENCE, "HIDDEN": RAN}, {})
    kept = find_dependencies(["IDLE", "STARTED"], reasons, CONFIG, kconfig)
    assert {symbol: reason.text for symbol, reason in kept.items()} == {"IDLE": "it selects HIDDEN"}
    kconfig.entries["IDLE"][0].depends.append("STARTED")
    assert set(find_dependencies(["IDLE", "STARTED"], reasons, CONFIG, kconfig)) == {"IDLE", "STARTED"}


def test_firm_symbols_that_a_configuration_lacks_are_seen_and_others_went_with_somebody(kconfig: KconfigTree) -> None:
    reasons = find_reasons(CONFIG, kconfig, EVIDENCE, {})
    final = {**CONFIG, "IDLE": "n", "STARTED": "n", "HIDDEN": "n"}
    assert missing_firm(reasons, final) == []
    assert missing_firm(reasons, {**final, "RAN": "n"}) == ["RAN"]
    assert removal_causes("STARTED", CONFIG, final, kconfig) == "IDLE"
    assert removal_causes("HIDDEN", CONFIG, final, kconfig) == "IDLE"


def test_own_files_decide_and_conditional_lines_only_where_there_are_none() -> None:
    sources = {"a.c": ["#ifdef CONFIG_HOOK", "x", "#endif"], "own.c": ["x"] * 3}
    load = {"a.c": {2: 50}, "own.c": {1: 4, 2: 1, 3: 0}}
    functions = Functions([FunctionCoverage(name="begin", file="own.c", line=1, calls=1, bytes=1, bytes_executed=1)])

    def of(files: dict[str, set[str]], start: dict[str, dict[int, int]]) -> dict[str, Evidence]:
        return gather_evidence({"HOOK"}, files, lambda file: sources[file], load, start, functions)

    assert of({}, {}) == {"HOOK": Evidence(1, load=ExecutedPlace("a.c", 2, ""), start=ExecutedPlace("a.c", 2, ""))}
    own = {"HOOK": {"own.c"}, "OFF": {"a.c"}}
    assert of(own, {})["HOOK"].load == ExecutedPlace("own.c", 1, "begin")
    as_often = of(own, {"own.c": {1: 4, 2: 1}})["HOOK"]
    assert (as_often.lines, as_often.load, as_often.start) == (3, None, ExecutedPlace("own.c", 1, "begin"))
    load["own.c"] = {1: 0, 2: 0}
    assert of(own, {})["HOOK"] == Evidence(2)


def test_protections_are_kept_whatever_ran_and_firmly() -> None:
    for symbol in hardening.table():
        kind = kind_of(symbol, ())
        assert kind and kind.firm, symbol
    assert kind_of("MITIGATION_OF_TOMORROW", ()) == kinds()[0]
    assert kind_of("EXT4_FS", ("fs/ext4/Kconfig",)) is None
    processor = kind_of("X86_MSR", ("arch/x86/Kconfig",))
    assert processor and processor.name == "processor" and not processor.firm


def searched(
    symbols: str, bad: set[frozenset[str]], most: int = 99, is_built: bool = True
) -> tuple[Splitting, list[str]]:
    """Symbols are letters; a kernel that lacks all of one of the `bad` sets won't do."""
    splitting, tried = Splitting(most), []
    asked = splitting.run(tuple(symbols))
    try:
        off = next(asked)
        while True:
            tried.append("".join(off))
            failures = ("".join(sorted(group)) for group in sorted(bad, key=sorted) if group <= set(off))
            why = next(failures, None)
            off = asked.send(WontDo(why, is_built) if why else None)
    except StopIteration:
        return splitting, tried


def test_one_kernel_is_enough_if_nothing_is_missed() -> None:
    splitting, tried = searched("abcdefgh", set())
    assert tried == ["abcdefgh"] and "".join(splitting.disabled) == "abcdefgh"
    assert searched("", set())[1] == []


def test_a_culprit_is_found_in_few_kernels_and_all_others_go() -> None:
    splitting, tried = searched("abcdefgh", {frozenset("f")})
    assert splitting.culprits == {"f": "f"} and "".join(splitting.disabled) == "abcdegh"
    assert len(tried) <= 2 * 3 + 1 and tried[1] == "abcd"


def test_of_two_that_fail_only_together_one_goes() -> None:
    splitting, tried = searched("abcdefgh", {frozenset("ah")})
    assert splitting.culprits == {"h": "ah"} and "".join(splitting.disabled) == "abcdefg"
    assert len(tried) == splitting.kernels


def test_what_no_kernel_is_left_for_stays() -> None:
    splitting, tried = searched("abcdefgh", {frozenset("a")}, most=3)
    assert tried == ["abcdefgh", "abcd", "ab"]
    assert set(splitting.untried) == set("abcdefgh") and splitting.disabled == ()
    assert splitting.untried["c"] == "a"


def test_what_a_configuration_alone_refuses_costs_no_kernel() -> None:
    splitting, tried = searched("abcdefgh", {frozenset("a")}, most=3, is_built=False)
    assert splitting.culprits == {"a": "a"} and not splitting.untried
    assert splitting.kernels == 3 and tried == ["abcdefgh", "abcd", "ab", "a", "b", "bcd", "bcdefgh"]
