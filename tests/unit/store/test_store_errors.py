"""What a user reads when the store can't be opened or written."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import DiskFull
from kdyno.store.errors import DriverMissing, NotAStore, StoreDamaged, StoreNotWritable, StoreUnreachable
from kdyno.store.store import Store
from kdyno.store.url import StoreUrlInvalid
from tests.unit import specimen

BENCHMARKS = specimen.benchmarks()


def filled(path: Path) -> None:
    run = specimen.run_record(blocks=3)
    with Store(f"sqlite:///{path}") as store:
        store.begin(run, specimen.cells(run))
        for boot in specimen.boot_records(run):
            store.add_boot(boot, BENCHMARKS)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("not a database, " * 100)
    with pytest.raises(NotAStore, match=r"notes\.txt is not a kdyno store: file is not a database"):
        Store(f"sqlite:///{path}")
    assert path.read_text() == "not a database, " * 100


def test_the_database_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "places.sqlite"
    sqlite3.connect(path).execute("CREATE TABLE bookmarks (url TEXT)").connection.close()
    before = path.read_bytes()
    with pytest.raises(NotAStore, match="another program"):
        Store(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_a_damaged_store_says_how_to_save_what_is_left(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    filled(path)
    content = bytearray(path.read_bytes())
    content[8192 : len(content) - 4096] = b"\xff" * (len(content) - 4096 - 8192)
    path.write_bytes(content)
    with pytest.raises(StoreDamaged) as damaged, Store(f"sqlite:///{path}") as store:
        store.boots(specimen.run_record().id)
    assert ".recover" in damaged.value.advice


def test_a_full_disk_is_said_and_what_was_recorded_stays(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    run = specimen.run_record(blocks=3)
    boots = specimen.boot_records(run, iterations=50, failed=None)
    with Store(f"sqlite:///{path}") as store:
        store.begin(run, specimen.cells(run))
        store.add_boot(boots[0], BENCHMARKS)
        with store._engine.connect() as connection:
            pages = connection.exec_driver_sql("PRAGMA page_count").scalar_one()
            connection.exec_driver_sql(f"PRAGMA max_page_count = {pages + 1}")  # the pool keeps this connection
        with pytest.raises(DiskFull, match="full"):
            store.add_boot(boots[1], BENCHMARKS)
    with Store(f"sqlite:///{path}") as store:
        assert store.boots(run.id) == [boots[0]]
        assert store.add_boot(boots[1], BENCHMARKS)


def test_a_directory_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(StoreUnreachable, match="No such file or directory"):
        Store(f"sqlite:///{tmp_path}/no/such/store.sqlite")


def test_a_store_that_may_only_be_read_can_be_read(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    filled(path)
    with Store(f"sqlite:///file:{path}?mode=ro&uri=true") as store:
        assert len(store.runs()) == 1
        with pytest.raises(StoreNotWritable, match="readonly"):
            store.begin(specimen.run_record().model_copy(update={"id": "f" * 64}), [])


def test_a_server_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(StoreUnreachable) as unreachable:
        Store("postgresql://kdyno:secret@127.0.0.1:1/kdyno")
    assert "127.0.0.1:1" in str(unreachable.value)
    assert "secret" not in str(unreachable.value)


def test_a_missing_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(DriverMissing) as missing:
        Store("postgresql://kdyno@127.0.0.1/kdyno")
    assert missing.value.advice == "run: pip install 'kdyno[postgresql]'"


@pytest.mark.parametrize("url", ["", "store.sqlite", "sqlite://", "mysql://root:secret@host/db"])
def test_a_url_that_names_no_store_is_a_user_error(url: str) -> None:
    with pytest.raises(StoreUrlInvalid) as invalid:
        Store(url)
    assert invalid.value.exit_code == 1
    assert "secret" not in str(invalid.value)


def test_a_boot_survives_kill_9_of_its_writer_and_half_of_one_leaves_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'store.sqlite'}"
    program = f"""
import os, signal, sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
from tests.unit import specimen
from kdyno.store import rows
from kdyno.store.store import Store
run = specimen.run_record(blocks=3)
boots = specimen.boot_records(run, failed=None)
store = Store({url!r})
store.begin(run, specimen.cells(run))
store.add_boot(boots[0], specimen.benchmarks())
rows.outcome_rows = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
store.add_boot(boots[1], specimen.benchmarks())
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -9
    run = specimen.run_record(blocks=3)
    boots = specimen.boot_records(run, failed=None)
    with Store(url) as store:
        assert store.boots(run.id) == [boots[0]]
        assert store.add_boot(boots[1], BENCHMARKS)


def test_every_message_of_the_store_has_a_hint(tmp_path: Path) -> None:
    with pytest.raises(KdynoError) as error:
        Store(f"sqlite:///{tmp_path}")
    assert error.value.advice
