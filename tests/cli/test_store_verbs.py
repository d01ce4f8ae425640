"""`kdyno store`: what isn't needed goes, runs travel from one store to another, and nothing is half done."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
import shutil
from pathlib import Path
from uuid import uuid4

import jsonschema
import pytest

from kdyno.base.plain_tar import END, TarLimits, entry, files
from kdyno.base.state import State
from kdyno.cli.schemas import schema
from kdyno.store.errors import RunThere
from kdyno.store.store import Store
from kdyno.store.whole import WholeRun
from tests.at_once import at_once
from tests.cli.conftest import Lab
from tests.cli.replay import died, slower

ALL = TarLimits(files=10_000, file_bytes=1 << 24, total_bytes=1 << 28)


@pytest.fixture
def done(lab: Lab) -> Lab:
    """A finished run: one variant slower in one benchmark, one whose kernel panics in one boot."""
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    lab.recording.add("shaky", died("init-exited.log"), blocks=[1])
    assert lab("run", lab.experiment("slow", "shaky"), "-q").status == 0
    return lab


def store_of(lab: Lab) -> Store:
    return Store(f"sqlite:///{lab.state}/store.sqlite")


def run_id(lab: Lab) -> str:
    with store_of(lab) as store:
        return store.newest() or ""


def artefacts(lab: Lab) -> list[str]:
    return sorted(path.name for path in (lab.state / "artefacts").glob("*/*"))


def exported(lab: Lab, name: str = "run.kdyno") -> Path:
    path = lab.directory / name
    result = lab("store", "export", "latest", str(path))
    assert (result.status, result.err) == (0, "")
    return path


def report(lab: Lab) -> str:
    result = lab("report", "latest", "--json")
    assert result.status == 0, result.err
    return result.out


def contents(path: Path) -> dict[str, bytes]:
    with gzip.open(path) as packed:
        return dict(files(packed.read, ALL, "it"))


def repacked(path: Path, parts: dict[str, bytes], *, with_digests: bool = True) -> Path:
    """The same file with other parts; with digests the manifest fits them, as a forger's would."""
    manifest = json.loads(parts["manifest.json"])
    if with_digests:
        manifest["files"] = [
            {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
            for name, content in parts.items()
            if name != "manifest.json"
        ]
    parts = {**parts, "manifest.json": json.dumps(manifest).encode()}
    path.write_bytes(gzip.compress(b"".join(entry(name, content) for name, content in parts.items()) + END, mtime=0))
    return path


def test_a_run_that_was_exported_removed_and_imported_gives_the_same_report(done: Lab) -> None:
    before, show, kept = report(done), done("show", "latest", "--json").out, artefacts(done)
    path = exported(done)
    assert done("store", "rm", "latest", "--yes").status == 0
    assert artefacts(done) == []
    assert done.boots() == []
    assert done("runs").out.startswith("no runs yet")
    result = done("store", "import", str(path))
    assert result.status == 0, result.err
    assert "(replay): 9 new boots" in result.out
    assert report(done) == before
    assert done("show", "latest", "--json").out == show
    assert artefacts(done) == kept
    assert exported(done, "again.kdyno").read_bytes() == path.read_bytes(), "the same run, the same bytes"


def test_the_parts_of_a_file_obey_their_schemas(done: Lab) -> None:
    formats = {"manifest.json": "run-file", "run.json": "run-file-run", "boots/0.json": "run-file-boot"}
    parts = contents(exported(done))
    for part, name in formats.items():
        jsonschema.validate(json.loads(parts[part]), schema(name))
    jsonschema.validate(json.loads(done("store", "gc", "--json").out), schema("store-gc"))


def test_another_state_directory_takes_the_run_and_compares_it(done: Lab) -> None:
    path, other = exported(done), str(done.directory / "other")
    assert done("store", "import", str(path), "--state", other).status == 0
    assert done("report", "latest", "--json", "--state", other).out == report(done)
    assert done("compare", "latest", "--state", other).status == 0
    result = done("show", "latest", "--console", "shaky/1", "--state", other)
    assert result.status == 0 and "Kernel panic" in result.out


def test_a_run_that_is_there_is_not_imported_again(done: Lab) -> None:
    result = done("store", "import", str(exported(done)))
    assert result.status == 1
    assert f"run {run_id(done)} is in" in result.err


def changed_sample(content: bytes) -> bytes:
    whole = json.loads(content)
    whole["boot"]["samples"][0]["elapsed"] += 1
    return json.dumps(whole).encode()


def of_another_run(content: bytes) -> bytes:
    return content.replace(b'"block":0', b'"block":2', 1)


def renamed(content: bytes) -> bytes:
    return content.replace(b'"name":"replay"', b'"name":"better"', 1)


def with_another_key(content: bytes) -> bytes:
    whole = json.loads(content)
    whole["boot"]["key"] = "f" * 64
    return json.dumps(whole).encode()


def without_its_benchmarks(content: bytes) -> bytes:
    return json.dumps({**json.loads(content), "benchmarks": []}).encode()


def nested(content: bytes) -> bytes:
    return content.replace(b'"machine":{', b'"machine":{"deep":' + b"[" * 50 + b"]" * 50 + b",", 1)


@pytest.mark.parametrize(
    ("part", "change", "with_digests", "why"),
    [
        ("boots/0.json", changed_sample, False, "of another size|was changed"),
        ("boots/0.json", with_another_key, True, "does not belong to the run"),
        ("boots/0.json", without_its_benchmarks, True, "the sample names an unknown benchmark,"),
        ("run.json", renamed, True, "the run's id does not match"),
        ("run.json", of_another_run, True, "the run's id does not match"),
        ("run.json", nested, True, "nested too deep"),
        ("run.json", lambda _: b"{}", True, "it is missing"),
        ("run.json", lambda _: b"\xff", True, "not plain JSON"),
    ],
)
def test_a_file_that_was_tampered_with_is_refused_and_nothing_is_changed(
    done: Lab, part: str, change: object, with_digests: bool, why: str
) -> None:
    assert callable(change)
    path = exported(done)
    assert done("store", "rm", "latest", "--yes").status == 0
    parts = contents(path)
    repacked(path, {**parts, part: change(parts[part])}, with_digests=with_digests)
    result = done("store", "import", str(path))
    assert result.status == 1
    assert re.search(why, result.err), result.err
    assert artefacts(done) == [] and done.boots() == []
    assert done("runs").out.startswith("no runs yet")


def test_a_sample_that_a_forger_changed_is_seen_where_the_boot_is_on_record(done: Lab) -> None:
    path = exported(done)
    assert done("run", done.experiment("slow", "shaky", more="[judge]\nmargin = 0.02\n"), "-q").status == 0
    with store_of(done) as store:
        older = store.runs()[-1].id
    assert done("store", "rm", older, "--yes").out.endswith("and 0 boots that no other run has\n")
    before = done.boots()
    parts = contents(path)
    repacked(path, {**parts, "boots/0.json": changed_sample(parts["boots/0.json"])})
    result = done("store", "import", str(path))
    assert result.status == 1 and "with other measurements" in result.err
    assert done.boots() == before


def test_an_artefact_that_no_boot_names_is_refused(done: Lab) -> None:
    path = exported(done)
    extra = b"not of this run"
    repacked(path, {**contents(path), f"artefacts/{hashlib.sha256(extra).hexdigest()}": extra})
    result = done("store", "import", str(path), "--state", str(done.directory / "other"))
    assert result.status == 1 and "no boot has the artefact" in result.err


@pytest.mark.parametrize("cut", [0, 10, 2000, -20])
def test_a_file_that_is_cut_short_or_no_run_file_is_refused(done: Lab, cut: int) -> None:
    path = exported(done)
    path.write_bytes(path.read_bytes()[:cut])
    result = done("store", "import", str(path), "--state", str(done.directory / "other"))
    assert result.status == 1 and "can't be imported" in result.err


def test_a_file_of_another_version_is_refused_by_name(done: Lab) -> None:
    path = exported(done)
    parts = contents(path)
    manifest = {**json.loads(parts["manifest.json"]), "format": 99, "later": True}
    repacked(path, {**parts, "manifest.json": json.dumps(manifest).encode()})
    result = done("store", "import", str(path), "--state", str(done.directory / "other"))
    assert result.status == 1 and "is of format 99" in result.err


def test_what_is_no_file_is_refused(lab: Lab) -> None:
    assert "can't read" in lab("store", "import", str(lab.directory)).err
    assert "can't read" in lab("store", "import", str(lab.directory / "nothing")).err


def test_a_lost_artefact_is_left_out_and_said(done: Lab) -> None:
    lost = sorted((done.state / "artefacts").glob("*/*"))[0]
    lost.unlink()
    result = done("store", "export", "latest", str(done.directory / "run.kdyno"))
    assert result.status == 0 and "1 artefacts of run" in result.err
    assert f"artefacts/{lost.name}" not in contents(done.directory / "run.kdyno")


def test_a_run_is_removed_with_what_no_other_run_has(done: Lab) -> None:
    assert done("run", done.experiment("slow"), "-q").status == 0
    result = done("store", "rm", "latest", "--yes")
    assert result.status == 0 and "0 boots that no other run has" in result.out
    assert len(done.boots()) == 9, "the other run has them"
    assert report(done)


def test_nothing_is_removed_unless_somebody_agrees(done: Lab) -> None:
    result = done("store", "rm", "latest")
    assert result.status == 1 and "no terminal for the question" in result.err
    assert len(done.boots()) == 9


def test_a_run_under_way_is_not_removed(done: Lab) -> None:
    with State(done.state).lock(f"run-{run_id(done)}"):
        result = done("store", "rm", "latest", "--yes")
    assert result.status == 1 and "is being carried out" in result.err
    assert len(done.boots()) == 9


def strays(lab: Lab) -> list[Path]:
    """What nothing refers to, one in each part."""
    state = State(lab.state)
    paths = [
        state.images / ("e" * 64),
        state.sources / f"tree-{'0' * 32}",
        state.roots / ("f" * 32),
        state.builds / ("d" * 64),
        lab.state / "boots" / "one-12345678.boot",
    ]
    for path in paths:
        path.mkdir(parents=True)
        (path / "content").write_bytes(b"x" * 10_000)
    for path in (
        state.inputs / ("a" * 64),
        state.patches / f"march-{'1' * 32}.patch",
        state.artefacts / "ab" / ("ab" * 32),
    ):
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x" * 10_000)
        paths.append(path)
    return paths


def test_gc_removes_what_no_run_needs_and_nothing_else(done: Lab) -> None:
    before, kept = report(done), artefacts(done)
    others = strays(done)
    result = done("store", "gc")
    assert result.status == 0 and "nothing was removed; add --yes to remove it" in result.out
    assert all(path.exists() for path in others)
    assert done("store", "gc", "--dry-run").status == 0
    assert all(path.exists() for path in others)
    result = done("store", "gc", "--yes")
    assert result.status == 0 and "removed 8 things that no run needs" in result.err
    assert not any(path.exists() for path in others)
    assert list((done.state / "removed").iterdir()) == []
    assert artefacts(done) == kept
    assert report(done) == before
    assert done("store", "gc", "--yes").out.endswith("nothing to remove\n")


def of_the_user(lab: Lab) -> list[Path]:
    """What people have in directories that are called as kdyno calls its own."""
    holiday = lab.directory / "photos" / "holiday.jpg"
    holiday.parent.mkdir()
    (lab.state / "patches").mkdir(exist_ok=True)
    (lab.state / "kernels").symlink_to(holiday.parent)  # and what lies there is called as kdyno calls it
    theirs = [
        *(lab.state / part / "mine" / "file" for part in ("images", "sources", "roots", "builds", "boots", "removed")),
        *(lab.state / part / "mine.patch" for part in ("patches", "inputs")),
        *(lab.state / "artefacts" / name for name in ("thesis.tex", "ab/notes", "ch/01.tex")),
        holiday,
        holiday.parent / ("f" * 32),
    ]
    for path in theirs:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("years of work")
    outside = lab.directory / "outside"
    shutil.copytree(holiday.parent, outside)
    (lab.state / "images" / ("d" * 64)).symlink_to(outside)
    return [*theirs, *outside.iterdir()]


def test_neither_gc_nor_a_run_nor_an_import_removes_what_kdyno_did_not_make(done: Lab) -> None:
    path, theirs = exported(done), of_the_user(done)
    assert "holiday" not in done("store", "gc").out
    for words in (["store", "gc", "--yes"], ["store", "rm", "latest", "--yes"], ["store", "import", str(path)]):
        result = done(*words)
        assert result.status == 0, result.err
    assert done("run", done.experiment("slow"), "-q").status == 0
    assert done("store", "gc", "--yes").status == 0
    assert [path for path in theirs if not path.exists()] == []


@pytest.mark.parametrize("verb", ["runs", "run", "import", "gc", "build", "doctor"])
def test_a_directory_that_is_not_kdynos_is_refused_and_left_as_it_is(done: Lab, verb: str) -> None:
    path, theirs = exported(done), done.directory / "project"
    for name in ("images/cat.png", "sources/main.c", "boots/winter/left", "artefacts/ab/notes"):
        (theirs / name).parent.mkdir(parents=True)
        (theirs / name).write_text("years of work")
    before = sorted(theirs.rglob("*"))
    words = {
        "runs": ["runs"],
        "run": ["run", done.experiment("slow"), "-q"],
        "import": ["store", "import", str(path)],
        "gc": ["store", "gc", "--yes", "--store", f"sqlite:///{done.state}/store.sqlite"],
        "build": ["build", done.experiment("slow")],
        "doctor": ["doctor"],
    }
    result = done(*words[verb], "--state", str(theirs))
    assert sorted(theirs.rglob("*")) == before
    if verb not in ("doctor", "gc"):  # they find nothing to do
        assert result.status == 1 and f"{theirs} is not a state directory" in result.err
        assert f"touch {theirs}/.kdyno-state" in result.err


def test_what_is_young_stays_for_as_long_as_is_asked(done: Lab) -> None:
    others = strays(done)
    result = done("store", "gc", "--yes", "--older-than", "1")
    assert result.status == 0 and "1 too young to be removed" in result.out
    assert all(path.exists() for path in others)


def test_gc_leaves_all_alone_while_a_run_is_under_way(done: Lab) -> None:
    others = strays(done)
    with State(done.state).lock("run-123456"):
        result = done("store", "gc", "--yes")
        assert result.status == 3 and "another kdyno is at work" in result.err and "run-123456" in result.err
        result = done("store", "gc")
        assert result.status == 0 and "another kdyno uses this directory (run-123456)" in result.out
    assert all(path.exists() for path in others)
    with State(done.state).scratch("soak"):
        assert done("store", "gc", "--yes").status == 3
    assert all(path.exists() for path in others if path.parent.name != "boots"), "these a scratch directory clears away"


def test_a_run_that_goes_on_in_another_process_loses_nothing(lab: Lab) -> None:
    others = strays(lab)
    go_on = lab.directory / "go on"
    os.mkfifo(go_on)
    slowly = (
        "from kdyno.boot.fake import FakeMachine\nboot = FakeMachine.boot\n"
        f"def late(machine, order):\n    print('booting', flush=True)\n    open({str(go_on)!r}).read()\n"
        "    return boot(machine, order)\n"
        "FakeMachine.boot = late\n"
    )
    running = lab.start("run", lab.experiment(blocks=1), "-q", script=slowly)
    assert running.stdout
    assert running.stdout.readline() == "booting\n"
    result = lab("store", "gc", "--yes")
    assert result.status == 3 and "another kdyno is at work" in result.err
    with at_once(60):
        go_on.write_text("")
    assert running.wait(60) == 0
    running.stdout.close()
    assert all(path.exists() for path in others if path.parent.name != "boots")
    assert len(lab.boots()) == 1
    assert lab("store", "gc", "--yes").status == 0
    assert not any(path.exists() for path in others)
    assert report(lab)


def test_what_was_on_its_way_out_when_gc_was_killed_goes_the_next_time(done: Lab) -> None:
    left = State(done.state).removed / uuid4().hex
    left.mkdir()
    (left / "file").touch()
    assert done("store", "gc", "--yes").status == 0
    assert not left.exists()


def test_a_run_of_another_store_keeps_the_files_of_the_state_directorys_own(done: Lab) -> None:
    kept, other = artefacts(done), f"sqlite:///{done.directory}/other.sqlite"
    assert done("run", done.experiment("slow"), "-q", "--store", other).status == 0
    assert done("store", "rm", "latest", "--yes", "--store", other).status == 0
    assert done("store", "gc", "--yes", "--store", other).status == 0
    assert artefacts(done) == kept


def test_sizes_are_told_as_json(done: Lab) -> None:
    strays(done)
    use = json.loads(done("store", "gc", "--json").out)
    parts = {part["part"]: part for part in use["parts"]}
    assert (parts["images"]["things"], parts["images"]["unneeded"]) == (1, 1)
    assert parts["images"]["unneeded_bytes"] >= 10_000
    assert (parts["store"]["things"], parts["store"]["unneeded"]) == (9, 0)
    assert use["removed"] is False


@pytest.mark.parametrize("how", [RunThere(run="it", where="here"), KeyboardInterrupt(), None])
def test_an_import_that_fails_takes_nothing_from_one_that_came_first(
    done: Lab, monkeypatch: pytest.MonkeyPatch, how: BaseException | None
) -> None:
    path, kept, before = exported(done), artefacts(done), report(done)
    assert kept and done("store", "rm", "latest", "--yes").status == 0
    take_in, calls = Store.take_in, []

    def overtaken(store: Store, whole: WholeRun) -> int:
        """The first import comes to the end of its way, and another one is faster."""
        calls.append(store)
        if len(calls) == 1:
            assert done("store", "import", str(path)).status == 0
            if how is not None:
                raise how
        return take_in(store, whole)

    monkeypatch.setattr(Store, "take_in", overtaken)
    assert done("store", "import", str(path)).status != 0
    assert len(calls) == 2
    assert artefacts(done) == kept
    assert report(done) == before
    assert done("store", "gc", "--yes").status == 0
    assert artefacts(done) == kept


def test_what_an_import_left_that_failed_goes_with_gc(done: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    path = exported(done)
    assert done("store", "rm", "latest", "--yes").status == 0

    def refused(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "take_in", refused)
    assert done("store", "import", str(path)).status != 0
    assert artefacts(done)
    assert done("store", "gc", "--yes").status == 0
    assert artefacts(done) == []
