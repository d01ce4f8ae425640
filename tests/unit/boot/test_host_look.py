"""Looking at a host: what is found, how it is said, and what can be done about it."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path

import pytest
from rich.console import Console

from kdyno.base.state import State
from kdyno.boot.host import cpus
from kdyno.boot.host.journal import journal_of_this_start
from kdyno.boot.host.knobs import KNOBS, owner_of
from kdyno.boot.host.look import HostFact, examine_host
from kdyno.boot.host.show import show_host, show_turned
from kdyno.boot.host.turn import restore, set_knobs
from kdyno.cli.main import main
from tests.unit.host_specimen import FILES, NO_TURBO, PID, Kernel, make_host, put


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "getpid", lambda: PID)
    return make_host(tmp_path / "host")


def facts(root: Path) -> dict[str, HostFact]:
    return {fact.name: fact for fact in examine_host(root, seconds=0.01)}


def shown(root: Path, state: State, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width)
    show_host(list(facts(root).values()), journal_of_this_start(state, root), console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_a_host_with_everything_wrong_is_told_so(root: Path) -> None:
    facts_by_name = facts(root)
    good = {name for name, fact in facts_by_name.items() if fact.status == "good"}
    assert good == {"isolated CPUs", "throttling", "hypervisor", "stolen time", "other load"}
    assert {name for name, fact in facts_by_name.items() if fact.status != "change"} == good


def test_each_knob_says_how_it_stands_and_how_it_should(root: Path) -> None:
    facts_by_name = facts(root)
    shown = {
        name: (facts_by_name[name].now, facts_by_name[name].wanted, facts_by_name[name].settable)
        for name in ("governor", "turbo", "smt")
    }
    assert shown == {
        "governor": ("powersave (4 times)", "performance", "yes"),
        "turbo": ("on", "off", "yes"),
        "smt": ("on", "off", "by name"),
    }
    assert (facts_by_name["irqs"].now, facts_by_name["irqs"].wanted) == ("0-63 (1), 0-3 (1), 3 (1)", "0-2")
    assert facts_by_name["CPU limit"].now == "1.5 CPUs, which stopped it 2 times"
    assert facts_by_name["swap"].now == "on"


def test_after_setting_everything_that_can_be_set_is_good(root: Path, tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    set_knobs(state, root=root, write=Kernel(root))
    set_knobs(state, ["smt", "thp"], root=root, write=Kernel(root))
    facts_by_name = facts(root)
    assert {facts_by_name[knob.name].status for knob in KNOBS} == {"good"}


def test_on_a_bare_host_what_is_missing_is_not_wrong(tmp_path: Path) -> None:
    facts_by_name = facts(tmp_path)
    assert {fact.status for fact in facts_by_name.values()} <= {"absent", "good", "plain"}
    assert {facts_by_name[knob.name].status for knob in KNOBS} == {"absent"}


@pytest.mark.parametrize("content", [b"", b"\xff\x00\x1b[2J[red]", b"9" * 5000, b"[", b"0-99999999", b"max 0"])
def test_nonsense_in_every_file_is_shown_and_breaks_nothing(root: Path, tmp_path: Path, content: bytes) -> None:
    for name in FILES:
        put(root, name, content)
    text = shown(root, State(tmp_path / "state"))
    assert "\x1b" not in text and "\x00" not in text
    assert max(len(line) for line in text.splitlines()) <= 200


def test_policies_that_differ_are_counted(root: Path) -> None:
    put(root, f"{Path(NO_TURBO).parents[1]}/cpufreq/policy2/scaling_governor", "performance\n")
    assert facts(root)["governor"].now == "powersave (3), performance (1)"


def test_without_isolated_cpus_interrupts_may_stay_where_they_are(root: Path) -> None:
    put(root, "sys/devices/system/cpu/isolated", "\n")
    facts_by_name = facts(root)
    assert (facts_by_name["irqs"].status, facts_by_name["irqs"].wanted) == ("plain", "")
    assert facts_by_name["isolated CPUs"].now == "none"


def test_a_guest_of_a_hypervisor_is_told_so(root: Path) -> None:
    put(root, "proc/cpuinfo", "flags : fpu hypervisor\n")
    put(root, "sys/class/dmi/id/sys_vendor", "QEMU\n")
    fact = facts(root)["hypervisor"]
    assert (fact.status, fact.now) == ("change", "yes (QEMU)")


@pytest.mark.parametrize(
    ("quota", "now"), [("50000", "0.5 CPUs"), ("-1", "none"), ("", "none"), ("x", "none"), ("9" * 40, "none")]
)
def test_the_limit_of_a_group_of_version_1_is_shown(root: Path, quota: str, now: str) -> None:
    put(root, f"proc/{PID}/cgroup", "1:cpu:/box\n")
    put(root, "sys/fs/cgroup/cpu/cgroup.procs", "")
    put(root, "sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", f"{quota}\n")
    put(root, "sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n")
    assert facts(root)["CPU limit"].now == now


def test_the_table_says_what_to_do(root: Path, tmp_path: Path) -> None:
    text = shown(root, State(tmp_path / "state"))
    assert "better: performance (--set)" in text
    assert "better: off (--set smt)" in text
    assert "irqbalance: sudo systemctl stop irqbalance" in text
    assert "`kdyno doctor --host --set` sets the knobs" in text
    assert "--restore" not in text


def test_the_table_says_that_knobs_are_set(root: Path, tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    set_knobs(state, ["turbo"], root=root)
    assert "files that --set has changed: 1; `kdyno doctor --host --restore` restores the previous values" in shown(
        root, state
    )


def test_what_was_turned_is_said_once_for_files_of_one_kind(root: Path, tmp_path: Path) -> None:
    state = State(tmp_path / "state")
    console = Console(file=io.StringIO(), width=100)
    refusing = Kernel(root, refuses=frozenset({NO_TURBO}))
    show_turned(set_knobs(state, ["governor", "turbo"], root=root, write=refusing), console)
    show_turned(restore(state, root=root), console)
    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue().splitlines() == [
        "governor: powersave -> performance: set (/sys/devices/system/cpu/cpufreq/policy0/scaling_governor and 3 more)",
        "turbo: 0 -> 1: refused: Invalid argument (/sys/devices/system/cpu/intel_pstate/no_turbo)",
        "governor: performance -> powersave: restored "
        "(/sys/devices/system/cpu/cpufreq/policy0/scaling_governor and 3 more)",
    ]


@pytest.mark.parametrize(
    ("text", "meant"),
    [("0-3,8", {0, 1, 2, 3, 8}), ("", set()), ("5", {5}), ("x", set()), ("0-99999999", set()), ("3-1", set())],
)
def test_lists_of_cpus_are_read(text: str, meant: set[int]) -> None:
    assert cpus.parse_list(text) == meant


@pytest.mark.parametrize("members", [{0}, {0, 1, 2, 3, 8}, {31, 32}, {33}, set(range(128)), {127}])
def test_lists_and_masks_are_written_as_they_are_read(members: set[int]) -> None:
    assert cpus.parse_list(cpus.format_list(members)) == members
    mask = cpus.format_mask(members)
    assert cpus.parse_list(cpus.mask_as_list(mask)) == members
    assert all(len(word) == 8 for word in mask.split(",")[1:])


def test_every_file_of_a_knob_has_an_owner_and_no_other_file_has() -> None:
    owned = {name for name in FILES if owner_of(name)}
    assert {owner[0].name for name in owned if (owner := owner_of(name))} == {knob.name for knob in KNOBS}
    assert not any("scaling_cur_freq" in name or "boot_id" in name for name in owned)


def test_this_host_can_be_looked_at(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--host", "--json", "--state", str(tmp_path)]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {knob.name for knob in KNOBS} < {fact["name"] for fact in document["facts"]}
    assert document["before_set"] == {}


@pytest.mark.parametrize(
    "words", [["--set"], ["--restore"], ["--host", "--set", "warp"], ["--host", "--set", "--restore"]]
)
def test_what_makes_no_sense_is_refused(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        status = main(["doctor", *words, "--state", str(tmp_path)])
    except SystemExit as left:
        status = left.code if isinstance(left.code, int) else -1
    assert status == 1
    assert capsys.readouterr().out == ""


def test_restoring_where_nothing_was_set_is_harmless(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--host", "--restore", "--state", str(tmp_path)]) == 0
    assert capsys.readouterr() == ("", "no knob was set from this state directory\n")
