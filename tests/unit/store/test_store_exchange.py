"""Runs that leave a store and come to another one, over SQLite and PostgreSQL: all or nothing, and the same."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kdyno.base.plain_tar import END, TarLimits, entry, files
from kdyno.base.state import NoSpace, State
from kdyno.store import identity
from kdyno.store.artefacts import Artefacts
from kdyno.store.checks import check_key
from kdyno.store.errors import BootDiffers, RecordCorrupt, RunThere
from kdyno.store.records import RunRecord
from kdyno.store.run_file import inconsistency, read_run, write_run
from kdyno.store.store import Store
from kdyno.store.upkeep.runs import import_run
from kdyno.store.whole import KeptSelfTest, WholeRun
from tests.unit import disk_space, specimen
from tests.unit.store.test_store_store import postgresql, url

__all__ = ["postgresql", "url"]

BENCHMARKS = specimen.benchmarks()


def whole_run(store: Store) -> WholeRun:
    """A run whose id fits it, on record with its boots and a check boot."""
    run = specimen.run_record(blocks=3).model_copy(update={"experiment": '{"judge": {"margin": 0.01}}'})
    boots = specimen.boot_records(run, iterations=2, failed=("gcc-12-O3", 1))
    cells = specimen.placed_keys(boots)
    in_order = sorted(cells, key=lambda cell: cell[0].position)
    own = identity.run_id(run.name, run.baseline, run.layouts, {"margin": 0.01}, in_order, 1)
    run = run.model_copy(update={"id": own})
    store.begin(run, cells)
    for boot in boots:
        store.add_boot(boot, BENCHMARKS)
    image = run.variants[0].images[0]
    key = check_key(image.key, run.variants[0].recipe.words, run.machine)
    store.add_boot(boots[0].model_copy(update={"key": key, "samples": (), "unsupported": {}}), [])
    store.keep_selftest(run.id, specimen.NOON, {"run": run.id})
    return store.whole_run(run.id)


def test_a_run_goes_and_comes_back_as_it_was(url: str) -> None:
    with Store(url) as store:
        whole = whole_run(store)
        assert len(whole.cells) == 9 and len(whole.boots) == 11, "one was lost once, and one is a check"
        boots, benchmarks = store.boots(whole.run.id), store.benchmarks(whole.run.id)
        with pytest.raises(RunThere):
            store.take_in(whole)
        removed = store.remove_run(whole.run.id)
        assert removed.boots == 11
        assert (store.runs(), store.keys(), store.selftests()) == ([], {}, [])
        assert store.take_in(whole) == 11
        assert store.whole_run(whole.run.id) == whole
        assert (store.boots(whole.run.id), store.benchmarks(whole.run.id)) == (boots, benchmarks)


def test_a_boot_that_two_runs_share_stays_with_the_other(url: str) -> None:
    with Store(url) as store:
        whole = whole_run(store)
        other = whole.run.model_copy(update={"id": "other"})
        store.begin(other, whole.in_cells)
        boots = store.boots(whole.run.id)
        assert store.remove_run(whole.run.id).boots == 0
        assert store.boots("other") == boots
        assert store.take_in(whole) == 0
        assert store.boots(whole.run.id) == boots


def test_a_boot_that_says_something_else_than_the_one_on_record_is_refused(url: str) -> None:
    with Store(url) as store:
        whole = whole_run(store)
        store.begin(whole.run.model_copy(update={"id": "other"}), whole.in_cells)
        store.remove_run(whole.run.id)
        before = store.whole_run("other")
        last = whole.boots[-2]
        forged = last.model_copy(update={"boot": last.boot.model_copy(update={"seed": last.boot.seed + 1})})
        with pytest.raises(BootDiffers, match="with other measurements"):
            store.take_in(whole.model_copy(update={"boots": (*whole.boots[:-2], forged, whole.boots[-1])}))
        assert store.whole_run("other") == before
        assert [run.id for run in store.runs()] == ["other"]


def test_a_run_without_a_place_for_each_boot_is_refused_and_leaves_nothing(url: str) -> None:
    with Store(url) as store:
        whole = whole_run(store)
        store.remove_run(whole.run.id)
        with pytest.raises(RecordCorrupt, match="blocks of 3 variants have 8 places"):
            store.take_in(whole.model_copy(update={"cells": whole.cells[:-1]}))
        assert (store.runs(), store.keys()) == ([], {})


def test_boots_of_no_run_are_removed_and_those_of_runs_stay(url: str) -> None:
    with Store(url) as store:
        whole = whole_run(store)
        stray = whole.boots[0].boot.model_copy(update={"key": "stray", "console": "c" * 64})
        store.add_boot(stray, BENCHMARKS)
        assert store.artefacts() == {"c" * 64}
        assert store.artefacts(but={"stray"}) == set()
        assert set(store.keys()) - store.keys_of_runs() == {"stray"}
        removed = store.remove_boots(store.keys())
        assert (removed.boots, removed.artefacts) == (1, frozenset({"c" * 64}))
        assert store.whole_run(whole.run.id) == whole


def exported(directory: Path) -> tuple[WholeRun, bytes]:
    """A run, one of whose boots has a console, and its file."""
    artefacts = Artefacts(directory / "artefacts")
    console = directory / "console"
    console.write_text("hello\n")
    with Store(f"sqlite:///{directory}/store.sqlite") as store:
        whole = whole_run(store)
    first, *others = whole.boots
    boot = first.boot.model_copy(update={"console": artefacts.put(console)})
    whole = whole.model_copy(update={"boots": (first.model_copy(update={"boot": boot}), *others)})
    path = directory / "run.kdyno"
    assert write_run(whole, artefacts, path) == []
    return whole, path.read_bytes()


def test_a_file_holds_the_whole_run_and_its_artefacts(tmp_path: Path) -> None:
    whole, content = exported(tmp_path)
    kept: dict[str, bytes] = {}
    assert read_run(io.BytesIO(content), "it", kept.__setitem__) == whole
    assert list(kept.values()) == [b"hello\n"]
    assert list(tmp_path.glob(".run*")) == [], "nothing is left beside the file"


def test_artefacts_that_the_disk_has_no_room_for_are_not_unpacked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are unpacked beside their place and copied into it."""
    whole, _ = exported(tmp_path)
    state, size = State(tmp_path / "state"), len(b"hello\n")
    with Store(f"sqlite:///{tmp_path}/new.sqlite") as store:
        disk_space.leave(2 * size - 1, monkeypatch)
        with pytest.raises(NoSpace):
            import_run(tmp_path / "run.kdyno", state, store, lambda _: whole.run.id)
        assert not list(state.artefacts.iterdir()) and not store.runs()
        disk_space.leave(2 * size, monkeypatch)
        assert import_run(tmp_path / "run.kdyno", state, store, lambda _: whole.run.id).run == whole.run.id


def test_parts_that_do_not_fit_together_are_named(tmp_path: Path) -> None:
    whole, _ = exported(tmp_path)
    assert inconsistency(whole) is None

    def of(**fields: object) -> str:
        return inconsistency(whole.model_copy(update=fields)) or ""

    by_attempts = next(attempts for attempts in whole.by_key.values() if len(attempts) > 1)
    assert "attempts" in of(boots=tuple(reversed(by_attempts)))
    assert "attempts" in of(boots=(whole.boots[0], whole.boots[0]))
    assert "id" in of(run=whole.run.model_copy(update={"baseline": "gcc-12-O3"}))
    assert "id" in of(run=whole.run.model_copy(update={"experiment": "[]"}))
    assert "id" in of(cells=whole.cells[1:])


def test_an_id_fits_any_repeat_of_a_run_and_no_other_judge(tmp_path: Path) -> None:
    whole, _ = exported(tmp_path)
    assert identity.fits(whole.run, whole.in_cells)

    def judged(experiment: str) -> RunRecord:
        return whole.run.model_copy(update={"experiment": experiment})

    assert not identity.fits(judged('{"judge": {"margin": 0.02}}'), whole.in_cells)
    assert not identity.fits(judged('{"judge": 1}'), whole.in_cells)
    assert not identity.fits(judged("{}"), whole.in_cells)


def test_a_self_test_goes_with_its_run(tmp_path: Path) -> None:
    whole, _ = exported(tmp_path)
    assert whole.selftest == KeptSelfTest(created=specimen.NOON, found={"run": whole.run.id})


@given(st.dictionaries(st.from_regex(r"[a-z]{1,40}(/[a-z0-9.]{1,40})?[a-z]", fullmatch=True), st.binary(max_size=2000)))
def test_what_was_put_into_an_archive_is_read_again(parts: dict[str, bytes]) -> None:
    archive = b"".join(entry(name, content) for name, content in parts.items()) + END
    assert dict(files(io.BytesIO(archive).read, TarLimits(1000, 2000, 1 << 20), "it")) == parts
