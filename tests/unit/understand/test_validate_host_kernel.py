"""The running kernel as something to build: configuration, what is added to it, the nearest source, mitigations."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.kernel.kconfig import BaseMissing
from kdyno.understand.validate import host_kernel
from kdyno.understand.validate.host_kernel import (
    NoRunningConfig,
    NoSource,
    StrangeRelease,
    additions,
    compiler_of,
    config_of,
    dropped_options,
    nearest_source,
    release_number,
    running_config,
)
from kdyno.understand.validate.mitigations import compare_mitigations, parse_listing, read_vulnerabilities, words_for

READY = dict.fromkeys((need.symbol for need in host_kernel.WANTED), "y")


@pytest.mark.parametrize(
    ("older", "newer", "between"),
    [
        ("6.12", "6.18.44-fc-v657", 6),
        ("6.18.44", "7.2.13", 4),
        ("6.19", "7.0.0-rc3", 1),
        ("5.19", "6.0", 1),
        ("4.20", "5.0", 1),
        ("2.6.39", "3.0", 34),
    ],
)
def test_releases_are_counted_across_major_numbers(older: str, newer: str, between: int) -> None:
    assert release_number(newer) - release_number(older) == between


@pytest.mark.parametrize(
    ("running", "nearest"), [("6.18.44", "7.2"), ("6.14.0-1-amd64", "6.12"), ("6.15.2", "7.2"), ("5.10", "6.1")]
)
def test_the_nearest_source_is_fewest_releases_away(tmp_path: Path, running: str, nearest: str) -> None:
    for name in ("linux-source-6.1", "linux-source-6.12", "linux-source-7.2", "linux-source-odd"):
        (tmp_path / f"{name}.tar.xz").touch()
    if running == "6.15.2":
        (tmp_path / "linux-source-6.12.tar.xz").unlink()
    assert nearest_source(running, tmp_path) == f"debian:linux-source-{nearest}"


def test_ubuntus_package_of_a_source_is_found_too(tmp_path: Path) -> None:
    (tmp_path / "linux-source-6.8.0").mkdir()
    (tmp_path / "linux-source-6.8.0.tar.bz2").touch()
    assert nearest_source("6.8.0-31-generic", tmp_path) == "debian:linux-source-6.8.0"


def test_of_two_that_are_equally_near_the_newer_is_taken(tmp_path: Path) -> None:
    for name in ("linux-source-6.12", "linux-source-6.14"):
        (tmp_path / f"{name}.tar.xz").touch()
    assert nearest_source("6.13", tmp_path) == "debian:linux-source-6.14"


def test_a_host_without_a_source_and_a_strange_release_are_said(tmp_path: Path) -> None:
    with pytest.raises(NoSource, match=r"this host has no kernel source for 6\.18") as error:
        nearest_source("6.18", tmp_path)
    assert "--source SPEC" in error.value.advice
    (tmp_path / "linux-source-6.12.tar.xz").touch()
    with pytest.raises(StrangeRelease, match="`gnumach`"):
        nearest_source("gnumach", tmp_path)


def test_a_host_that_hides_its_configuration_is_told_how_to_name_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(host_kernel, "PLACES", ("/nowhere/config-{release}",))
    with pytest.raises(NoRunningConfig, match=r"/nowhere/config-6\.1") as error:
        running_config("6.1")
    assert error.value.advice == "name the configuration by --config FILE" and error.value.exit_code == 1


def test_a_configuration_that_is_named_is_read(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text('CONFIG_UNIX=y\n# CONFIG_INET is not set\nCONFIG_CC_VERSION_TEXT="gcc 15"\n')
    config = config_of(path)
    assert config["UNIX"] == "y" and config["INET"] == "n" and compiler_of(config) == "gcc 15"
    assert compiler_of({}) == "unknown"
    with pytest.raises(BaseMissing, match="can't read"):
        config_of(tmp_path / "nothing")


def test_only_what_a_guest_lacks_is_added() -> None:
    assert additions(READY) == ({}, {})
    asked, why = additions({**READY, "VIRTIO_CONSOLE": "m", "DEBUG_INFO": "y", "SYSTEM_TRUSTED_KEYS": '"debian/x.pem"'})
    assert asked == {"VIRTIO_CONSOLE": True, "DEBUG_INFO_NONE": True, "SYSTEM_TRUSTED_KEYS": ""}
    assert why.keys() == asked.keys() and all(why.values())


def test_options_that_the_source_does_not_have_are_listed_without_those_of_the_compiler() -> None:
    host = {"PVM_GUEST": "y", "UNIX": "y", "CC_HAS_ASM_INLINE": "y", "DEBUG_INFO_BTF": "y", "E1000": "m", "ZONE": "n"}
    assert dropped_options(host, {"UNIX": "y"}) == ("PVM_GUEST",)
    assert dropped_options(host, {"UNIX": "y"}, requested=("PVM_GUEST",)) == ()


@pytest.mark.parametrize(
    ("name", "status", "word"),
    [
        ("meltdown", "Not affected", "pti=off"),
        ("meltdown", "Mitigation: PTI", "pti=on"),
        ("meltdown", "Vulnerable", "pti=off"),
        ("mds", "Mitigation: Clear CPU buffers; SMT vulnerable", "mds=full"),
        ("mds", "Not affected", "mds=off"),
        ("spectre_v1", "Vulnerable: __user pointer sanitization and usercopy barriers only", "nospectre_v1"),
        ("spectre_v2", "Mitigation: Retpolines; BHI: SW loop, KVM: SW loop", "spectre_v2=retpoline"),
        ("spectre_v2", "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional", "spectre_v2=off"),
        ("retbleed", "Mitigation: untrained return thunk; SMT vulnerable", "retbleed=unret"),
        ("retbleed", "Mitigation: Stuffing", "retbleed=stuff"),
        ("retbleed", "Mitigation: Enhanced IBRS", "retbleed=off"),
        ("indirect_target_selection", "Mitigation: Aligned branch/return thunks", "indirect_target_selection=force"),
        ("spec_rstack_overflow", "Mitigation: Safe RET", "spec_rstack_overflow=safe-ret"),
        ("spec_store_bypass", "Vulnerable", "spec_store_bypass_disable=off"),
    ],
)
def test_what_a_kernel_does_about_a_fault_becomes_a_word(name: str, status: str, word: str) -> None:
    assert word in words_for({name: status}, "")


def test_branch_history_is_cleared_where_it_is_here() -> None:
    assert "spectre_bhi=on" in words_for({"spectre_v2": "Mitigation: Enhanced IBRS; BHI: SW loop"}, "")
    assert "spectre_bhi=off" in words_for({"spectre_v2": "Mitigation: Retpolines; BHI: Retpoline"}, "")


def test_words_that_change_what_is_executed_are_passed_on_and_others_are_not() -> None:
    words = words_for({}, "quiet psi=1 root=/dev/vda preempt=none mitigations=auto")
    assert words == ("psi=1", "preempt=none", "noreplace-smp")


def test_a_fault_that_a_kernel_does_not_know_is_no_difference_unless_something_is_done() -> None:
    listing = f"/sys/devices/{'x'}/meltdown:Mitigation: PTI\n/sys/x/srbds:Vulnerable\ngrep: nothing\n"
    guest = parse_listing(listing)
    assert guest["meltdown"] == "Mitigation: PTI"
    rows = {row.name: row for row in compare_mitigations({"meltdown": "Mitigation: PTI", "tsa": "Not affected"}, guest)}
    assert "srbds" not in rows and rows["tsa"].guest == "unknown" and rows["tsa"].is_matched
    assert rows["meltdown"].is_matched


def test_a_kernel_that_says_nothing_of_its_faults_has_none(tmp_path: Path) -> None:
    assert read_vulnerabilities(tmp_path / "nothing") == {}
    (tmp_path / "meltdown").write_text("Mitigation: PTI\n")
    assert read_vulnerabilities(tmp_path) == {"meltdown": "Mitigation: PTI"}
