"""kdyno-pgod where it belongs: in a guest whose kernel counts, under load, killed and out of space."""

from __future__ import annotations

import gzip
import io
import json
import os
import subprocess
import sys
import tarfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kdyno.base.installed import find_program
from kdyno.profile.counters import Counts
from kdyno.profile.gcda import read_gcda
from tests.e2e.conftest import Kdyno
from tests.unit.pgod_specimen import install_ssh

pytestmark = pytest.mark.long  # a kernel with counters is built for it

COUNTING = """
[variants.gcov]
opt = "O2"
lines = true
kconfig = { GCOV_KERNEL = true, GCOV_PROFILE_ALL = true, DEBUG_FS = true }
"""

# The agent is the guest's /init. What goes to standard output is the archive.
SCENARIO = """
every=$1 third=$2 load="$3"
kdyno-pgod run --directory /tmp/none >&2
echo "not mounted: $?" >&2
mount -t debugfs debugfs /sys/kernel/debug
mkdir /store
mount -t tmpfs -o size=200m tmpfs /store
while :; do /init run $load --iterations 3 >/dev/null; done &
load=$!
begin() {
    kdyno-pgod run --every ${every}s --keep 1000 --directory /store/pgod &
    pid=$!
}
begin
sleep $third
kill -KILL $pid
wait $pid
begin
sleep $third
kill -USR1 $pid
sleep 0.2
kill -KILL $pid
wait $pid
ls -A /store/pgod >&2
begin
sleep $third
dd if=/dev/zero of=/store/ballast bs=64k 2>/dev/null
sleep $((3 * every))
rm /store/ballast
sleep $((2 * every))
kill -TERM $pid
wait $pid
echo "ended: $?" >&2
kill $load
kdyno-pgod status --directory /store/pgod >&2
exec tar -C /store -c pgod
"""


@dataclass(frozen=True)
class Snapshot:
    about: dict[str, Any]
    objects: dict[str, Counts]
    shape: tuple[object, ...]
    """What is the same in all snapshots of a kernel."""


def read(path: Path) -> Snapshot:
    """A snapshot with all of its counters. Raises what is raised where any of it isn't whole."""
    objects, shape = {}, []
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(path.read_bytes()))) as archive:
        first, *members = archive
        content = {member.name: archive.extractfile(member) for member in (first, *members)}
        about = json.load(content.pop("snapshot.json"))  # type: ignore[arg-type]
        for name, file in content.items():
            assert file is not None
            counted = read_gcda(file.read(), name)
            heads = tuple((function.ident, function.cfg_checksum, len(function.arcs)) for function in counted.functions)
            shape.append((name, counted.stamp, heads))
            objects[name] = np.array([count for function in counted.functions for count in function.arcs], np.uint64)
    assert len(objects) == about["objects"]
    return Snapshot(about, objects, tuple(shape))


def run_scenario(kdyno: Kdyno, *options: str, every: int, third: int, load: str) -> tuple[Path, str]:
    """Run it in a guest; returns the store that it left, and what was said."""
    path = kdyno.experiment("counting", COUNTING, baseline="gcov", blocks=1)
    [image] = json.loads(kdyno("build", path, "--json").stdout)["gcov"]
    words = kdyno.command("boot", image["key"], "--limit", "1500", *options)[3:]
    command = [sys.executable, "-m", "tests.e2e.with_programs", str(find_program("kdyno-pgod", "a test")), "--", *words]
    command += ["--", "sh", "-c", SCENARIO, "sh", str(every), str(third), load]
    done = subprocess.run(command, capture_output=True, check=False, stdin=subprocess.DEVNULL)
    errors = done.stderr.decode()
    assert done.returncode == 0, errors
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as archive:
        archive.extractall(kdyno.directory, filter="data")
    return kdyno.directory / "pgod", errors


def require_sound(store: Path, errors: str, *, every: int) -> list[Snapshot]:
    """Nothing was lost or torn, and no counter went back. Returns the snapshots."""
    assert "debugfs is not mounted" in errors and "not mounted: 3" in errors
    assert errors.count("no space left on device; free some space") == 1, errors
    assert "snapshots are taken again" in errors
    assert "ended: 0" in errors
    assert errors.count(", run 1 begins:") == 1 and errors.count(", run 1 goes on:") == 2
    [boot] = [path for path in store.iterdir() if path.is_dir()]
    assert {path.name for path in store.iterdir()} == {boot.name, "lock"}
    files = sorted(boot.iterdir())
    assert [path.name for path in files] == [f"0001-{number:06}.tar.gz" for number in range(1, len(files) + 1)]
    snapshots = [read(path) for path in files]
    assert len({snapshot.shape for snapshot in snapshots}) == 1, "every file of every snapshot has all functions"
    for earlier, later in pairwise(snapshots):
        backward = [name for name, counts in later.objects.items() if (counts < earlier.objects[name]).any()]
        assert backward == [], f"between snapshots {earlier.about['sequence']} and {later.about['sequence']}"
        growth = sum(int(counts.sum()) - int(earlier.objects[name].sum()) for name, counts in later.objects.items())
        assert growth > 10_000, "the load runs"
    taken = [snapshot.about["taken"] for snapshot in snapshots]
    gaps = [after - before for before, after in pairwise(taken)]
    took = [snapshot.about["milliseconds"] / 1000 for snapshot in snapshots]
    size = sum(path.stat().st_size for path in files)
    print(f"{len(snapshots)} snapshots, {min(took)} to {max(took)} s each, {size:,} bytes, {gaps} s apart")
    # One is due while another is taken; a host that is busy with something else adds to it.
    late = [gap for gap in gaps if gap > every + 2 * max(took) + 5]
    assert len(late) <= 1, f"only the full disk was in the way: {gaps}"
    return snapshots


def require_pulled(store: Path, last: Snapshot, kdyno: Kdyno) -> None:
    """`kdyno profile pull` brings what the last snapshot has."""
    install_ssh(kdyno.directory / "bin")
    environment = {"PATH": f"{kdyno.directory / 'bin'}:{os.environ['PATH']}"}
    here = Kdyno(kdyno.state, kdyno.store, kdyno.directory, environment)
    program = str(find_program("kdyno-pgod", "a test"))
    out = kdyno.directory / "pulled"
    words = ["profile", "pull", "machine", "-o", str(out), "--program", program, "--directory", str(store), "--json"]
    pulled = json.loads(here(*words).stdout)
    assert pulled["executions"] == sum(int(counts.sum()) for counts in last.objects.values())
    assert {str(path.relative_to(out)) for path in out.rglob("*.gcda")} == set(last.objects)
    name = next(name for name in last.objects if name.endswith("/kernel/sys.gcda"))
    counted = read_gcda((out / name).read_bytes(), name)
    assert counted.summary is not None and counted.summary[0] == 1
    assert [count for function in counted.functions for count in function.arcs] == last.objects[name].tolist()


def test_snapshots_of_a_loaded_guest_are_whole_though_it_is_killed_twice_and_out_of_space(kdyno: Kdyno) -> None:
    every, third = 2, 6
    load = "lat_syscall lat_pipe lat_proc"
    store, errors = run_scenario(kdyno, "--cpus", "2", every=every, third=third, load=load)
    snapshots = require_sound(store, errors, every=every)
    assert len(snapshots) >= 6
    require_pulled(store, snapshots[-1], kdyno)


def test_ten_minutes_under_load_on_two_processors_lose_and_tear_nothing(kdyno: Kdyno) -> None:
    every, third = 10, 185
    store, errors = run_scenario(kdyno, "--cpus", "2", "--memory", "1024", every=every, third=third, load="all")
    snapshots = require_sound(store, errors, every=every)
    assert len(snapshots) >= 55
    assert snapshots[-1].about["taken"] - snapshots[0].about["taken"] >= 590
    require_pulled(store, snapshots[-1], kdyno)
