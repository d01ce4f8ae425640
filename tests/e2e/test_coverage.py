"""Coverage of a real kernel: lines have the counts that the benchmark's own number of operations says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel.image import Image
from kdyno.kernel.source_trees import tree_path
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.needs import Load
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds
from kdyno.runs.session import Session
from kdyno.runs.single_boots import SingleBoots
from kdyno.store.store import Store
from kdyno.understand.coverage.measure import RecordSelection, measure
from tests.e2e.conftest import Kdyno

EXPERIMENT = """\
name = "lines"
source = "debian:linux-source-6.12"
baseline = "plain"
[variants.plain]
opt = "O2"
lines = true
"""
READ = "fs/read_write.c"


@pytest.fixture(scope="module")
def image(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    path = tmp_path_factory.mktemp("coverage") / "lines.toml"
    path.write_text(EXPERIMENT)
    experiment, where, talk = load_experiment(path), State(state), Talk(quiet=True)
    return build_images(plan_builds(experiment, where, talk).plans, where, talk)["plain"][0]


def test_a_line_on_the_path_of_read_is_executed_as_often_as_the_benchmark_reads(
    kdyno: Kdyno, image: Image, state: Path
) -> None:
    with Store(kdyno.store) as store:
        boots = SingleBoots(Session(State(state), store, Talk(quiet=True)))
        run = boots.count(image, Load(tests=("lat_syscall",)), seed=1, events="edges", family=PmuConfig().family)
    record = read_pmu_record(run.record)
    measured = measure(
        record, image.vmlinux, RecordSelection(regions=("lat_syscall.read",), contexts=("task",)), "a boot"
    )
    reads = sum(run.work["lat_syscall.read"])
    counts = {function.name: function.calls for function in measured.report.functions if function.file == READ}
    assert reads > 100 and (counts["ksys_read"], counts["vfs_read"], counts["vfs_write"]) == (reads, reads, 0)
    lines = measured.lines.lines[measured.lines.lines["file"] == measured.lines.files.index(READ)]
    ran = {int(line): int(count) for line, count in zip(lines["line"], lines["count"], strict=True) if count}
    text = (tree_path(image.record.source.identity, State(state)) / READ).read_text().splitlines()
    [call] = [number for number, line in enumerate(text, 1) if "ret = file->f_op->read(file, buf, count, pos);" in line]
    assert ran[call] == reads and set(ran.values()) == {reads}


def test_pages_tracefile_and_what_is_unused_of_a_real_kernel(kdyno: Kdyno, image: Image, tmp_path: Path) -> None:
    pages, trace = tmp_path / "pages", tmp_path / "out.info"
    subject = (image.record.key, "--workload", "lat_syscall")
    report = json.loads(kdyno("coverage", *subject, "--html", str(pages), "--lcov", str(trace), "--json").stdout)
    assert 1000 < report["totals"]["executed"] < report["totals"]["lines"] / 2
    page = (pages / "src" / f"{READ}.html").read_text()
    assert re.search(r"<i class=[fp] id=L\d+[^>]*> +\d+ +[\d,]+  .*ret = file-&gt;f_op-&gt;read\(", page)
    assert trace.read_text().count("end_of_record") > 1000
    size = sum(path.stat().st_size for path in pages.rglob("*.html"))
    assert size < 50_000_000
    unused = json.loads(kdyno("coverage", *subject, "--unused", "--json").stdout)
    assert "EVENTFD" in {symbol["name"] for symbol in unused["symbols"]}
    assert not {"start_kernel", "vfs_read"} & {function["name"] for function in unused["functions"]}
