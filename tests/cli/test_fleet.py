"""Runs on a fleet: a real scheduler, workers and PostgreSQL, replayed boots. Nothing is lost, nothing happens twice."""

from __future__ import annotations

import json
import signal
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from local_fleet import LocalFleet, local_fleet, wait_until
from postgres_server import server_programs

from kdyno.cli.main import main
from kdyno.store.records import BootRecord
from kdyno.store.store import Store
from tests.cli.conftest import CommandResult, Lab
from tests.cli.replay import BLOCKS, Change, slower

LEASE = 4.0
ALL = sorted((variant, block) for variant in ("baseline", "slow") for block in BLOCKS)
# Locks are the fleet's own: another one on this machine may have workers of the same names.
HELD = """
import os, signal, time
from pathlib import Path
from kdyno.boot.fake import FakeMachine
from kdyno.fleet import wall_slot
wall_slot.DIRECTORIES = (Path(os.environ["KDYNO_STATE"]).parent,)
from kdyno.fleet.queue.queue import Queue
as_recorded, commit = FakeMachine.boot, Queue.commit
def wait_for(place, name):
    while (place / name).exists():
        time.sleep(0.02)
def boot(machine, order):
    place = machine.config.recording.parent
    with (place / "begun").open("a") as log:
        log.write(f"{order.variant} {order.block} {os.getpid()}\\n")
    if order.variant == "killer":
        os.kill(os.getpid(), signal.SIGKILL)
    wait_for(place, "hold-boots")
    end = as_recorded(machine, order)
    if (place / "hold-commits").exists():
        with (place / "committing").open("a") as log:
            log.write(f"{os.getpid()}\\n")
        wait_for(place, "hold-commits")
    return end
FakeMachine.boot = boot
"""
WRONG_CLOCK = """
import time
real = time.time
time.time = lambda: real() + 3600
"""
NAMES = ("one", "two", "three")
UNITS = {"instr": "ns", "B/instr": "MB/s"}
"""Those of the wall lane, by those of the recording."""


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalFleet]:
    if server_programs() is None:
        pytest.skip("no PostgreSQL is installed (/usr/lib/postgresql/*/bin/initdb)")
    with local_fleet(tmp_path_factory.mktemp("fleet"), LEASE) as fleet:
        yield fleet


@pytest.fixture
def fleet(processes: LocalFleet) -> LocalFleet:
    """A scheduler and three workers that run."""
    if processes.scheduler is None or processes.scheduler.poll() is not None:
        processes.start_scheduler()
    for name in NAMES:
        if name not in processes.workers or processes.workers[name].poll() is not None:
            clock = WRONG_CLOCK if name == "three" else ""  # in all tests: leases are those of the database's clock
            processes.start_worker(name, "--boots", "1", "--wall", script=clock + HELD)
    processes.wait_for_workers()
    return processes


@pytest.fixture
def experiment(lab: Lab) -> str:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    return lab.experiment("slow")


def carried_out(lab: Lab) -> list[str]:
    """The boots that workers have begun, one line each: variant, block, process."""
    path = lab.directory / "begun"
    return path.read_text().splitlines() if path.exists() else []


def start(lab: Lab, fleet: LocalFleet, experiment: str) -> subprocess.Popen[str]:
    return lab.start("run", experiment, "--fleet", str(fleet.directory))


def hold(lab: Lab, what: str) -> Path:
    path = lab.directory / f"hold-{what}"
    path.touch()
    return path


def done(client: subprocess.Popen[str]) -> tuple[str, str]:
    out, err = client.communicate(timeout=120)
    assert client.returncode == 0, err
    return out, err


def measured(boots: list[BootRecord]) -> dict[tuple[str, int], Any]:
    return {(boot.variant, boot.block): (boot.key, boot.status, boot.samples, boot.stream) for boot in boots}


def alone(lab: Lab, experiment: str) -> tuple[list[BootRecord], Any]:
    """The boots of the same experiment without a fleet, and its report."""
    state = lab.directory / "alone"
    result = lab("run", experiment, "--state", str(state), "--json", "-q")
    assert result.status == 0
    with Store(f"sqlite:///{state}/store.sqlite") as store:
        [run] = store.runs()
        return store.boots(run.id), verdicts(result.out)


def verdicts(report: str) -> Any:
    return json.loads(report)["comparisons"]


def in_lane(name: str) -> Change:
    """The agent said hello in this lane, and measured in its units."""

    def change(boot: Path) -> None:
        stream = boot / "stream.jsonl"
        hello, *others = map(json.loads, stream.read_text().splitlines())
        for record in others:
            if record["type"] == "benchmark":
                record["unit"] = UNITS[record["unit"]]
        records = [{**hello, "lane": name}, *others]
        stream.write_text("".join(json.dumps(record) + "\n" for record in records))

    return change


def require_whole(lab: Lab, experiment: str) -> None:
    """Every boot is on record once, and measured what it measures without a fleet."""
    assert lab.cells() == ALL
    boots, _ = alone(lab, experiment)
    assert measured(lab.boots()) == measured(boots)


def test_a_fleet_measures_and_judges_what_one_machine_does(lab: Lab, fleet: LocalFleet, experiment: str) -> None:
    result = lab("run", experiment, "--fleet", str(fleet.directory), "--json", "-q")
    assert result.status == 0, result.err
    boots, expected = alone(lab, experiment)
    assert verdicts(result.out) == expected
    assert measured(lab.boots()) == measured(boots)
    assert {boot.host for boot in lab.boots()} <= {f"host-{name}" for name in NAMES}
    assert {boot.host for boot in boots} == {""}
    assert len(carried_out(lab)) == len(ALL)
    again = lab("run", experiment, "--fleet", str(fleet.directory), "-q")
    assert again.status == 0
    assert len(carried_out(lab)) == len(ALL)


def test_a_block_of_the_wall_lane_is_on_one_host_which_is_on_record(
    lab: Lab, fleet: LocalFleet, experiment: str
) -> None:
    for variant in ("baseline", "slow"):
        lab.recording.change(variant, in_lane("wall"))
    path = Path(experiment)
    path.write_text(path.read_text().replace('type = "fake"', 'type = "fake"\nlane = "wall"'))
    result = lab("run", experiment, "--fleet", str(fleet.directory), "-q")
    assert result.status == 0, result.err
    hosts: dict[int, set[str]] = {}
    for boot in lab.boots():
        hosts.setdefault(boot.block, set()).add(boot.host)
    assert sorted(hosts) == [*BLOCKS]
    assert all(len(names) == 1 and "" not in names for names in hosts.values())


def test_a_host_that_tells_one_kernel_from_itself_does_not_count(lab: Lab, fleet: LocalFleet, experiment: str) -> None:
    for variant in ("A", "B"):
        lab.recording.add(variant)
    for variant in ("A", "B", "baseline", "slow"):
        lab.recording.change(variant, in_lane("wall"))
    check = ("fleet", "check", str(fleet.directory), experiment, "--blocks", str(len(BLOCKS)))
    exact = lab(*check)
    assert exact.status == 1 and "is in the lane `model`" in exact.err
    path = Path(experiment)
    path.write_text(path.read_text().replace('type = "fake"', 'type = "fake"\nlane = "wall"'))
    nobody = lab(*check, "--host", "host-four")
    assert nobody.status == 1 and "no worker of the fleet measures in the wall lane on host-four" in nobody.err
    assert "no A/A of these hosts is on record: host-one, host-three, host-two" in run_on(lab, fleet, experiment).out
    passed = lab(*check, "--host", "host-one")
    assert passed.status == 0, passed.err
    assert passed.out.startswith("host-one: passed: no difference in ")
    lab.recording.change("B", slower("lat_syscall.null", 100))
    failed = lab(*check, "--host", "host-two", "--host", "host-three")
    assert failed.status == 2, failed.err
    assert "host-two: failed: one kernel under two names differs in lat_syscall.null " in failed.out
    shown = lab("fleet", "workers", str(fleet.directory)).out
    assert [line.split()[3] for line in shown.splitlines() if line.startswith("  A/A of ")] == [
        *("passed:", "failed:", "failed:"),
    ]
    result = run_on(lab, fleet, experiment, "--again")
    assert "not used: two: host-two failed its A/A of " in result.err
    with Store(f"sqlite:///{lab.state}/store.sqlite") as store:
        newest = store.newest()
        assert newest and {boot.host for boot in store.boots(newest)} == {"host-one"}
    with fleet.fleet.queue() as queue:
        for host in ("host-one", "host-two", "host-three"):
            queue.note_check(host, passed=True, detail="as before this test")


def run_on(lab: Lab, fleet: LocalFleet, experiment: str, *words: str) -> CommandResult:
    result = lab("run", experiment, "--fleet", str(fleet.directory), *words)
    assert result.status == 0, result.err
    return result


@pytest.mark.parametrize("moment", ["boots", "commits"])
def test_a_worker_that_is_killed_loses_nothing(lab: Lab, fleet: LocalFleet, experiment: str, moment: str) -> None:
    held = hold(lab, moment)
    client = start(lab, fleet, experiment)
    begun = lab.directory / {"boots": "begun", "commits": "committing"}[moment]
    wait_until(lambda: begun.exists() and len(begun.read_text().splitlines()) >= len(NAMES), "all workers are busy")
    fleet.kill("one")
    held.unlink()
    done(client)
    require_whole(lab, experiment)


@pytest.mark.long
def test_the_commit_of_a_worker_that_was_stopped_is_refused(lab: Lab, fleet: LocalFleet, experiment: str) -> None:
    held = hold(lab, "commits")
    client = start(lab, fleet, experiment)
    committing = lab.directory / "committing"
    wait_until(
        lambda: committing.exists() and len(committing.read_text().splitlines()) >= len(NAMES), "all workers are busy"
    )
    fleet.kill("two", signal.SIGSTOP)
    held.unlink()
    done(client)
    fleet.kill("two", signal.SIGCONT)
    refused = "another worker has taken this over; its result counts"
    wait_until(lambda: refused in fleet.log("two"), "the zombie is refused")
    require_whole(lab, experiment)


@pytest.mark.long
def test_a_run_outlives_the_scheduler(lab: Lab, fleet: LocalFleet, experiment: str) -> None:
    held = hold(lab, "boots")
    client = start(lab, fleet, experiment)
    wait_until(lambda: len(carried_out(lab)) >= len(NAMES), "all workers are busy")
    assert fleet.scheduler
    fleet.scheduler.kill()
    fleet.scheduler.wait()
    held.unlink()
    fleet.start_scheduler()
    done(client)
    assert len(carried_out(lab)) == len(ALL), "what was under way was committed without a scheduler"
    require_whole(lab, experiment)


@pytest.mark.long
def test_a_run_outlives_a_restart_of_the_database(lab: Lab, fleet: LocalFleet, experiment: str) -> None:
    held = hold(lab, "boots")
    client = start(lab, fleet, experiment)
    wait_until(lambda: len(carried_out(lab)) >= len(NAMES), "all workers are busy")
    fleet.server.stop()
    held.unlink()
    fleet.server.start()
    done(client)
    assert len(carried_out(lab)) == len(ALL), "a lease that nobody could renew is not lost"
    require_whole(lab, experiment)


def test_a_client_that_is_killed_goes_on_where_it_was(lab: Lab, fleet: LocalFleet, experiment: str) -> None:
    held = hold(lab, "boots")
    client = start(lab, fleet, experiment)
    wait_until(lambda: len(carried_out(lab)) >= len(NAMES), "all workers are busy")
    client.kill()
    client.communicate()
    held.unlink()
    done(start(lab, fleet, experiment))
    assert len(carried_out(lab)) == len(ALL), "what was under way was not done again"
    require_whole(lab, experiment)


@pytest.mark.long
def test_a_recipe_that_ends_workers_on_two_hosts_is_quarantined(lab: Lab, fleet: LocalFleet) -> None:
    lab.recording.add("killer")
    experiment = lab.experiment("killer")
    client = start(lab, fleet, experiment)
    _, err = client.communicate(timeout=120)
    assert client.returncode == 3, err
    assert "quarantined: 2 workers ended while they carried it out, on host-" in err
    dead = [name for name in NAMES if fleet.workers[name].poll() is not None]
    assert len(dead) == 2
    assert sorted(cell for cell in lab.cells() if cell[0] == "baseline") == [("baseline", block) for block in BLOCKS]
    shown = lab("fleet", "workers", str(fleet.directory))
    [subject] = [line.split()[0] for line in shown.out.splitlines() if "quarantined" in line]
    assert lab("fleet", "release", str(fleet.directory), subject).status == 0
    assert "quarantined" not in lab("fleet", "workers", str(fleet.directory)).out
    with fleet.fleet.queue() as queue:
        queue.withdraw(subject.partition("/")[0])


def test_what_nobody_offers_is_said_before_anything_starts(lab: Lab, fleet: LocalFleet) -> None:
    lab.recording.add("slow")
    experiment = Path(lab.experiment("slow"))
    experiment.write_text(experiment.read_text().replace('recording = "recording"', 'recording = "elsewhere"'))
    result = lab("run", str(experiment), "--fleet", str(fleet.directory))
    assert result.status == 1
    assert "kdyno: no worker of the fleet can do this: one: the recording" in result.err
    assert Counter(carried_out(lab)) == {}


def test_a_client_of_another_fleet_and_one_of_another_version_are_refused(
    lab: Lab, fleet: LocalFleet, experiment: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from kdyno.fleet.certificates import make_certificates

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    make_certificates(foreign)
    (foreign / "fleet.toml").write_text((fleet.directory / "fleet.toml").read_text())
    refused = lab("run", experiment, "--fleet", str(foreign))
    assert refused.status == 3
    assert "kdyno: can't reach the scheduler tls://127.0.0.1:" in refused.err
    assert "check that both sides have certificates of one fleet" in refused.err
    monkeypatch.setattr("kdyno.fleet.carriage.this_kdyno", lambda: "9.9.9 0123456789abcdef")
    skewed = lab("run", experiment, "--fleet", str(fleet.directory))
    assert skewed.status == 1
    assert "kdyno: the scheduler has another kdyno (0.1.0" in skewed.err
    assert "than this one (9.9.9 0123456789abcdef)" in skewed.err


def test_two_fleets_cannot_share_a_database(lab: Lab, fleet: LocalFleet, tmp_path: Path) -> None:
    blobs = str(tmp_path / "blobs")
    second = lab("fleet", "init", str(tmp_path / "second"), "--database", fleet.server.url, "--blobs", blobs)
    assert second.status == 1
    assert "belongs to the fleet" in second.err
    assert not (tmp_path / "second").exists()
    assert main(["fleet", "init", str(fleet.directory), "--database", fleet.server.url, "--blobs", blobs]) == 1


def test_a_host_has_one_worker_for_the_wall_lane(lab: Lab, fleet: LocalFleet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kdyno.fleet.wall_slot.DIRECTORIES", (fleet.home,))
    second = lab("worker", str(fleet.directory), "--name", "other", "--host", "host-one", "--wall")
    assert second.status == 3
    assert "another worker of this host measures in the wall lane" in second.err
