"""What is small on the disk and large in memory is refused with one message, below a gigabyte."""

from __future__ import annotations

import gzip
import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from kdyno.base.plain_tar import END, entry
from kdyno.store import plain_json, run_file, schema
from kdyno.store.store import Store
from tests.unit import specimen
from tests.unit.bounded import kdyno

RUN = specimen.run_record(blocks=3)


def packed(path: Path, parts: dict[str, bytes]) -> Path:
    """A run's file of these parts, each as its manifest says."""
    listed = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in parts.items()
    ]
    about = {"format": run_file.FORMAT, "records": schema.VERSION, "kdyno": "0", "run": "0" * 12, "files": listed}
    with gzip.open(path, "wb", 1) as file:
        file.write(entry("manifest.json", json.dumps(about).encode()))
        for name, content in parts.items():
            file.write(entry(name, content))
        file.write(END)
    return path


LISTS = b'{"run": [' + b"[]," * (15 << 20) + b"[]]}"
TEXT = b'{"run": "' + b"x" * (130 << 20) + b'"}'


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({"run.json": LISTS}, "bytes of records are more than a file of"),
        ({"run.json": b'{"run": 0}', "boots/0.json": TEXT}, "bytes of records are more than a file of"),
        ({"run.json": b'{"run": 0}', f"artefacts/{'0' * 64}": TEXT}, "run.json"),
    ],
    ids=["lists", "text", "artefact"],
)
def test_a_run_file_that_unfolds_is_refused_and_nothing_of_it_is_kept(
    tmp_path: Path, parts: dict[str, bytes], why: str
) -> None:
    path = packed(tmp_path / "run.kdyno", parts)
    assert path.stat().st_size < 1_000_000
    done = kdyno("store", "import", path, "--state", tmp_path / "state")
    assert done.returncode == 1 and "Traceback" not in done.stderr
    assert done.stderr.startswith(f"kdyno: {path} can't be imported: ") and why in done.stderr
    assert [file for file in (tmp_path / "state").rglob("*") if file.is_file() and file.stat().st_size > 1 << 20] == []


def test_artefacts_are_kept_only_of_a_run_that_will_be_taken(tmp_path: Path) -> None:
    kept: dict[str, bytes] = {}
    content = b"a console"
    digest = hashlib.sha256(content).hexdigest()
    about = run_file.RunFileRun(run=RUN, cells=(), selftest=None)
    parts = {"run.json": about.model_dump_json().encode(), f"artefacts/{digest}": content}
    path = packed(tmp_path / "run.kdyno", parts)
    with path.open("rb") as file, pytest.raises(run_file.RunFileUnfit):
        run_file.read_run(file, "it", kept.__setitem__)
    assert kept == {}


@pytest.mark.parametrize("column", ["machine", "host", "notices", "experiment"])
def test_json_of_twenty_megabytes_in_a_row_is_refused(tmp_path: Path, column: str) -> None:
    path = tmp_path / "theirs.sqlite"
    with Store(f"sqlite:///{path}") as store:
        store.begin(RUN, specimen.cells(RUN))
    lists = '{"judge": [' + "[]," * (20_000_000 // 3) + "[]]}"
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE kdyno_run SET {column} = ?", [lists])
    done = kdyno("show", "latest", "--store", f"sqlite:///{path}", "--state", tmp_path / "state")
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert f"run {RUN.id}" in done.stderr


def test_the_limit_is_of_values_and_lets_that_many_through() -> None:
    most = plain_json.MOST_VALUES
    assert len(plain_json.parse(f"[{'0,' * (most - 1)}0]")) == most
    with pytest.raises(ValueError, match="more than 2,000,000 values"):
        plain_json.parse(f"[{'0,' * most}0]")
