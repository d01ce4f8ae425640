"""Nothing that was finished is ever lost or done twice: Ctrl-C, kill -9, a full disk, two commands at once."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sqlite3
import subprocess
from contextlib import closing
from typing import Any

import pytest

from kdyno.store.store import Store
from tests.cli.conftest import Lab
from tests.cli.replay import BLOCKS, slower

ALL = sorted((variant, block) for variant in ("baseline", "slow") for block in BLOCKS)

STUCK = """
import signal, time
# The tests may run in a background job or under nohup, which ignore some of these.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
from kdyno.boot.fake import FakeMachine
as_recorded, count = FakeMachine.boot, 0
def boot(machine, order):
    global count
    count += 1
    if count == 4:
        print("the fourth boot has begun", flush=True)
        time.sleep(600)
    return as_recorded(machine, order)
FakeMachine.boot = boot
"""
SLOW = """
import time
from kdyno.boot.fake import FakeMachine
as_recorded = FakeMachine.boot
def boot(machine, order):
    time.sleep(0.2)
    return as_recorded(machine, order)
FakeMachine.boot = boot
"""
FULL = """
from sqlalchemy import Engine, event
@event.listens_for(Engine, "connect")
def limited(connection, _):
    connection.execute("PRAGMA max_page_count = {pages}")
"""


@pytest.fixture
def experiment(lab: Lab) -> str:
    lab.recording.add("slow", slower("lat_syscall.null", 10))
    return lab.experiment("slow")


def goes_on(lab: Lab, experiment: str, kept: int) -> None:
    """The same command does what is left, and only that."""
    assert len(lab.cells()) == kept
    orders = lab.on_boot([])
    result = lab("run", experiment)
    assert result.status == 0, result.err
    assert "unfinished" not in result.out
    assert len(orders) == len(ALL) - kept
    assert lab.cells() == ALL
    assert not list((lab.state / "boots").iterdir())
    assert "nothing to do" in lab("run", experiment).err


def test_an_interrupted_run_keeps_what_is_finished_and_goes_on(lab: Lab, experiment: str) -> None:
    lab.on_boot([None, None, None, KeyboardInterrupt()])
    result = lab("run", experiment)
    assert result.status == 130
    assert "interrupted: finished work is kept; run the same command to continue" in result.err
    assert not list((lab.state / "boots").iterdir())
    assert "3/6" in lab("runs").out
    assert "unfinished: 3 of 6 boots done" in lab("report", "latest").out
    goes_on(lab, experiment, kept=3)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_to_stop_ends_it_with_its_status_and_no_traceback(
    lab: Lab, experiment: str, number: signal.Signals
) -> None:
    child = lab.start("run", experiment, script=STUCK.replace("time.sleep(600)", "order.cancelled.wait(600)"))
    wait_until_stuck(child)
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + number
    assert "Traceback" not in err
    goes_on(lab, experiment, kept=3)


def wait_until_stuck(child: subprocess.Popen[str]) -> None:
    assert child.stdout is not None
    assert child.stdout.readline() == "the fourth boot has begun\n"


def test_kill_9_loses_only_the_boot_in_flight(lab: Lab, experiment: str) -> None:
    child = lab.start("run", experiment, script=STUCK)
    wait_until_stuck(child)
    child.kill()
    child.communicate(timeout=60)
    assert len(list((lab.state / "boots").iterdir())) == 1
    goes_on(lab, experiment, kept=3)


def test_two_runs_of_one_experiment_at_once_do_every_boot_once(lab: Lab, experiment: str) -> None:
    children = [lab.start("run", experiment, script=SLOW) for _ in range(2)]
    ends = [(*child.communicate(timeout=120), child.returncode) for child in children]
    assert [status for _, _, status in ends] == [0, 0], ends
    assert lab.cells() == ALL
    assert ends[0][0] == ends[1][0]
    assert sum("nothing to do" in err for _, err, _ in ends) == 1


def test_two_experiments_at_once_share_a_store(lab: Lab, experiment: str) -> None:
    other = lab.directory / "other.toml"
    other.write_text((lab.directory / "experiment.toml").read_text().replace('name = "replay"', 'name = "other"'))
    children = [lab.start("run", path, script=SLOW) for path in (experiment, str(other))]
    ends = [(*child.communicate(timeout=120), child.returncode) for child in children]
    assert [status for _, _, status in ends] == [0, 0], ends
    assert lab.cells() == sorted(ALL * 2)


def test_a_full_disk_is_said_and_the_run_goes_on_afterwards(
    lab: Lab, experiment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    copied = 0
    copy = shutil.copyfileobj

    def full_after_five_files(*args: Any) -> None:
        nonlocal copied
        copied += 1
        if copied > 5:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        copy(*args)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copyfileobj", full_after_five_files)
        result = lab("run", experiment)
    assert result.status == 3
    assert f"kdyno: the disk that holds {lab.state}" in result.err
    assert "hint: free some space and run the same command again: what was finished is kept" in result.err
    assert not list((lab.state / "artefacts").glob(".incoming-*"))
    goes_on(lab, experiment, kept=2)


def test_a_store_that_is_full_is_said_and_the_run_goes_on_afterwards(lab: Lab, experiment: str) -> None:
    """SQLite itself says that it is full: its file may not grow to what the whole run needs."""
    elsewhere = lab.directory / "elsewhere"
    assert lab("run", experiment, "--state", str(elsewhere)).status == 0
    with closing(sqlite3.connect(elsewhere / "store.sqlite")) as store:
        (pages,) = store.execute("PRAGMA page_count").fetchone()
    child = lab.start("run", experiment, script=FULL.format(pages=pages - 4))
    _, err = child.communicate(timeout=60)
    assert child.returncode == 3, err
    assert "is full" in err
    assert "what was finished is kept" in err
    kept = len(lab.cells())
    assert 0 < kept < len(ALL)
    goes_on(lab, experiment, kept)


def loaded_modules(lab: Lab, *words: str) -> set[str]:
    """Return the modules that a command has loaded at its end."""
    names = "import atexit, sys\natexit.register(lambda: print('loaded', *sys.modules, file=sys.stderr))"
    process = lab.start(*words, script=names)
    _, err = process.communicate()
    assert process.returncode == 0, err
    [loaded] = [line.split()[1:] for line in err.splitlines() if line.startswith("loaded ")]
    return set(loaded)


def test_a_run_with_nothing_to_do_loads_neither_exporters_nor_explanations(lab: Lab) -> None:
    experiment = lab.experiment()
    assert lab("run", experiment, "-q").status == 0
    loaded = loaded_modules(lab, "run", experiment, "-q")
    assert "kdyno.runs.run" in loaded
    assert not {"kdyno.runs.exporters", "kdyno.understand.explain.budgets", "kdyno.measure.cycles.family"} & loaded


def test_a_plan_and_a_run_on_record_are_shown_without_numpy(lab: Lab) -> None:
    experiment = lab.experiment()
    assert lab("run", experiment, "-q").status == 0
    with Store(f"sqlite:///{lab.state}/store.sqlite") as store:
        [run] = store.runs()
    for words in (("plan", experiment), ("show", run.id), ("runs",)):
        loaded = loaded_modules(lab, *words)
        assert "kdyno.store.database" in loaded
        assert not {"numpy", "scipy"} & loaded
