"""Surroundings that are not as kdyno wishes: one message, or none because it does not matter; never a traceback."""

from __future__ import annotations

import errno
import json
import logging
import os
import pwd
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import kdyno.cli.main as main_module
from kdyno.base import surroundings
from tests.cli.conftest import CommandResult, Lab
from tests.ordinary_user import a_place_for_all, ordinary_user

ASCII = {"LC_ALL": "POSIX", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
"""The one locale in which Python takes neither texts nor file names for UTF-8 without being told."""
in_ascii = pytest.mark.skipif(not sys.prefix.isascii(), reason="Python itself is at a path that ASCII can't tell")
LOCALES = [{"LC_ALL": "C"}, {"LC_ALL": "POSIX"}, pytest.param(ASCII, marks=in_ascii)]
CSV = "variant,boot,value\n" + "".join(f"{name},{boot},10{boot}.5\n" for boot in range(4) for name in ("alt", "néu"))


def elsewhere(lab: Lab, *words: str, **environment: str) -> CommandResult:
    """Run a command in another process, with these variables."""
    command = [sys.executable, "-m", "kdyno", *words]
    done = subprocess.run(command, capture_output=True, env={**lab.environment, **environment}, check=False)
    return CommandResult(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.mark.parametrize("words", [["doctor"], ["runs"], ["run", "{experiment}"], ["build", "{experiment}"], ["march"]])
def test_without_a_home_there_is_one_message(lab: Lab, monkeypatch: pytest.MonkeyPatch, words: list[str]) -> None:
    def nobody(_uid: int) -> None:
        raise KeyError

    for name in ("HOME", "KDYNO_STATE", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    experiment = lab.experiment()
    result = lab(*(word.format(experiment=experiment) for word in words))
    assert (result.status, result.out) == (3, "")
    assert "HOME is not set" in result.err
    assert result.err.splitlines()[-1] == "hint: set HOME, or name a place with --state DIR or KDYNO_STATE"


@pytest.mark.parametrize("words", [["runs"], ["run", "{experiment}"], ["report", "latest"], ["selftest"]])
def test_a_state_directory_that_is_refused_is_one_message(lab: Lab, words: list[str]) -> None:
    assert lab("run", lab.experiment(), "-q").status == 0, "so that all is imported"
    with a_place_for_all() as place:
        shutil.copytree(lab.directory, place / "lab").chmod(0o755)
        place.chmod(0o555)
        with ordinary_user():
            words = [word.format(experiment=place / "lab" / "experiment.toml") for word in words]
            result = lab(*words, "--state", str(place / "none"))
    assert result.status == 3
    assert "Permission denied" in result.err
    assert result.err.count("kdyno: ") == result.err.count("hint: ") == 1


def test_march_needs_no_state_directory(lab: Lab) -> None:
    (lab.directory / "file").touch()
    result = lab("march", "--json", "--state", str(lab.directory / "file" / "state"))
    assert result.status == 0
    assert json.loads(result.out)["compilers"]


def test_what_the_system_refuses_is_one_message_and_a_traceback_only_on_demand(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    experiment = lab.experiment()
    refused = [PermissionError(errno.EACCES, "Permission denied", "/some/where"), OSError(errno.EMFILE, "Too many")]
    lab.on_boot(refused)
    result = lab("run", experiment, "-q")
    assert result.status == 3
    assert result.err.splitlines()[-2] == "kdyno: /some/where: Permission denied"
    assert "Traceback" not in result.err
    with caplog.at_level(logging.DEBUG, logger="kdyno"):
        result = lab("run", experiment, "-q", "-v")
    assert result.status == 3
    assert result.err.splitlines()[-2] == "kdyno: Too many"
    assert "Traceback" in caplog.text


def test_a_mistake_of_kdynos_own_is_not_hidden(lab: Lab) -> None:
    lab.on_boot([OSError("not from the system")])
    with pytest.raises(OSError, match="not from the system"):
        lab("run", lab.experiment(), "-q")


@pytest.mark.parametrize("locale", LOCALES, ids=lambda locale: " ".join(locale.values()))
def test_in_every_locale_output_and_files_are_utf_8(lab: Lab, locale: dict[str, str]) -> None:
    directories = {"KDYNO_STATE": str(lab.directory / "stäte"), "TMPDIR": str(lab.directory / "tëmp ü")}
    Path(directories["TMPDIR"]).mkdir()
    page, csv = lab.directory / "rëport.html", lab.directory / "dätei.csv"
    csv.write_text(CSV, encoding="utf-8")
    result = elsewhere(lab, "run", lab.experiment(), "-q", "--html", str(page), **locale, **directories)
    assert (result.status, "Traceback" in result.err) == (0, False)
    assert "lane: model — " in result.out
    assert "—" in page.read_text(encoding="utf-8")
    result = elsewhere(lab, "judge", str(csv), **locale, **directories)
    assert (result.status, result.err) == (0, "")
    assert "néu" in result.out
    assert "dätei.csv" in result.out


@in_ascii
def test_where_file_names_cannot_be_read_that_is_said(lab: Lab) -> None:
    folder = lab.directory / "ü"
    folder.mkdir()
    experiment = Path(lab.experiment()).rename(folder / "experiment.toml")
    result = elsewhere(lab, "run", str(experiment), **ASCII)
    assert (result.status, result.out) == (1, "")
    assert f"kdyno: the file name {folder}/a-tree is not valid ascii\n" in result.err
    assert "LC_ALL=C.UTF-8" in result.err.splitlines()[-1]


def test_a_file_whose_name_is_no_text_is_judged(lab: Lab) -> None:
    csv = lab.directory / "caf\udce9.csv"
    csv.write_text(CSV, encoding="utf-8")
    result = lab("judge", str(csv), "--json")
    assert result.status == 0
    assert r"caf\xe9.csv" in json.loads(result.out)["title"]
    assert lab("judge", str(csv), "--html", str(lab.directory / "page.html")).status == 0


@pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600)])
def test_a_report_has_the_mode_that_the_user_gives_to_files(lab: Lab, mask: int, mode: int) -> None:
    page = lab.directory / "page.html"
    before = os.umask(mask)
    try:
        assert lab("run", lab.experiment(), "-q", "--html", str(page)).status == 0
        assert os.umask(mask) == mask, "the mask stays as it was"
    finally:
        os.umask(before)
    assert stat.S_IMODE(page.stat().st_mode) == mode


def test_a_state_directory_with_a_space_is_refused_before_a_source_is_copied(lab: Lab) -> None:
    state = lab.directory / "with space"
    result = lab("build", lab.experiment(), "--state", str(state))
    assert (result.status, result.out) == (1, "")
    assert f"kdyno: kernels can't be built in {state}: Kbuild takes no spaces in paths" in result.err
    assert not (state / "sources").exists()


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (MemoryError(), "out of memory"),
        (RecursionError(), "nested too deep"),
        (RuntimeError("can't start new thread"), "no more threads"),
        (RuntimeError("can't allocate read lock"), "out of memory"),
        (SystemError("error return without exception set"), "out of memory"),
        (SystemError("<function f at 0x7f> returned NULL without setting an exception"), "out of memory"),
    ],
)
def test_what_python_cannot_hold_is_one_message(lab: Lab, error: Exception, message: str) -> None:
    experiment = lab.experiment()
    lab.on_boot([error])
    result = lab("run", experiment, "-q")
    assert result.status == 3
    assert message in result.err and "Traceback" not in result.err
    assert result.err.splitlines()[-1].startswith("hint: ")


def test_a_shortage_while_the_process_is_set_up_is_one_message(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        raise MemoryError

    monkeypatch.setattr(surroundings, "settle", refuse)
    result = lab("runs")
    assert (result.status, result.out) == (3, "")
    assert [line.split(" ")[0] for line in result.err.splitlines() if not line.startswith(" ")] == ["kdyno:", "hint:"]
    assert lab("runs", "--fail-on-regression").status == 3 + 128


def test_memory_is_held_back_for_the_report_on_a_shortage(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = [bytearray(1)]
    monkeypatch.setattr(main_module, "RESERVE", reserve)
    lab.on_boot([MemoryError()])
    assert lab("run", lab.experiment(), "-q").status == 3
    assert not reserve
