"""Readers of foreign bytes: stores, what they hold, and runs' files."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from unittest import mock

from rich.console import Console

from kdyno.base import plain_tar
from kdyno.base.state import State
from kdyno.judge.verdicts.assemble import assemble
from kdyno.judge.verdicts.selftest import Rate, SelfTest, Tested, last_of_host
from kdyno.kernel.recipe import Recipe
from kdyno.report.terminal import render
from kdyno.store import rows
from kdyno.store.artefacts import Artefacts
from kdyno.store.run_file import inconsistency, read_run
from kdyno.store.store import Store
from kdyno.store.upkeep.references import references
from kdyno.understand.selftest.terminal import render as render_selftest
from tests.fuzz.check import Target
from tests.fuzz.inputs import is_shown_as_it_is
from tests.unit import specimen
from tests.unit.store.test_store_exchange import exported


def store(path: Path) -> None:
    with Store(f"sqlite:///{path}") as opened:
        opened.selftests()
        for run in opened.runs():
            report = assemble(opened, run.id, Artefacts(path.parent))
            text = io.StringIO()
            render(report, Console(file=text, width=110, force_terminal=False))
            assert is_shown_as_it_is(text.getvalue())


@cache
def stores() -> Sequence[bytes]:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "store.sqlite"
        with Store(f"sqlite:///{path}") as opened:
            run = specimen.run_record(blocks=2, variants=specimen.VARIANTS[:2])
            opened.begin(run, specimen.cells(run))
            for boot in specimen.boot_records(run)[:2]:
                opened.add_boot(boot, specimen.benchmarks())
        return [path.read_bytes()]


def selftest_record(path: Path) -> None:
    """The record of a self-test, as a stranger's store may have it."""
    with tempfile.NamedTemporaryFile() as file:
        file.write(stores()[0])
        file.flush()
        with closing(sqlite3.connect(file.name)) as connection, connection:
            found = path.read_bytes().decode(errors="replace")
            connection.execute("INSERT INTO kdyno_selftest SELECT id, created, ?, '' FROM kdyno_run", [found])
        # Whoever makes up a record makes up its digest, too.
        with mock.patch.object(rows, "require_digest"), Store(f"sqlite:///{file.name}") as opened:
            last = last_of_host(opened, {"cpu": "a"}, "model")
    if last:
        text = io.StringIO()
        render_selftest(last, Console(file=text, width=110, force_terminal=False))
        assert is_shown_as_it_is(text.getvalue())


def needed(path: Path) -> None:
    """The record of a soak, or of how an input was made: what they say is needed is told by names alone."""
    with tempfile.TemporaryDirectory() as directory:
        state = State(Path(directory))
        assert state.sources  # marks the directory as kdyno's
        image = specimen.image("a", Recipe()).model_copy(update={"inputs": {"profile": "1234"}})
        for place, content in (
            (Path("soaks") / "a.json", path.read_bytes()),
            (Path("soaks") / "b.json", json.dumps({"kernel": {"image": image.key}}).encode()),
            (Path("images") / image.key / "image.json", image.model_dump_json().encode()),
            (Path("inputs") / "1234.json", path.read_bytes()),
        ):
            (state.root / place).parent.mkdir(parents=True, exist_ok=True)
            (state.root / place).write_bytes(content)
        refs = references([], state)
    assert image.key in refs.images


def run_file(path: Path) -> None:
    kept: dict[str, bytes] = {}
    with path.open("rb") as file:
        whole = read_run(file, "it", kept.__setitem__)
    assert inconsistency(whole) is None and kept.keys() <= whole.artefacts.keys()
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in kept.items())


def run_file_unpacked(path: Path) -> None:
    """The same, where the archive is what was changed."""
    with tempfile.NamedTemporaryFile() as packed:
        packed.write(gzip.compress(path.read_bytes(), 1, mtime=0))
        packed.flush()
        run_file(Path(packed.name))


def run_file_forged(path: Path) -> None:
    """The same, where the run's record is what was changed, and the manifest was made to fit."""
    parts = dict(_parts_of_run_file())
    parts["run.json"] = path.read_bytes()
    listed = [
        {"name": name, "bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for name, content in parts.items()
        if name != "manifest.json"
    ]
    manifest = {**json.loads(parts["manifest.json"]), "files": listed}
    parts["manifest.json"] = json.dumps(manifest).encode()
    archive = b"".join(plain_tar.entry(name, content) for name, content in parts.items()) + plain_tar.END
    with tempfile.NamedTemporaryFile() as packed:
        packed.write(gzip.compress(archive, 1, mtime=0))
        packed.flush()
        run_file(Path(packed.name))


@cache
def _run_file() -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        return exported(Path(directory))[1]


def _parts_of_run_file() -> dict[str, bytes]:
    limits = plain_tar.TarLimits(1000, 1 << 24, 1 << 26)
    return dict(plain_tar.files(io.BytesIO(gzip.decompress(_run_file())).read, limits, "it"))


SOAKED = b'{"kernel": {"image": "ab12", "variant_of": "cd34", "release": "6.12"}, "verdict": "passed"}'
DERIVED = (
    b'{"exporter": "order", "version": 1, "image": "ab12", "boots": ["0123"], "settings": {}, "families": {"a": "b"}}'
)
RATE = Rate(count=2, of=200, rate=0.01, low=0.0012, high=0.036)
SELFTEST = SelfTest(
    run="ab" * 32,
    created=specimen.NOON,
    host={"cpu": "a"},
    lane="model",
    machine={},
    image=None,
    experiments=200,
    blocks=4,
    planned=12,
    margin=0.01,
    alpha=0.05,
    correction="holm",
    family_wise=RATE,
    benchmarks=(
        Tested(
            benchmark="pipe",
            unit="ns",
            false_verdicts=RATE,
            false_positives=RATE,
            covered=RATE,
            spread=0.004,
            detectable=0.0036,
        ),
    ),
)
TARGETS = (
    Target("store", store, stores, examples=100),
    Target("run-file", run_file, lambda: [_run_file()], examples=100),
    Target("run-file-unpacked", run_file_unpacked, lambda: [gzip.decompress(_run_file())], examples=100),
    Target("run-file-forged", run_file_forged, lambda: [_parts_of_run_file()["run.json"]], examples=100),
    Target("self-test", selftest_record, lambda: [SELFTEST.model_dump_json().encode()], examples=100),
    Target("needed", needed, lambda: [SOAKED, DERIVED], (b'"kernel":', b'"image":', b'"boots":', b"../")),
)  # fmt: skip
