"""The state directory: no link is followed out of it, root trusts only its own, and nothing is left for ever."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import State, StateNotWritable
from kdyno.base.state_marker import StateOfOthers
from kdyno.cli.main import main
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
from tests.at_once import at_once
from tests.ordinary_user import NOBODY, a_place_for_all, ordinary_user

LOCK = "host-knobs"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root is restrained, and may give files away")


@pytest.fixture(autouse=True)
def _nothing_waits(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.delenv("SUDO_UID", raising=False)
    with at_once():
        yield


def hold(state: State) -> None:
    with state.lock(LOCK):
        pass


def lock_file(state: State) -> Path:
    return state.locks / f"{LOCK}.lock"


def give_away(path: Path) -> Path:
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)
    return path


@pytest.mark.parametrize("content", ["precious", None])
def test_a_link_in_place_of_a_lock_is_refused_and_what_it_leads_to_is_left_alone(
    tmp_path: Path, state: State, content: str | None
) -> None:
    victim = tmp_path / "victim"
    if content:
        victim.write_text(content)
    lock_file(state).symlink_to(victim)
    with pytest.raises(KdynoError, match=f"can't take the lock {lock_file(state)}: it is a symbolic link") as caught:
        hold(state)
    assert caught.value.advice
    assert victim.read_text() == content if content else not victim.exists()


def test_what_is_no_file_in_place_of_a_lock_is_refused_at_once(state: State) -> None:
    os.mkfifo(lock_file(state))
    with pytest.raises(KdynoError, match="it is not a regular file"):
        hold(state)
    lock_file(state).unlink()
    lock_file(state).mkdir()
    with pytest.raises(KdynoError, match="it is not a regular file"):
        hold(state)
    lock_file(state).rmdir()
    lock_file(state).symlink_to("/dev/null")
    with pytest.raises(KdynoError, match="it is a symbolic link"):
        hold(state)


def test_a_lock_is_its_owners_alone_and_its_file_stays_as_it_is(state: State) -> None:
    hold(state)
    assert lock_file(state).stat().st_mode & 0o777 == 0o600
    lock_file(state).write_text("kept")
    hold(state)
    assert lock_file(state).read_text() == "kept"


def test_a_lock_that_is_held_can_be_left_alone_instead_of_waited_for(state: State) -> None:
    with state.lock(LOCK), state.lock_if_free(LOCK) as free:
        assert not free
    with state.lock_if_free(LOCK) as free:
        assert free


@needs_root
@pytest.mark.parametrize("name", ["above", "above/state", "above/state/locks"])
def test_root_uses_no_directory_that_somebody_else_may_change(tmp_path: Path, name: str) -> None:
    state = State(tmp_path / "above" / "state")
    hold(state)
    place = tmp_path / name
    why = f"as root, kdyno does not use the state directory {state.root}.*: {place} "
    give_away(place)
    with pytest.raises(KdynoError, match=f"{why}belongs to user {NOBODY}"):
        hold(state)
    os.chown(place, 0, 0)
    for mode in (0o775, 0o757):
        place.chmod(mode)
        with pytest.raises(KdynoError, match=f"{why}can be written to by users other than its owner"):
            hold(state)
    place.chmod(0o755)
    hold(state)


@needs_root
def test_root_makes_nothing_in_anothers_directory(tmp_path: Path) -> None:
    give_away(tmp_path)
    with pytest.raises(KdynoError, match=f"{tmp_path} belongs to user {NOBODY}"):
        hold(State(tmp_path / "state"))
    assert list(tmp_path.iterdir()) == []


@needs_root
def test_root_follows_no_link_but_roots_own(tmp_path: Path) -> None:
    hold(State(tmp_path / "state"))
    link = tmp_path / "link"
    link.symlink_to("state")
    hold(State(link))
    with pytest.raises(KdynoError, match=f"{give_away(link)} is a link that belongs to user {NOBODY}"):
        hold(State(link))
    link.unlink()
    link.symlink_to(give_away_directory(tmp_path / "theirs") / "state")
    with pytest.raises(KdynoError, match=f"{tmp_path}/theirs belongs to user {NOBODY}"):
        hold(State(link))
    assert list((tmp_path / "theirs").iterdir()) == []
    with pytest.raises(KdynoError, match="too many links"):
        circle = tmp_path / "circle"
        circle.symlink_to(circle)
        hold(State(circle))


def give_away_directory(path: Path) -> Path:
    path.mkdir()
    return give_away(path)


@needs_root
def test_root_uses_its_own_directory_in_one_where_everybody_may_make_theirs(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    hold(State(shared / "state"))
    with pytest.raises(KdynoError, match=f"belongs to user {NOBODY}"):
        hold(State(give_away_directory(shared / "theirs")))
    give_away(shared)  # who owns it may rename what is in it
    with pytest.raises(KdynoError, match=f"{shared} belongs to user {NOBODY}"):
        hold(State(shared / "state"))


@needs_root
def test_under_sudo_the_directory_of_who_called_it_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = give_away_directory(tmp_path / "home")
    monkeypatch.setenv("SUDO_UID", str(NOBODY))
    hold(State(home / "state"))
    monkeypatch.setenv("SUDO_UID", "1" * 5000)
    with pytest.raises(KdynoError, match=f"{home} belongs to user {NOBODY}"):
        hold(State(home / "state"))


@needs_root
def test_who_is_root_in_a_user_namespace_only_is_a_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdyno.base.ownership._root_behind", lambda: 1000)
    hold(State(give_away_directory(tmp_path / "mounted") / "state"))


@needs_root
def test_what_root_makes_is_roots_to_write_whatever_the_mask_says(state: State) -> None:
    mask = os.umask(0)
    try:
        hold(state)
        hold(state)
    finally:
        os.umask(mask)
    assert {path.stat().st_mode & 0o777 for path in (state.root, state.locks)} == {0o755}


@needs_root
@pytest.mark.parametrize(
    "words", [["runs"], ["report", "latest"], ["doctor", "--host"], ["doctor", "--host", "--restore"]]
)
def test_every_verb_that_needs_the_state_refuses_anothers(
    state: State, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    give_away_directory(state.root)
    assert main([*words, "--state", str(state.root)]) == 3
    output = capsys.readouterr().err
    assert "as root, kdyno does not use the state directory" in output
    assert "hint: " in output
    assert list(state.root.iterdir()) == []


@needs_root
def test_who_is_not_root_is_not_restrained() -> None:
    with a_place_for_all() as place:
        place.chmod(0o777)
        with ordinary_user():
            hold(State(place / "state"))


def test_a_part_that_is_there_is_looked_at_and_no_more(state: State, monkeypatch: pytest.MonkeyPatch) -> None:
    hold(state)
    looks, stat = [], Path.stat

    def counted(path: Path, *, follow_symlinks: bool = True) -> os.stat_result:
        looks.append(path)
        return stat(path, follow_symlinks=follow_symlinks)

    monkeypatch.setattr(Path, "stat", counted)
    monkeypatch.setattr(
        "kdyno.base.state.untrusted_reason", lambda _: None
    )  # root's looks, one for each part of a path
    monkeypatch.setattr("kdyno.base.state.claim", lambda _: pytest.fail("it was claimed before"))
    assert state.locks
    assert looks == [state.root / "locks"]


def test_an_empty_directory_is_marked_and_so_is_one_that_an_earlier_kdyno_used(tmp_path: Path) -> None:
    for root in (tmp_path / "new", tmp_path / "empty", tmp_path / "earlier", tmp_path / "earlier, store elsewhere"):
        if root.name != "new":
            root.mkdir()
        if root.name == "earlier":
            Store(sqlite_file(root / "store.sqlite")).close()
            (root / "images").mkdir()
        if "elsewhere" in root.name:
            hold(State(root))
            (root / ".kdyno-state").unlink()
        hold(State(root))
        assert (root / ".kdyno-state").is_file()


def a_text(path: Path) -> None:
    path.write_text("CREATE TABLE kdyno_meta")


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE mine (x)")


def a_link_to_a_store(path: Path) -> None:
    Store(sqlite_file(path.parent.parent / "elsewhere.sqlite")).close()
    path.symlink_to("../elsewhere.sqlite")


@pytest.mark.parametrize("make", [a_text, of_another_program, a_link_to_a_store, Path.mkdir, os.mkfifo])
def test_nothing_else_that_is_called_like_a_store_makes_a_directory_kdynos(
    state: State, make: Callable[[Path], None]
) -> None:
    state.root.mkdir()
    make(state.root / "store.sqlite")
    with pytest.raises(StateOfOthers, match=f"{state.root} is not a state directory") as refused:
        hold(state)
    assert f"touch {state.root}/.kdyno-state" in refused.value.advice
    assert len(list(state.root.iterdir())) == 1


def test_the_command_of_the_hint_makes_it_kdynos(state: State) -> None:
    (state.root / "images").mkdir(parents=True)
    with pytest.raises(StateOfOthers):
        hold(state)
    (state.root / ".kdyno-state").touch()
    hold(state)


def test_a_link_is_no_marker(state: State, tmp_path: Path) -> None:
    state.root.mkdir()
    (state.root / "mine").touch()
    (tmp_path / "file").touch()
    (state.root / ".kdyno-state").symlink_to(tmp_path / "file")
    with pytest.raises(StateOfOthers):
        hold(state)


def test_many_that_come_first_at_once_all_have_it(tmp_path: Path) -> None:
    for turn in range(20):
        root, together = tmp_path / f"state-{turn}", Barrier(8)

        def come(_: int, root: Path = root, together: Barrier = together) -> None:
            together.wait()
            hold(State(root))

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(come, range(8)))


def test_a_scratch_directory_is_empty_and_private_and_gone_at_the_end(state: State) -> None:
    with state.scratch("one") as first, state.scratch("one") as second:
        assert first != second
        assert first.name.startswith("one-") and first.stat().st_mode & 0o777 == 0o700
        (first / "console").write_text("text")
        with state.scratch("two"):
            assert (first / "console").exists() and second.is_dir()
    assert list(first.parent.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), state.scratch("one") as third:
        raise KeyboardInterrupt
    assert not third.exists()


KILLED = """
import os, signal, sys
from pathlib import Path
from kdyno.base.state import State
with State(Path(sys.argv[1])).scratch("one") as scratch:
    (scratch / "stream.jsonl").write_text("much")
    os.kill(os.getpid(), signal.SIGKILL)
"""
WAITS = """
import sys
from pathlib import Path
from kdyno.base.state import State
with State(Path(sys.argv[1])).scratch("run") as scratch:
    print(scratch, flush=True)
    sys.stdin.read()
    assert scratch.is_dir()
"""


def test_what_a_killed_kdyno_left_is_removed_at_the_next_start_and_what_is_in_use_is_not(state: State) -> None:
    killed = subprocess.run([sys.executable, "-c", KILLED, state.root], check=False)
    assert killed.returncode == -signal.SIGKILL
    [left] = (state.root / "boots").iterdir()
    with subprocess.Popen(
        [sys.executable, "-c", WAITS, state.root], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout and other.stdin
        used = Path(other.stdout.readline().strip())
        assert not left.exists()
        with state.scratch("once"):
            assert used.is_dir()
        other.stdin.close()
        assert other.wait() == 0


def test_what_is_no_directory_among_scratch_directories_is_left(tmp_path: Path, state: State) -> None:
    with state.scratch("one") as scratch:
        boots = scratch.parent
    (tmp_path / "victim").mkdir()
    (boots / "link").symlink_to(tmp_path / "victim")
    (boots / "link.boot").symlink_to(tmp_path / "victim")
    (boots / "file.boot").touch()
    (boots / "one-pictures").mkdir()
    left = set(boots.iterdir())
    with state.scratch("one") as scratch:
        assert (tmp_path / "victim").is_dir() and set(boots.iterdir()) == left | {scratch}


def test_scratch_directories_where_a_link_leads_are_left(tmp_path: Path, state: State) -> None:
    hold(state)
    (tmp_path / "elsewhere" / "one-12345678.boot").mkdir(parents=True)
    (state.root / "boots").symlink_to(tmp_path / "elsewhere")
    with state.scratch("one"):
        assert (tmp_path / "elsewhere" / "one-12345678.boot").is_dir()


def test_a_state_directory_that_is_a_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(StateNotWritable, match=str(root)):
            hold(State(root))
