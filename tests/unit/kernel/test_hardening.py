"""Mitigations and hardening: the list, the dyno configuration, and what a kernel is said to have."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel.build import check_configuration
from kdyno.kernel.hardening import candidates, protections, table, to_be_met
from kdyno.kernel.kconfig import resolve_base
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.knobs import KconfigRequest
from kdyno.kernel.knobs.kconfig import parse_fragment
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from tests.unit.kernel_toy import plan, silent, toy_tree

MENU = """
menuconfig CPU_MITIGATIONS
	bool "Mitigations for CPU vulnerabilities"
if CPU_MITIGATIONS
config MITIGATION_RETPOLINE
	bool "Avoid speculative indirect branches"
config MITIGATION_RETHUNK
	bool "Return thunks"
	depends on MITIGATION_RETPOLINE
config MITIGATION_WITHOUT_QUESTION
	def_bool y
endif
config VMAP_STACK
	bool "Guard pages"
	depends on !KASAN
config KASAN
	bool "Sanitizer"
config NET_OF_ANOTHER_KIND
	bool "Networking"
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A kernel source of nothing but Kconfig."""
    (tmp_path / "security").mkdir()
    (tmp_path / "kernel" / "configs").mkdir(parents=True)
    (tmp_path / "Kconfig").write_text(MENU + 'source "security/Kconfig.hardening"\n', encoding="utf-8")
    text = 'config INIT_STACK_NONE\n\tbool "none"\nconfig ZERO_CALL_USED_REGS\n\tbool "Registers"\n'
    (tmp_path / "security" / "Kconfig.hardening").write_text(text, encoding="utf-8")
    wanted = "CONFIG_KFENCE=y\n# CONFIG_COMPAT_BRK is not set\n"
    (tmp_path / "kernel" / "configs" / "hardening.config").write_text(wanted, encoding="utf-8")
    return tmp_path


def dyno_asks() -> dict[str, KconfigRequest]:
    return {request.symbol: request for request in parse_fragment(resolve_base("dyno").text, "base dyno")}


def states(config: str) -> dict[str, str]:
    return {protection.option: protection.state for protection in protections(read_config(config))}


def open_asks(config: str, tree: Path, overruled: tuple[str, ...] = ()) -> set[str]:
    """Those of dyno's asks for what the little tree has that are to be met, under old and new names."""
    symbols = ("CPU_MITIGATIONS", "MITIGATION_RETPOLINE", "RETPOLINE", "MITIGATION_RETHUNK", "VMAP_STACK", "SMP")
    asks = [dyno_asks()[symbol] for symbol in symbols]
    return {request.symbol for request in to_be_met(asks, read_config(config), overruled, tree)}


def test_what_defconfig_has_on_dyno_asks_for_or_the_list_says_why_not(data: Path) -> None:
    """The record is made by tools/hardening; the end-to-end test compares it with the real thing."""
    recorded = read_config((data / "kconfig" / "hardening-6.12.config").read_text(encoding="utf-8"))
    assert {option for option, row in table().items() if row.dyno != "more"} == set(recorded)


def test_dyno_asks_for_what_the_list_says_it_has_and_for_nothing_else_of_it() -> None:
    listed = {name for row in table().values() if row.dyno == "on" for name in row.names}
    names = {name for row in table().values() for name in row.names}
    asks = dyno_asks()
    assert {name for name in names if name in asks} == listed
    assert {request.value for name, request in asks.items() if name in names} == {"y"}
    assert not [name for name in asks if name.startswith("MITIGATION_") and name not in names]


def test_every_row_is_whole_and_names_each_option_once() -> None:
    names = [name for row in table().values() for name in row.names]
    assert len(names) == len(set(names))
    assert len(table()) > 60
    for row in table().values():
        assert row.what and row.dyno in ("on", "left", "more")


def test_an_option_is_on_or_off_as_the_config_says() -> None:
    state_of = states("CONFIG_VMAP_STACK=y\n# CONFIG_STACKPROTECTOR is not set\n")
    assert (state_of["VMAP_STACK"], state_of["STACKPROTECTOR"]) == ("on", "off")


def test_what_needs_an_option_that_is_off_is_off_as_well() -> None:
    state_of = states("# CONFIG_STACKPROTECTOR is not set\n# CONFIG_CPU_MITIGATIONS is not set\n")
    assert state_of["STACKPROTECTOR_STRONG"] == state_of["MITIGATION_MDS"] == state_of["MITIGATION_RETHUNK"] == "off"


def test_what_a_kernel_could_have_and_does_not_know_is_no_option_of_it() -> None:
    state_of = states("CONFIG_CPU_MITIGATIONS=y\nCONFIG_RETPOLINE=y\n")
    assert state_of["MITIGATION_MDS"] == state_of["STRICT_MODULE_RWX"] == "no such option"


def test_an_older_kernels_name_stands_for_the_option() -> None:
    state_of = states("CONFIG_CPU_MITIGATIONS=y\nCONFIG_RETPOLINE=y\n# CONFIG_RETHUNK is not set\n")
    assert (state_of["RETPOLINE"], state_of["RETHUNK"]) == ("on", "off")
    assert "MITIGATION_RETPOLINE" not in state_of


def test_a_mitigation_that_the_list_does_not_have_is_told_at_the_end() -> None:
    *_, last = protections(read_config("CONFIG_MITIGATION_OF_NEXT_YEAR=y\n"))
    assert (last.option, last.state, last.what, last.dyno) == ("MITIGATION_OF_NEXT_YEAR", "on", "", "more")


def test_hardening_is_what_the_menus_ask_and_the_kernels_own_fragment_turns_on(tree: Path) -> None:
    menus = {"CPU_MITIGATIONS", "MITIGATION_RETPOLINE", "MITIGATION_RETHUNK", "ZERO_CALL_USED_REGS"}
    assert candidates(tree) == {*menus, "VMAP_STACK", "KFENCE"}


def test_no_note_is_due_where_an_option_is_on_under_one_of_its_names(tree: Path) -> None:
    mitigations = "CONFIG_CPU_MITIGATIONS=y\nCONFIG_MITIGATION_RETPOLINE=y\nCONFIG_MITIGATION_RETHUNK=y\n"
    assert open_asks(mitigations + "CONFIG_VMAP_STACK=y\n", tree) == {"SMP"}


def test_a_mitigation_that_this_source_knows_and_did_not_take_is_missed_under_the_name_it_has_there(tree: Path) -> None:
    config = "CONFIG_CPU_MITIGATIONS=y\n# CONFIG_MITIGATION_RETPOLINE is not set\nCONFIG_KASAN=y\n"
    assert open_asks(config, tree) == {"MITIGATION_RETPOLINE", "MITIGATION_RETHUNK", "VMAP_STACK", "SMP"}


def test_what_goes_with_an_option_that_the_recipe_turned_off_is_not_missed(tree: Path) -> None:
    config = "# CONFIG_CPU_MITIGATIONS is not set\nCONFIG_VMAP_STACK=y\n"
    assert open_asks(config, tree, ("CPU_MITIGATIONS",)) == {"SMP"}
    without_retpolines = "CONFIG_CPU_MITIGATIONS=y\n# CONFIG_MITIGATION_RETPOLINE is not set\nCONFIG_VMAP_STACK=y\n"
    assert open_asks(without_retpolines, tree, ("MITIGATION_RETPOLINE",)) == {"SMP"}


def test_a_source_without_these_options_gets_no_note_about_them(tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    source = fetch(str(toy_tree(tmp_path)), state, silent)
    notes = check_configuration(plan(Recipe(), source, state, "dyno"), state)
    assert notes
    assert not [note for note in notes if "MITIGATION_" in note or "VMAP_STACK" in note]
