"""`kdyno doctor --install`: the one command that installs what kdyno uses, and only if it is asked for."""

from __future__ import annotations

from pathlib import Path

import pytest

from kdyno.base import packages
from kdyno.cli.main import main
from kdyno.understand.install import InstallFailed, NoRights, UnknownDistribution, advice, install_commands, run
from tests.unit.os_release import DEBIAN, FEDORA, UBUNTU


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Debian where only apt-get is installed, as root; the calls of apt-get, a line each."""
    calls = tmp_path / "calls"
    calls.touch()
    bin_directory = tmp_path / "bin"
    bin_directory.mkdir()
    program = bin_directory / "apt-get"
    program.write_text(f'#!/bin/sh\necho "apt-get $*" >> {calls}\necho output\ntest "$1" != fail\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin_directory))
    monkeypatch.setenv("KDYNO_STATE", str(tmp_path / "state"))
    monkeypatch.setattr("os.geteuid", lambda: 0)
    pretend(monkeypatch, tmp_path, DEBIAN)
    return calls


def pretend(monkeypatch: pytest.MonkeyPatch, directory: Path, os_release: str) -> None:
    (directory / "os-release").write_text(os_release)
    monkeypatch.setattr(packages, "OS_RELEASE", directory / "os-release")


def test_doctor_prints_the_command_and_runs_nothing(calls: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor"]) == 3
    printed = capsys.readouterr().out
    assert "`kdyno doctor --install` runs it: sudo apt-get install -y " in printed
    assert calls.read_text() == ""


def test_install_runs_it_for_all_that_kdyno_uses_and_for_nothing_that_only_tests_use(
    calls: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--install", "--json"]) == 3  # nothing was installed: apt-get is a script here
    update, install = calls.read_text().splitlines()
    assert update == "apt-get update -q"
    assert {"flex", "ccache", "clang-19", "mmdebstrap", "qemu-user"} <= set(install.split())
    assert not {"chromium", "postgresql", "cargo-web"} & set(install.split())
    out, err = capsys.readouterr()
    assert out.startswith("[")
    assert "apt-get install -y --no-install-recommends" in err


def test_an_ordinary_user_needs_sudo(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.geteuid", lambda: 1000)
    with pytest.raises(NoRights) as raised:
        install_commands(["flex"])
    assert raised.value.advice.endswith("apt-get update -q && apt-get install -y --no-install-recommends flex")
    sudo = calls.parent / "bin" / "sudo"
    sudo.write_text("#!/bin/sh\n")
    sudo.chmod(0o755)
    assert [command[:2] for command in install_commands(["flex"])] == [["sudo", "apt-get"]] * 2


def test_names_are_those_of_the_distribution(calls: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, calls.parent, UBUNTU)
    assert install_commands(["mmdebstrap"])[1][-3:] == ["mmdebstrap", "debian-archive-keyring", "gpg"]
    pretend(monkeypatch, calls.parent, FEDORA)
    assert advice() == ""
    with pytest.raises(UnknownDistribution):
        install_commands(["flex"])


@pytest.mark.usefixtures("calls")
def test_a_command_that_fails_ends_it_with_its_status() -> None:
    with pytest.raises(InstallFailed, match="apt-get fail ended with status 1"):
        run([["apt-get", "fail"], ["apt-get", "install"]])
