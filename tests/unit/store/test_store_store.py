"""The store, over SQLite and over a PostgreSQL server that the tests start themselves."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from threading import Barrier

import pytest
from postgres_server import postgres_server, server_programs
from sqlalchemy import create_engine, event, text

from kdyno.base.measurement import Sample
from kdyno.store import schema
from kdyno.store.errors import BootInconsistent, RunAmbiguous, RunUnknown, SchemaVersionUnknown
from kdyno.store.records import BootRecord, RunRecord
from kdyno.store.store import Store
from tests.unit import specimen

BENCHMARKS = specimen.benchmarks()


@pytest.fixture(scope="module")
def postgresql() -> Iterator[str]:
    """The URL of a server of its own; it is stopped at the end."""
    if server_programs() is None:
        pytest.skip("no PostgreSQL is installed (/usr/lib/postgresql/*/bin/initdb)")
    with postgres_server() as server:
        yield server.url


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path / 'store.sqlite'}"
        return
    server: str = request.getfixturevalue("postgresql")
    yield server
    engine = create_engine(server.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        schema.tables.drop_all(connection)
    engine.dispose()


def opened(url: str, run: RunRecord) -> Store:
    store = Store(url)
    store.begin(run, specimen.cells(run))
    return store


def boot(variant: str = "gcc-12", block: int = 0, **other: object) -> BootRecord:
    key = f"{variant}, block {block}"
    fields = {
        "key": key,
        "position": block * len(specimen.VARIANTS),
        "seed": 1,
        "status": "ok",
        "started": specimen.NOON,
        "seconds": 1.5,
    }
    return BootRecord.model_validate({"variant": variant, "block": block, **fields, **other})


def test_a_run_and_its_boots_come_back_as_they_went_in(url: str) -> None:
    run = specimen.run_record(blocks=3)
    boots = specimen.boot_records(run, failed=("gcc-12-O3", 1))
    with Store(url) as store:
        store.begin(run, specimen.placed_keys(boots))
        assert all(store.add_boot(boot, BENCHMARKS) for boot in boots)
    with Store(url) as store:
        assert store.run(run.id) == run
        assert store.benchmarks(run.id) == BENCHMARKS
        read = store.boots(run.id)
    cleaned = [boot.model_copy(update={"reason": boot.reason.replace("\0", "\ufffd")}) for boot in boots]
    assert [boot.model_copy(update={"samples": ()}) for boot in read] == [
        boot.model_copy(update={"samples": ()}) for boot in cleaned
    ]
    assert [boot.samples for boot in read] == [boot.samples for boot in boots]


def test_beginning_a_run_twice_is_fine(url: str) -> None:
    run = specimen.run_record()
    with opened(url, run) as store:
        store.begin(run, specimen.cells(run))
        assert [summary.id for summary in store.runs()] == [run.id]


def test_a_boot_that_is_on_record_is_not_recorded_again(url: str) -> None:
    run = specimen.run_record()
    first = boot(samples=(Sample(benchmark="lat_pipe.roundtrip", iteration=0, elapsed=5, work=1),), pmu="ab" * 32)
    with opened(url, run) as store:
        assert store.add_boot(first, BENCHMARKS)
        assert not store.add_boot(boot(reason="second writer"), BENCHMARKS)
        assert store.boots(run.id) == [first]


def test_ok_and_failed_boots_are_finished_and_lost_ones_are_tried_again(url: str) -> None:
    run = specimen.run_record()
    with opened(url, run) as store:
        store.add_boot(boot(block=0), BENCHMARKS)
        store.add_boot(boot(block=1, status="failed", reason="panic"), BENCHMARKS)
        assert store.add_boot(boot(block=2, status="lost", reason="killed"), BENCHMARKS)
        keys = [boot(block=block).key for block in range(4)]
        assert {key: end.status for key, end in store.ends(keys).items()} == {keys[0]: "ok", keys[1]: "failed"}
        assert store.add_boot(boot(block=2), BENCHMARKS)
        assert [(boot.block, boot.attempt, boot.status) for boot in store.boots(run.id)[2:]] == [
            (2, 0, "lost"),
            (2, 1, "ok"),
        ]
        [summary] = store.runs()
        assert (summary.done, summary.failed, summary.planned, summary.status) == (3, 1, 36, "unfinished")


def test_runs_share_the_boots_whose_keys_they_share(url: str) -> None:
    one = specimen.run_record(blocks=2)
    two = one.model_copy(update={"id": "f" * 12, "blocks": 3})
    with opened(url, one) as store:
        store.begin(two, specimen.cells(two))
        store.add_boot(boot(block=1), BENCHMARKS)
        store.add_boot(boot(block=2), BENCHMARKS)
        assert [boot.block for boot in store.boots(one.id)] == [1]
        assert [boot.block for boot in store.boots(two.id)] == [1, 2]
        assert {run.id: run.done for run in store.runs()} == {one.id: 1, two.id: 2}


def test_the_largest_and_smallest_64_bit_numbers_survive(url: str) -> None:
    run = specimen.run_record()
    sample = Sample(benchmark="lat_pipe.roundtrip", iteration=2**62, elapsed=2**63 - 1, work=-(2**63))
    with opened(url, run) as store:
        store.add_boot(boot(samples=(sample,), seed=2**63 - 1), BENCHMARKS)
        [read] = store.boots(run.id)
    assert read.samples == (sample,)
    assert read.seed == 2**63 - 1


def test_samples_that_are_values_of_their_own_come_back_beside_those_of_elapsed_and_work(url: str) -> None:
    run = specimen.run_record()
    samples = (
        Sample(benchmark=BENCHMARKS[0].name, iteration=0, value=0.1 + 0.2),
        Sample(benchmark=BENCHMARKS[1].name, iteration=0, elapsed=5, work=1),
    )
    with opened(url, run) as store:
        store.add_boot(boot(samples=samples), BENCHMARKS)
        [read] = store.boots(run.id)
    assert read.samples == samples


def test_what_a_guest_said_is_kept_even_with_a_zero_byte_in_it(url: str) -> None:
    run = specimen.run_record()
    with opened(url, run) as store:
        store.add_boot(boot(status="failed", reason="a\0b\x1b", broken={"x": "\0'; DROP TABLE--"}), BENCHMARKS)
        [read] = store.boots(run.id)
    assert read.reason == "a\ufffdb\x1b"
    assert read.broken == {"x": "\ufffd'; DROP TABLE--"}


def test_a_boot_that_contradicts_itself_is_refused_whole(url: str) -> None:
    run = specimen.run_record()
    sample = Sample(benchmark="lat_pipe.roundtrip", iteration=0, elapsed=5, work=1)
    with opened(url, run) as store:
        with pytest.raises(BootInconsistent, match="occurs 2 times"):
            store.add_boot(boot(samples=(sample, sample)), BENCHMARKS)
        with pytest.raises(BootInconsistent, match="the sample names an unknown benchmark,"):
            store.add_boot(boot(samples=(sample,)), [])
        with pytest.raises(BootInconsistent, match="2 benchmarks are called"):
            store.add_boot(boot(), [BENCHMARKS[0], BENCHMARKS[0].model_copy(update={"unit": "kg"})])
        assert store.boots(run.id) == []


def test_a_name_that_boots_mean_differently_keeps_both_meanings_apart(url: str) -> None:
    sample = Sample(benchmark="lat_pipe.roundtrip", iteration=0, elapsed=5, work=1)
    [pipe] = (benchmark for benchmark in BENCHMARKS if benchmark.name == sample.benchmark)
    other = pipe.model_copy(update={"unit": "kg"})
    with Store(url) as store:
        store.add_boot(boot(block=0, samples=(sample,)), [pipe])
        store.add_boot(boot(block=1, samples=(sample,)), [other])
        described = [store.boot(boot(block=block).key) for block in range(2)]
    assert [initdbs and initdbs[1] for initdbs in described] == [[pipe], [other]]


def test_many_writers_of_the_same_boots_leave_each_once(url: str) -> None:
    run = specimen.run_record(blocks=4)
    boots = [boot_record for boot_record in specimen.boot_records(run, iterations=2) if boot_record.status != "lost"]

    def write(_: int) -> int:
        with opened(url, run) as store:
            return sum(store.add_boot(boot, BENCHMARKS) for boot in boots)

    with ThreadPoolExecutor(6) as pool:
        written = list(pool.map(write, range(6)))
    assert sum(written) == len(boots)
    with Store(url) as store:
        assert len(store.boots(run.id)) == len(boots)
        assert store.benchmarks(run.id) == BENCHMARKS


def test_several_that_make_one_store_at_once_all_find_it_made(tmp_path: Path) -> None:
    for attempt in range(30):
        together = Barrier(4)

        def make(_: int, together: Barrier = together, url: str = f"sqlite:///{tmp_path}/{attempt}.sqlite") -> int:
            together.wait()
            with Store(url) as store:
                return len(list(store.runs()))

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(make, range(4))) == [0] * 4


def test_however_many_samples_a_boot_has_as_many_statements_write_and_read_them(url: str) -> None:
    run = specimen.run_record()
    statements = []
    with opened(url, run) as store:
        for block, count in enumerate((1, 10, 10_000)):
            samples = tuple(
                Sample(benchmark="lat_pipe.roundtrip", iteration=i, elapsed=1000 + i, work=1) for i in range(count)
            )
            with counted_statements(store) as executed:
                store.add_boot(boot(block=block, samples=samples), BENCHMARKS)
                assert store.boots(run.id)[-1].samples == samples
            statements.append(len(executed))
    _, few, many = statements  # the first boot adds the benchmarks, too
    assert many == few


@contextmanager
def counted_statements(store: Store) -> Iterator[list[str]]:
    """The statements that a store sends in the body; many rows at once are one."""
    executed: list[str] = []

    def count(*told: object) -> None:
        executed.append(str(told[2]))

    event.listen(store._engine, "before_cursor_execute", count)
    yield executed
    event.remove(store._engine, "before_cursor_execute", count)


def test_a_run_is_found_by_the_start_of_its_id(url: str) -> None:
    run = specimen.run_record()
    with opened(url, run) as store:
        assert store.run("3F9A") == run
        with pytest.raises(RunUnknown) as unknown:
            store.run("3f9b")
        assert "3f9a61c20000 (quickstart)" in unknown.value.advice
        with pytest.raises(RunUnknown):
            store.run("%")
        store.begin(run.model_copy(update={"id": "3f9a61ff" + "0" * 56, "name": "other"}), [])
        with pytest.raises(RunAmbiguous, match="2 runs") as ambiguous:
            store.run("3f9a")
        assert "3f9a61ff0000 (other)" in ambiguous.value.advice


def test_an_empty_store_says_that_it_has_no_runs(url: str) -> None:
    with Store(url) as store, pytest.raises(RunUnknown) as unknown:
        store.run("3f9a")
    assert unknown.value.advice == "the store has no runs yet"


def test_a_store_of_another_version_is_refused_and_left_alone(url: str) -> None:
    Store(url).close()
    engine = create_engine(url.replace("postgresql:", "postgresql+psycopg:"))
    with engine.begin() as connection:
        connection.execute(text("UPDATE kdyno_meta SET version = 99"))
    engine.dispose()
    ours = f"has schema version 99; this kdyno reads and writes version {schema.VERSION}"
    with pytest.raises(SchemaVersionUnknown, match=ours):
        Store(url)


def test_a_connection_that_the_server_has_closed_costs_no_boot(postgresql: str) -> None:
    run = specimen.run_record()
    engine = create_engine(postgresql.replace("postgresql:", "postgresql+psycopg:"))
    with opened(postgresql, run) as store:
        with engine.begin() as connection:
            others = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            connection.execute(text(others))
        assert store.add_boot(boot(), BENCHMARKS)
    with engine.begin() as connection:
        schema.tables.drop_all(connection)
    engine.dispose()
