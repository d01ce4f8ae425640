"""What doctor finds of the places that kdyno writes to: each is tried, and each lack has a command that mends it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from kdyno.base.state import State, unwritable_reason
from kdyno.kernel import ccache
from kdyno.understand import doctor
from kdyno.understand.doctor import DoctorFinding
from tests.ordinary_user import NOBODY, a_place_for_all, ordinary_user


@pytest.fixture(autouse=True)
def _ask_for_temporary_files_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python asks once where temporary files go; and an ordinary user's TMPDIR is of no concern here."""
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.delenv("TMPDIR", raising=False)


def finding(name: str, state: State) -> DoctorFinding:
    """One of doctor's findings about places."""
    findings = (doctor._state_directory(state), doctor._temporary_directory(), *doctor._ccache())
    return next(place for place in findings if place.name == name)


def test_a_state_directory_that_can_be_made_is_ok_and_is_not_made(tmp_path: Path) -> None:
    state = State(tmp_path / "a" / "b")
    assert finding("state directory", state) == DoctorFinding("state directory", "ok", str(state.root))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("a b", "Kbuild takes no spaces in paths"),
        ("a\tb:c", "Kbuild takes no tabs and no : in paths"),
        ("file/state", "Not a directory"),
    ],
)
def test_a_state_directory_that_cannot_be_used_is_missing(tmp_path: Path, name: str, why: str) -> None:
    (tmp_path / "file").touch()
    result = finding("state directory", State(tmp_path / name))
    assert (result.status, result.mend) == ("missing", "export KDYNO_STATE=/path/without/spaces/that/can/be/written")
    assert str(tmp_path / name) in result.detail
    assert why in result.detail


def test_a_state_directory_whose_path_leads_to_one_with_a_space_is_missing(tmp_path: Path) -> None:
    (tmp_path / "a b").mkdir()
    (tmp_path / "link").symlink_to("a b")
    assert "spaces" in finding("state directory", State(tmp_path / "link")).detail


def test_a_part_of_the_state_directory_that_is_another_users_is_named() -> None:
    with a_place_for_all() as place:
        state = State(place)
        images = state.images
        images.chmod(0o500)
        place.chmod(0o777)
        with ordinary_user():
            result = doctor._state_directory(state)
    assert (result.status, result.detail) == ("missing", f"can't write to {images}: Permission denied")


def test_a_tmpdir_that_cannot_be_used_is_told_with_what_is_taken_instead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert finding("temporary directory", State(tmp_path)) == DoctorFinding("temporary directory", "ok", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setenv("TMPDIR", str(tmp_path / "none"))
    result = finding("temporary directory", State(tmp_path))
    assert (result.status, result.mend) == ("optional", "unset TMPDIR")
    assert result.detail.startswith(f"can't write to TMPDIR={tmp_path}/none; kdyno takes /")


def test_no_place_for_temporary_files_at_all_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: ["/dev/null/tmp"])
    result = doctor._temporary_directory()
    assert (result.status, result.mend) == ("missing", "export TMPDIR=/path/that/can/be/written")


@pytest.mark.parametrize(
    ("variable", "value", "mend"),
    [
        ("CCACHE_DIR", "{file}/cache", "export CCACHE_DIR=/path/that/can/be/written"),
        ("CCACHE_MAXSIZE", "much", "export CCACHE_DISABLE=1"),
    ],
)
def test_a_ccache_that_cannot_work_is_told_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, value: str, mend: str
) -> None:
    if not ccache.is_installed():
        pytest.skip("needs ccache")
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path / "ccache"))
    working = finding("ccache directory", State(tmp_path))
    assert (working.status, working.detail) == ("ok", str(tmp_path / "ccache"))
    (tmp_path / "file").touch()
    monkeypatch.setenv(variable, value.format(file=tmp_path / "file"))
    result = finding("ccache directory", State(tmp_path))
    assert (result.status, result.mend) == ("optional", mend)
    assert result.detail.startswith("ccache can't be used: ")


def test_without_ccache_there_is_nothing_to_find(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_DISABLE", "1")
    with pytest.raises(StopIteration):
        finding("ccache directory", State(tmp_path))


def test_a_file_that_can_be_written_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "store.sqlite").write_text("kept")
    assert unwritable_reason(tmp_path / "store.sqlite") is None
    assert (tmp_path / "store.sqlite").read_text() == "kept"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root is restrained")
def test_a_state_directory_that_root_must_not_use_is_missing_and_nothing_in_it_is_opened(tmp_path: Path) -> None:
    (tmp_path / "victim").touch()
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "store.sqlite").symlink_to("../victim")
    os.chown(theirs, NOBODY, NOBODY)
    result = finding("state directory", State(theirs))
    assert (result.status, result.detail) == ("missing", f"root can't use {theirs}: {theirs} belongs to user {NOBODY}")
