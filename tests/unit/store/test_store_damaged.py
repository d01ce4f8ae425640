"""Damage to the file of a store, which SQLite can't see: a number in a sound page may be any."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest

from kdyno.judge.verdicts.assemble import assemble
from kdyno.store.artefacts import Artefacts
from kdyno.store.errors import RecordCorrupt, StoreDamaged
from kdyno.store.store import Store
from tests.unit import specimen

RUN = specimen.run_record(blocks=3)
FOUND = {"run": RUN.id}


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("written") / "store.sqlite"
    with Store(f"sqlite:///{path}") as store:
        store.begin(RUN, specimen.cells(RUN))
        for boot in specimen.boot_records(RUN, iterations=2, failed=("gcc-12-O3", 1)):
            store.add_boot(boot, specimen.benchmarks())
        store.stop(RUN.id, 2)
        store.keep_selftest(RUN.id, RUN.created, FOUND)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path: Path, written: bytes) -> Path:
    (tmp_path / "store.sqlite").write_bytes(written)
    return tmp_path / "store.sqlite"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def read(path: Path) -> None:
    with Store(f"sqlite:///{path}", "read") as store:
        assemble(store, RUN.id, Artefacts(path.parent / "artefacts"), analysed=False)


@pytest.mark.parametrize(
    ("changed", "record"),
    [
        ("kdyno_run SET name = 'quickstarT'", "run "),
        ("kdyno_run SET margin = 0.0100001", "run "),
        ("kdyno_run SET stopped_at = 3", "run "),
        ("kdyno_run SET created = '2025-03-01 12:00:01.000000'", "run "),
        ("kdyno_run SET host = replace(host, 'EPYC', 'EPYD')", "run "),
        ("kdyno_variant SET recipe = replace(recipe, '\"O3\"', '\"O2\"')", "run "),
        ("kdyno_cell SET position = position + 1 WHERE rowid = 2", "run "),
        ("kdyno_boot SET status = 'lost' WHERE status = 'ok' AND rowid = 2", "boot "),
        ("kdyno_boot SET seconds = 19.25 WHERE rowid = 3", "boot "),
        ("kdyno_boot SET conditions = '{\"load\": 1.0}' WHERE rowid = 3", "boot "),
        ("kdyno_sample SET elapsed = elapsed + 1 WHERE rowid = 40", "boot "),
        ("kdyno_sample SET work = work + 1 WHERE rowid = 41", "boot "),
        ("kdyno_sample SET iteration = 5 WHERE rowid = 40", "boot "),
        ("kdyno_described SET ordinal = 40 - ordinal WHERE boot = 1", "boot "),
        ("kdyno_outcome SET why = 'so' WHERE rowid = 1", "boot "),
        ('kdyno_selftest SET found = \'{"run": "x"}\'', "the self-test of run "),
    ],
)
def test_a_record_that_is_another_than_was_written_is_refused_by_its_name(
    path: Path, changed: str, record: str
) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(f"UPDATE {changed}").rowcount > 0
    with pytest.raises(RecordCorrupt, match=f"{record}.*its content does not match its SHA-256") as refused:
        read(path)
        with Store(f"sqlite:///{path}", "read") as store:
            store.selftests()
    assert refused.value.exit_code == 3
    assert "restore it from a copy" in refused.value.advice


@pytest.mark.parametrize("table", ["sample", "described", "benchmark", "outcome"])
def test_parts_of_a_boot_that_are_gone_are_missed(path: Path, table: str) -> None:
    change(path, f"DELETE FROM kdyno_{table} WHERE rowid % 2 = 0")
    with pytest.raises(RecordCorrupt, match=r"boot .*its content does not match its SHA-256"):
        read(path)


def test_what_an_index_has_lost_is_seen_when_the_store_is_opened(path: Path) -> None:
    """Without it a boot would be one that is still to be done."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        (root,) = connection.execute(
            "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'kdyno_boot' AND type = 'index'"
        ).fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
    content = bytearray(path.read_bytes())
    page = slice((root - 1) * size, root * size)
    content[page] = content[page].replace(b"gcc-12-O3, block 2", b"gcc-12-O3, block 4")
    path.write_bytes(content)
    for access in ("read", "change", "make"):
        with pytest.raises(StoreDamaged, match="kdyno_boot") as damaged:
            Store(f"sqlite:///{path}", access)
        assert damaged.value.exit_code == 3
        assert "restore it from a copy" in damaged.value.advice


def test_what_sqlite_says_of_a_damaged_schema_need_not_be_utf_8(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"CREATE TABLE kdyno_boot", b"CREATE TABL\xff kdyno_boot"))
    with pytest.raises(StoreDamaged, match="not UTF-8"):
        read(path)


def test_a_run_that_began_later_shares_nothing_with_this_one(path: Path) -> None:
    later = RUN.model_copy(update={"id": "4" * 12, "created": RUN.created + timedelta(days=1)})
    with Store(f"sqlite:///{path}") as store:
        store.begin(later, specimen.cells(RUN))
        assert store.start_times(RUN.id) == [RUN.created]
        assert store.start_times(later.id) == [later.created, RUN.created]


def test_no_sign_of_a_zero_and_no_order_of_keys_is_damage(tmp_path: Path) -> None:
    boot, *_ = specimen.boot_records(RUN, iterations=1, failed=None)
    boot = boot.model_copy(update={"seconds": -0.0, "unsupported": {"b": "\0", "a": "y"}})
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        store.begin(RUN, specimen.cells(RUN))
        store.add_boot(boot, specimen.benchmarks())
        (read_back,) = store.boots(RUN.id)
    assert read_back.unsupported == {"a": "y", "b": "\N{REPLACEMENT CHARACTER}"}
