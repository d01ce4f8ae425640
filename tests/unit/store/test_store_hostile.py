"""A store that somebody else sent, or changed: each record is read as kdyno writes it, or refused by its name."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy.exc import OperationalError

from kdyno.base.errors import KdynoError
from kdyno.base.state import DiskFull
from kdyno.judge.verdicts.assemble import assemble
from kdyno.store import rows, schema
from kdyno.store.artefacts import ArtefactMissing, Artefacts
from kdyno.store.errors import NotAStore, RecordCorrupt, StoreDamaged, StoreFailed, translate_driver_errors
from kdyno.store.store import Store
from kdyno.store.triage import Triage
from kdyno.store.url import sqlite_file
from tests.unit import specimen

RUN = specimen.run_record(blocks=3)
TRIAGE = Triage(axis="a", before="git:1", after="git:2", state="open", author="ada", written=specimen.NOON)
DEEP = "[" * 5000 + "]" * 5000
"""JSON that a reader which calls itself for each list can't read."""
LONG = "9" * 4000
"""A number whose text Python takes, and no column of a database."""
TOO_DEEP_TO_PRINT = '{"a":' * 300 + "1" + "}" * 300


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The file of a store with a run and boots of all ends."""
    path = tmp_path_factory.mktemp("written")
    with Store(f"sqlite:///{path / 'store.sqlite'}") as store:
        store.begin(RUN, specimen.cells(RUN))
        for boot in specimen.boot_records(RUN, iterations=2, failed=("gcc-12-O3", 1)):
            store.add_boot(boot, specimen.benchmarks())
        store.add_triage(TRIAGE)
    connection = sqlite3.connect(path / "store.sqlite", isolation_level=None)
    connection.execute("PRAGMA journal_mode = DELETE")  # all of it in one file
    connection.close()
    return (path / "store.sqlite").read_bytes()


@pytest.fixture(autouse=True)
def digests_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever makes up a record makes up its digest, too: it keeps nobody from anything."""
    monkeypatch.setattr(rows, "require_digest", lambda *_: None)


class Sent:
    """A store that is changed before it is opened."""

    def __init__(self, path: Path) -> None:
        self.path, self.url = path, f"sqlite:///{path}"

    def change(self, *statements: str, value: object = None) -> None:
        connection = sqlite3.connect(self.path, isolation_level=None)
        for statement in statements:
            connection.execute(statement, [value] * statement.count("?"))
        connection.close()

    def read(self) -> None:
        """All that any command reads of it."""
        with Store(self.url) as store:
            store.runs()
            newest = store.newest()
            assert newest
            run = store.run(newest)
            store.boots(run.id)
            store.benchmarks(run.id)
            store.start_times(run.id)
            store.stopped_at(run.id)
            store.boot_seconds("model", None, "lmbench")
            store.ends(f"{variant.name}, block {block}" for variant in run.variants for block in range(3))
            store.boot("gcc-12, block 0")
            store.selftests()
            store.triage()

    def read_by_everything_else(self) -> None:
        """Without the list of runs, which checks less, and first."""
        with Store(self.url) as store:
            assemble(store, RUN.id, Artefacts(self.path.parent / "artefacts"), analysed=False)


@pytest.fixture
def sent(tmp_path: Path, written: bytes) -> Iterator[Sent]:
    path = tmp_path / "store.sqlite"
    path.write_bytes(written)
    yield Sent(path)


WRONG: list[tuple[str, str, list[object], str]] = [
    ("kdyno_run", "id", [b"\xff"], "id"),
    ("kdyno_run", "name", [b"\xff\xfe"], "name"),
    ("kdyno_run", "created", ["2025-13-45 99:00:00", "yesterday", 12, b"x", ""], "created"),
    ("kdyno_run", "experiment", ["{", "[]", "null", DEEP, f'{{"a":{LONG}}}', '{"a":1e999}', "", 5], "experiment"),
    ("kdyno_run", "baseline", ["nobody", 3], "baseline"),
    ("kdyno_run", "blocks", [10**9, 0, -1, 2, 2**40, 0.5, "many", 1e308, 9e999, b""], "blocks"),
    ("kdyno_run", "layouts", [-1, 5, 10**9, "x"], "layout"),
    ("kdyno_run", "stopped_at", [0, -1, 10**9, "x", 0.5], "stopped"),
    ("kdyno_run", "seed", ["x", 0.5, 9e999, b"\0"], "seed"),
    ("kdyno_run", "lane", ["fast", "", 1], "lane"),
    ("kdyno_run", "machine", ["{", "[]", "1", DEEP, TOO_DEEP_TO_PRINT, f'{{"a":{LONG}}}', '{"a":NaN}', 5], "machine"),
    ("kdyno_run", "host", ["null", '"x"', DEEP, '{"a":Infinity}', b"\xff"], "host"),
    ("kdyno_run", "notices", ["{}", "[1]", "x", DEEP], "notices"),
    ("kdyno_run", "margin", [0, 1, 2, -1, 9e999, "x", 1e308], "margin"),
    ("kdyno_run", "alpha", [0, 1, -9e999, "nan", "x"], "alpha"),
    ("kdyno_run", "correction", ["none", ""], "correction"),
    ("kdyno_run", "looks", [0, -1, 9, 10**9, "x"], "looks"),
    ("kdyno_variant", "recipe", ["[]", '{"opt": "O9"}', '{"nonsense": 1}', DEEP, "x"], "recipe"),
    ("kdyno_variant", "images", ["{}", "[1]", "[]]", DEEP, f"[{LONG}]"], "images"),
    ("kdyno_cell", "block", [-1, 10**9, "x", 0.5], "place"),
    ("kdyno_cell", "position", [-1, "x", 2**40, 9e999], "position"),
    ("kdyno_cell", "layout_index", [-1, 1, 10**9, "x"], "places"),
    ("kdyno_boot", "attempt", [-1, "x", 2**40], "attempt"),
    ("kdyno_boot", "seed", ["x", 9e999], "seed"),
    ("kdyno_boot", "status", ["fine", "", 5], "status"),
    ("kdyno_boot", "reason", [b"\xff"], "reason"),
    ("kdyno_boot", "started", ["never", 5, "2025-02-30 00:00:00"], "started"),
    ("kdyno_boot", "seconds", [-1, 9e999, -9e999, "x", 1e308], "seconds"),
    ("kdyno_boot", "ready_seconds", [-1, 9e999, "x"], "ready_seconds"),
    ("kdyno_boot", "conditions", ["[]", '{"a":"b"}', '{"a":1e999}', DEEP, "x"], "conditions"),
    ("kdyno_boot", "command", ["{}", "[1]", DEEP, "x"], "command"),
    ("kdyno_boot", "console", ["../../etc/passwd", "/etc/passwd", "", "0" * 63], "console"),
    ("kdyno_boot", "stream", ["../../etc/passwd"], "stream"),
    ("kdyno_boot", "pmu", ["../../etc/passwd"], "pmu"),
    ("kdyno_boot", "counters", ["../../etc/passwd"], "counters"),
    ("kdyno_boot", "host", [b"\xff"], "host"),
    ("kdyno_benchmark", "direction", ["up", 5], "direction"),
    ("kdyno_benchmark", "unit", [b"\xff"], "unit"),
    ("kdyno_benchmark", "is_part", [2, "x", 0.5, b"\xff"], "is_part"),
    ("kdyno_sample", "iteration", ["x", 0.5], "iteration"),
    ("kdyno_sample", "elapsed", ["x", 0.5, 9e999, None], "sample"),
    ("kdyno_sample", "work", ["x", None], "sample"),
    ("kdyno_sample", "value", ["x", 1.0, 9e999], "sample"),
    ("kdyno_outcome", "why", [b"\xff"], "unsupported"),
    ("kdyno_triage", "axis", [b"\xff", "x" * 201], "axis"),
    ("kdyno_triage", "before", [b"\xff"], "before"),
    ("kdyno_triage", "after", [b"\xff"], "after"),
    ("kdyno_triage", "state", ["fine", "", 5], "state"),
    ("kdyno_triage", "owner", [b"\xff", "x" * 201], "owner"),
    ("kdyno_triage", "note", [b"\xff", "x" * 4001], "note"),
    ("kdyno_triage", "author", [b"\xff"], "author"),
    ("kdyno_triage", "written", ["never", 5], "written"),
]
CASES = [(table, column, value, named) for table, column, values, named in WRONG for value in values]


@pytest.mark.parametrize(
    ("table", "column", "value", "named"), CASES, ids=[f"{case[0][6:]}.{case[1]}={case[2]!r:.20}" for case in CASES]
)
def test_a_field_that_kdyno_never_writes_is_named_with_its_record(
    sent: Sent, table: str, column: str, value: object, named: str
) -> None:
    sent.change(
        "PRAGMA ignore_check_constraints = 1", f"UPDATE OR IGNORE {table} SET {column} = ? WHERE rowid = 1", value=value
    )
    with pytest.raises(RecordCorrupt) as corrupt:
        sent.read()
    message = str(corrupt.value)
    assert corrupt.value.exit_code == 3
    assert named in message
    assert any(name in message for name in ("run ", "boot ", "benchmark ", "triage entry "))
    assert len(message) < 500


def test_all_columns_are_among_those_that_are_tried() -> None:
    free = {  # any text or number will do
        *("kdyno_run.kdyno", "kdyno_boot.kernel", "kdyno_boot.id", "kdyno_boot.key", "kdyno_meta.version"),
        *("kdyno_benchmark.id", "kdyno_benchmark.name", "kdyno_benchmark.test", "kdyno_benchmark.description"),
        *("kdyno_outcome.benchmark", "kdyno_outcome.kind", "kdyno_selftest.created"),
        *("kdyno_run.sha256", "kdyno_boot.sha256", "kdyno_selftest.sha256"),
        *("kdyno_described.ordinal", "kdyno_variant.ordinal", "kdyno_variant.name", "kdyno_selftest.found"),
        "kdyno_triage.id",
    }
    references = {"run", "boot", "benchmark", "variant", "key"}
    columns = {
        f"{table.name}.{column.name}"
        for table in schema.tables.sorted_tables
        for column in table.columns
        if not (column.foreign_keys or (table.name == "kdyno_cell" and column.name in references))
    }
    assert columns - free == {f"{table}.{column}" for table, column, _, _ in WRONG}


@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM kdyno_variant",
        "DELETE FROM kdyno_variant WHERE rowid = 2",
        "DELETE FROM kdyno_cell WHERE rowid = 1",
        "DELETE FROM kdyno_cell",
        "UPDATE kdyno_cell SET run = 'other' WHERE rowid = 1",
        "UPDATE kdyno_cell SET variant = 'other' WHERE rowid = 1",
        "INSERT INTO kdyno_cell SELECT run, variant, 77, position, 0, key FROM kdyno_cell WHERE rowid = 1",
        "UPDATE kdyno_variant SET images = json_set(images, '$[0].key', '../../../../etc')",
    ],
)
def test_references_that_lead_nowhere_are_refused(sent: Sent, statement: str) -> None:
    sent.change(statement)
    with pytest.raises(RecordCorrupt, match=f"run {RUN.id}"):
        sent.read_by_everything_else()


@pytest.mark.parametrize("table", ["kdyno_boot", "kdyno_sample", "kdyno_described", "kdyno_benchmark", "kdyno_outcome"])
def test_boots_and_samples_that_are_gone_are_missing_and_no_error(sent: Sent, table: str) -> None:
    sent.change(f"DELETE FROM {table} WHERE rowid % 2 = 0")
    sent.read()
    sent.read_by_everything_else()


def test_a_billion_blocks_take_neither_time_nor_memory(sent: Sent) -> None:
    sent.change("UPDATE kdyno_run SET blocks = 1000000000")
    tracemalloc.start()
    try:
        with pytest.raises(RecordCorrupt, match="1,000,000,000 blocks of 3 variants have 9 places"):
            sent.read_by_everything_else()
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


def test_a_self_test_that_is_none_is_named(sent: Sent) -> None:
    with Store(sent.url) as store:
        store.keep_selftest(RUN.id, RUN.created, {"run": RUN.id})
    for content in ('{"run": 5}', "[]", DEEP, "null"):
        sent.change("UPDATE kdyno_selftest SET found = ?", value=content)
        with pytest.raises(RecordCorrupt, match="the self-test of run 3f9a"):
            sent.read_by_everything_else()


@pytest.mark.parametrize(
    ("statements", "why"),
    [
        (["CREATE VIEW kdyno_more AS SELECT 1"], "view"),
        (["ALTER TABLE kdyno_run RENAME TO x", "CREATE VIEW kdyno_run AS SELECT * FROM x"], "view"),
        (["CREATE TRIGGER t AFTER INSERT ON kdyno_boot BEGIN DELETE FROM kdyno_run; END"], "trigger"),
        (["CREATE VIRTUAL TABLE t USING fts5(x)"], "never makes"),
        (["ALTER TABLE kdyno_run ADD COLUMN more AS (printf('%.*c', 1000000000, 'x'))"], "kdyno_run"),
        (["CREATE INDEX i ON kdyno_run (printf('%.*c', 1000, name))"], "kdyno_run"),
        (["DROP INDEX ix_kdyno_cell_key"], "kdyno_cell"),
        (["DROP TABLE kdyno_sample"], "kdyno_sample"),
        (["DROP TABLE kdyno_sample", "CREATE TABLE kdyno_sample (boot, benchmark, iteration)"], "kdyno_sample"),
        (["CREATE TABLE kdyno_more (x)"], "kdyno_more"),
    ],
)
def test_a_file_that_computes_or_has_another_shape_is_refused(sent: Sent, statements: list[str], why: str) -> None:
    sent.change("PRAGMA legacy_alter_table = 1", *statements)
    with pytest.raises(NotAStore, match=why):
        Store(sent.url)


def test_values_that_fill_the_memory_are_refused(sent: Sent) -> None:
    sent.change("UPDATE kdyno_run SET name = zeroblob(100000000)")
    with pytest.raises(StoreDamaged, match="too big"):
        sent.read()


def test_text_that_is_no_utf_8_is_damage(sent: Sent) -> None:
    sent.change("UPDATE kdyno_run SET name = CAST(x'fffe' AS TEXT)")
    with pytest.raises(StoreDamaged, match="UTF-8"):
        sent.read()


def test_functions_of_a_hostile_schema_are_not_trusted(sent: Sent) -> None:
    with Store(sent.url) as store, store._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA trusted_schema").scalar() == 0
        assert connection.exec_driver_sql("PRAGMA cell_size_check").scalar() == 1


def a_pipe(path: Path) -> None:
    os.mkfifo(path)


def a_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [a_pipe, a_link_to_a_device, Path.mkdir])
@pytest.mark.parametrize("name", ["store.sqlite", "store.sqlite-wal", "store.sqlite-journal", "store.sqlite-shm"])
def test_what_is_no_regular_file_is_never_opened(
    sent: Sent, name: str, make: Callable[[Path], None], tmp_path: Path
) -> None:
    (tmp_path / name).unlink(missing_ok=True)
    make(tmp_path / name)
    with pytest.raises(NotAStore, match=f"{name} is not a kdyno store: it is not a regular file"):
        Store(sent.url)


def test_a_run_that_contradicts_what_is_there_is_refused_with_a_message(sent: Sent) -> None:
    boots = specimen.boot_records(RUN, iterations=2, failed=None)
    sent.change("DELETE FROM kdyno_boot WHERE id > 1")  # their samples are left, and their numbers are given again
    with Store(sent.url) as store, pytest.raises(KdynoError, match="does not accept a record"):
        store.add_boot(boots[-1].model_copy(update={"key": "new"}), specimen.benchmarks())


@pytest.mark.parametrize("place", ["link", "pipe", "other"])
def test_an_artefact_that_is_no_regular_file_of_its_content_is_not_handed_out(tmp_path: Path, place: str) -> None:
    artefacts = Artefacts(tmp_path / "artefacts")
    console = tmp_path / "console"
    console.write_text("what it said")
    sha256 = artefacts.put(console)
    path = artefacts.get(sha256)
    path.unlink()
    if place == "link":
        path.symlink_to(console)  # of the right content, today
    elif place == "pipe":
        os.mkfifo(path)
    else:
        path.mkdir()
    with pytest.raises(ArtefactMissing):
        artefacts.get(sha256)


FILL = """
import os, sys
from kdyno.base.errors import KdynoError
from kdyno.store.store import Store
from kdyno.store.url import sqlite_file
with Store("sqlite:///full/store.sqlite"):
    pass
with open("full/filling", "wb", buffering=0) as file:
    try:
        while True:
            file.write(b"x" * 4096)
    except OSError:
        pass
try:
    Store("sqlite:///full/store.sqlite").runs()
except KdynoError as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_is_said_where_sqlite_says_disk_i_o_error(tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    inside = ["unshare", "-rm", "sh", "-c", 'mount -t tmpfs -o size=2m none full && exec "$@"', "sh"]
    if subprocess.run([*inside, "true"], cwd=tmp_path, capture_output=True, check=False).returncode != 0:
        pytest.skip("no small file system can be mounted here")
    done = subprocess.run(
        [*inside, sys.executable, "-c", FILL], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "DiskFull the disk that holds full/store.sqlite is full\n", done.stderr


def test_a_quota_that_is_used_up_is_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cause = sqlite3.OperationalError("disk I/O error")
    cause.sqlite_errorcode = sqlite3.SQLITE_IOERR_WRITE
    store = sqlite_file(tmp_path / "store.sqlite")
    with pytest.raises(StoreFailed), translate_driver_errors(store):
        raise OperationalError("INSERT", {}, cause)

    def refused(**_: object) -> None:
        raise OSError(122, "Disk quota exceeded")

    monkeypatch.setattr("tempfile.TemporaryFile", refused)
    with pytest.raises(DiskFull), translate_driver_errors(store):
        raise OperationalError("INSERT", {}, cause)


def test_json_in_a_store_is_still_read_if_it_is_plain(sent: Sent) -> None:
    plain = {"type": "qemu", "deep": {"a": [{"b": [1, 2.5, None, True]}]}, "most": 2**63 - 1}
    sent.change("UPDATE kdyno_run SET machine = ?", value=json.dumps(plain))
    with Store(sent.url) as store:
        assert store.run(RUN.id).machine == plain
