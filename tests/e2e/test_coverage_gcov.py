"""The emulated PMU and gcov on one boot of one instrumented kernel: which lines ran. The kernel counts itself while the
PMU counts it, so that both look at the same code.

Where they disagree, one of three things is the cause. After the kernel's counters were read it goes on, and shuts down:
only the PMU sees that. An instruction that the compiler moved, or that two lines share, makes a line executed that
wasn't. And a line of which no instruction is left has a count of gcov's alone.
"""

from __future__ import annotations

import json
import posixpath
import tarfile
from collections import Counter
from pathlib import Path

import pytest

from kdyno.base import process
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder
from kdyno.boot.qemu import QemuMachine
from kdyno.boot.qemu_config import QemuConfig
from kdyno.kernel.image import Image
from kdyno.kernel.images import NOTES
from kdyno.measure.guest.job import Program
from kdyno.measure.guest.pmu import RECORD, PmuConfig
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds
from kdyno.understand.coverage.line_table import in_tree
from kdyno.understand.coverage.measure import RecordSelection, measure

pytestmark = pytest.mark.long

EXPERIMENT = """\
name = "gcov"
source = "debian:linux-source-6.12"
baseline = "gcov"
[variants.gcov]
opt = "O2"
lines = true
kconfig = { DEBUG_FS = true, GCOV_KERNEL = true, GCOV_PROFILE_ALL = true }
"""
LOAD = "ls / > /dev/null; find /proc -maxdepth 2 > /dev/null 2>&1"
COUNTERS = "/sys/kernel/debug/gcov"
READ = (
    f"mount -t debugfs debugfs /sys/kernel/debug && {LOAD}; "
    f"cd {COUNTERS} && find . -name '*.gcda' | while read f; do mkdir -p /tmp/g/${{f%/*}}; cat $f > /tmp/g/$f; done; "
    "cd /tmp/g && tar cf - . | bzip2 -9"
)
Counts = dict[tuple[str, int], int]


@pytest.fixture(scope="module")
def image(state: Path, tmp_path_factory: pytest.TempPathFactory) -> Image:
    path = tmp_path_factory.mktemp("gcov") / "gcov.toml"
    path.write_text(EXPERIMENT)
    talk = Talk(quiet=True)
    builds = plan_builds(load_experiment(path), State(state), talk)
    return build_images(builds.plans, State(state), talk)["gcov"][0]


def boot(image: Image, directory: Path) -> Path:
    """Boot it under the PMU and read its own counters at the end; returns where they are, in a tree of their own."""
    machine = QemuMachine(QemuConfig(memory_mb=1024, pmu=PmuConfig(events="edges", clock="instructions")))
    job = machine.describe().job(1, programs=(Program(name="read", command=("sh", "-c", READ)),))
    end = machine.boot(BootOrder("gcov", image.program, (), job, 1, directory, image.vmlinux))
    lines = [json.loads(line) for line in end.stream.read_text().splitlines()]
    output = b"".join(bytes.fromhex(line["hex"]) for line in lines if line.get("stream") == "stdout")
    (directory / "counters.tar.bz2").write_bytes(output)
    with tarfile.open(directory / "counters.tar.bz2") as counters:
        counters.extractall(directory / "counters", filter="data")
    return next((directory / "counters").rglob("o"))


def of_pmu(image: Image, directory: Path) -> Counts:
    """No benchmark ran, so that a record without regions is right here."""
    first, header, body = (directory / RECORD).read_bytes().split(b"\n", 2)
    header = json.dumps(json.loads(header) | {"opened": 1}).encode()
    (directory / RECORD).write_bytes(b"\n".join((first, header, body)))
    record = read_pmu_record(directory / RECORD)
    lines = measure(record, image.vmlinux, RecordSelection(with_boot=True), "the boot").lines
    return {(lines.files[row["file"]], int(row["line"])): int(row["count"]) for row in lines.lines}


def of_gcov(objects: Path) -> tuple[Counts, set[tuple[str, int]]]:
    """What gcov makes of the counters, whose notes lie beside them; and the lines of functions that weren't called."""
    counts: Counter[tuple[str, int]] = Counter()
    called: Counter[tuple[str, str]] = Counter()
    of_functions: dict[tuple[str, int], tuple[str, str]] = {}
    for file in sorted(objects.rglob("*.gcda")):
        [answer] = process.output(["gcov", "--json-format", "--stdout", file], cwd=objects).splitlines()
        for source in (about := json.loads(answer))["files"]:
            base = about["current_working_directory"]
            path = in_tree(posixpath.join(base, source["file"]), base)
            for line in source["lines"]:
                counts[path, line["line_number"]] += line["count"]
                of_functions[path, line["line_number"]] = (path, line.get("function_name", ""))
            for function in source["functions"]:
                called[path, function["name"]] += function["execution_count"]
    return dict(counts), {line for line, function in of_functions.items() if not called[function]}


def test_pmu_and_gcov_agree_on_which_lines_ran(image: Image, tmp_path: Path) -> None:
    objects = boot(image, tmp_path)
    with tarfile.open(image.directory / NOTES) as notes:
        notes.extractall(objects, filter="data")
    pmu, (gcov, idle) = of_pmu(image, tmp_path), of_gcov(objects)
    both = pmu.keys() & gcov.keys()
    assert len(both) > 200_000 and sum(gcov[line] > 0 for line in both) > 50_000
    apart = {line for line in both if (pmu[line] > 0) != (gcov[line] > 0)}
    assert 1 - len(apart) / len(both) >= 0.98, Counter(file for file, _ in apart).most_common(20)
    causes = Counter("no code left" if gcov[line] else "later" if line in idle else "moved" for line in apart)
    print(f"{len(both):,} lines, {1 - len(apart) / len(both):.2%} agree; {dict(causes)}")
    assert causes["moved"] + causes["no code left"] < len(both) / 100, causes
