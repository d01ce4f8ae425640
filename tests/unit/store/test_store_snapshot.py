"""A store that is only read: neither it nor anything else of the user's is changed, whatever lies beside it."""

from __future__ import annotations

import os
import shutil
import sqlite3
import struct
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.store import snapshot
from kdyno.store.errors import JournalBeside, NoStore, NotAStore, StoreBusy, StoreChanging, StoreNotWritable
from kdyno.store.store import Store
from kdyno.store.url import Access
from tests.unit import specimen

RUN = specimen.run_record(blocks=3)
MAGIC = bytes.fromhex("d9d505f920a163d7")
PAGE = 4096
LOCKED = 0x40000000
"""Where SQLite has no page; a journal names its super-journal there."""

Content = dict[str, tuple[bytes, int]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """The only file of a store with a run."""
    path = tmp_path / "theirs" / "store.sqlite"
    path.parent.mkdir()
    with Store(f"sqlite:///{path}") as store:
        store.begin(RUN, specimen.cells(RUN))
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    return path


def content(directory: Path) -> Content:
    return {file.name: (file.read_bytes(), file.stat().st_mtime_ns) for file in directory.iterdir() if file.is_file()}


def opened(path: Path, access: Access = "read") -> Store:
    return Store(f"sqlite:///{path}", access)


def journal(database: Path, victim: Path) -> bytes:
    """A rollback journal that changes nothing, of a transaction whose super-journal is the victim."""
    name = os.fsencode(victim)
    header = struct.pack(">8sIIIII", MAGIC, 0, 1, database.stat().st_size // PAGE, 512, PAGE).ljust(512, b"\0")
    super_journal = struct.pack(">I", LOCKED // PAGE + 1) + name + struct.pack(">II", len(name), sum(name)) + MAGIC
    return header + super_journal


@pytest.mark.parametrize("access", ["read", "change", "make"])
@pytest.mark.parametrize("through_a_link", [False, True])
def test_a_journal_beside_a_store_removes_no_file_of_the_users(
    path: Path, tmp_path: Path, access: Access, through_a_link: bool
) -> None:
    victim = tmp_path / "precious"
    beside = path.with_name("store.sqlite-journal")

    def attack() -> None:
        victim.write_text("years of work")
        beside.write_bytes(journal(path, victim))

    attack()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("SELECT count(*) FROM kdyno_run").fetchone()
    assert not victim.exists(), "this is no attack: SQLite alone did nothing"
    attack()
    named = path
    if through_a_link:
        named = tmp_path / "link.sqlite"
        named.symlink_to(path)
    before = content(path.parent)
    with pytest.raises(JournalBeside, match=r"store\.sqlite-journal lies next to it"):
        opened(named, access)
    assert victim.exists() and content(path.parent) == before


@pytest.mark.parametrize("access", ["read", "change"])
@pytest.mark.parametrize("suffix", ["-wal", "-shm"])
def test_a_link_beside_a_store_is_not_written_through(path: Path, tmp_path: Path, suffix: str, access: Access) -> None:
    victim = tmp_path / "precious"
    victim.write_text("years of work")
    path.with_name(path.name + suffix).symlink_to(victim)
    with pytest.raises(NotAStore, match="it is not a regular file"):
        opened(path, access)
    assert victim.read_text() == "years of work"


def test_reading_changes_neither_the_file_nor_the_directory(path: Path) -> None:
    before = content(path.parent)
    with opened(path) as store:
        assert store.run(RUN.id) == RUN
        assert content(path.parent) == before
        with pytest.raises(StoreNotWritable):
            store.stop(RUN.id, 1)
    assert content(path.parent) == before


def with_a_wal(path: Path) -> None:
    """Let a kdyno write a second run and be killed: the run is in -wal alone."""
    script = (
        "import os, sys; from kdyno.store.store import Store; from tests.unit import specimen\n"
        "run = specimen.run_record(blocks=3).model_copy(update={'id': 'b' * 64})\n"
        "store = Store(sys.argv[1]); store.begin(run, specimen.cells(run)); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", script, f"sqlite:///{path}"], check=True)
    assert path.with_name(path.name + "-wal").stat().st_size > 0


def test_what_a_killed_kdyno_left_in_the_wal_is_read_and_left_where_it_is(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_a_wal(path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = content(path.parent)
    with opened(path) as store:
        assert {run.id for run in store.runs()} == {RUN.id, "b" * 64}
        [copy] = tmp_path.glob("kdyno-store-*")
        assert copy.stat().st_mode & 0o777 == 0o700
    assert not copy.exists()
    assert content(path.parent) == before


def test_a_wal_that_is_nonsense_adds_nothing(path: Path) -> None:
    path.with_name(path.name + "-wal").write_bytes(os.urandom(100_000))
    with opened(path) as store:
        assert [run.id for run in store.runs()] == [RUN.id]


def test_a_wal_too_large_to_be_copied_is_refused(path: Path) -> None:
    wal = path.with_name(path.name + "-wal")
    wal.touch()
    os.truncate(wal, snapshot.MOST_COPIED)
    with pytest.raises(NotAStore, match=r"more than 4,294,967,296 bytes"):
        opened(path)


def test_a_store_that_changes_while_it_is_copied_is_copied_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with_a_wal(path)
    copyfile, copies = shutil.copyfile, []

    def interrupted(source: Path, target: Path, *, times: int) -> None:
        copies.append(source)
        copyfile(source, target)
        if len(copies) <= times:
            os.utime(path, ns=(len(copies), len(copies)))

    monkeypatch.setattr(shutil, "copyfile", lambda source, target: interrupted(source, target, times=3))
    with opened(path) as store:
        assert len(store.runs()) == 2
    monkeypatch.setattr(shutil, "copyfile", lambda source, target: interrupted(source, target, times=10**9))
    with pytest.raises(StoreBusy):
        opened(path)


def is_used(store: Store) -> None:
    store.runs()


def is_torn(store: Store) -> None:
    with store._reading() as connection:
        connection.exec_driver_sql("SELECT * FROM nothing")


@pytest.mark.parametrize("read", [is_used, is_torn])
def test_a_store_that_is_written_to_while_it_is_read_is_said(path: Path, read: Callable[[Store], None]) -> None:
    with opened(path) as store:
        store.runs()
        os.utime(path)
        with pytest.raises(StoreChanging, match="written to while it was read"):
            read(store)


@pytest.mark.parametrize("access", ["read", "change"])
def test_a_store_that_is_not_there_is_made_only_where_it_is_to_be_made(tmp_path: Path, access: Access) -> None:
    with pytest.raises(NoStore, match=r"there is no store .*typo\.sqlite"):
        opened(tmp_path / "typo.sqlite", access)
    assert list(tmp_path.iterdir()) == []
    opened(tmp_path / "typo.sqlite", "make").close()
    assert [file.name for file in tmp_path.iterdir()] == ["typo.sqlite"]


@pytest.mark.parametrize(("option", "access"), [("ro", "read"), ("rw", "change")])
def test_the_option_mode_lets_no_verb_do_more(path: Path, tmp_path: Path, option: str, access: str) -> None:
    with pytest.raises(NoStore):
        Store(f"sqlite:///{tmp_path / 'typo.sqlite'}?mode={option}")
    before = content(path.parent)
    with Store(f"sqlite:///{path}?mode={option}") as store:
        if access == "change":
            store.stop(RUN.id, 1)
        else:
            with pytest.raises(KdynoError):
                store.stop(RUN.id, 1)
    assert (content(path.parent) == before) == (access == "read")


def test_an_empty_file_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    for access in ("read", "change", "make"):
        with pytest.raises(NotAStore, match="it is empty"):
            opened(tmp_path / "empty", access)
    assert (tmp_path / "empty").stat().st_size == 0


def test_a_store_that_sqlite_mended_is_written_to_as_before(path: Path) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")
    connection.close()
    with opened(path, "change") as store:
        store.stop(RUN.id, 1)
        assert not path.with_name(path.name + "-journal").exists()
        assert path.with_name(path.name + "-wal").exists()


def test_a_file_system_without_links_takes_a_store_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "link", refused)
    with opened(tmp_path / "store.sqlite", "make") as store:
        store.begin(RUN, specimen.cells(RUN))
    with opened(tmp_path / "store.sqlite", "make") as store:
        assert len(store.runs()) == 1
