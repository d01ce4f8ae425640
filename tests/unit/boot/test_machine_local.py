"""The machine `local`: rounds on this host, with knobs set for each and set back after it."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from threading import Event, Timer

import pytest

from kdyno.base import packages
from kdyno.base.errors import KdynoError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootLimits, BootOrder
from kdyno.boot.host import journal
from kdyno.boot.host.core_pmu import PLACES, CorePmuMissing
from kdyno.boot.host.journal import RUNNING, journal_path, running_state
from kdyno.boot.host.turn import KnobRefused, restore, restore_all, turned, write_value
from kdyno.boot.host.words import HostLacks, NeedsBoot, values_of
from kdyno.boot.local import LocalConfig, LocalMachine, NoSuchCpus
from kdyno.kernel.recipe import Recipe, page_size_words
from kdyno.measure.guest.job import CommandBenchmark, Job, Program, TestOrder
from kdyno.measure.guest.steps import MOST_STDOUT
from kdyno.measure.workload.needs import Needs
from tests.unit.base.test_process import is_running, pids, wait_until
from tests.unit.host_specimen import BOOT_ID, put, snapshot
from tests.unit.os_release import FEDORA

THP = "sys/kernel/mm/transparent_hugepage"
SWAPPINESS = "proc/sys/vm/swappiness"
QUEUE = "sys/block/vda/queue"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with huge pages of three sizes; rounds keep their journal beside it."""
    monkeypatch.setattr(journal, "RUN_DIRECTORY", tmp_path / "run")
    host = tmp_path / "host"
    put(host, BOOT_ID, "11111111-7c71-415d-95ce-60ba27d4986e\n")
    put(host, f"{THP}/enabled", "always [madvise] never\n")
    put(host, f"{THP}/hpage_pmd_size", "2097152\n")
    put(host, f"{THP}/hugepages-64kB/enabled", "always inherit madvise [never]\n")
    put(host, f"{THP}/hugepages-1024kB/enabled", "always inherit madvise [never]\n")
    put(host, f"{THP}/hugepages-2048kB/enabled", "always [inherit] madvise never\n")
    put(host, SWAPPINESS, "60\n")
    put(host, "proc/sys/net/ipv4/tcp_rmem", "4096\t131072\t6291456\n")
    put(host, f"{QUEUE}/scheduler", "none [mq-deadline] bfq\n")
    put(host, f"{QUEUE}/read_ahead_kb", "128\n")
    return host


def round_of(
    root: Path,
    directory: Path,
    *command: str,
    words: tuple[str, ...] = (),
    total: float = 30,
    cancelled: Event | None = None,
) -> BootEnd:
    directory.mkdir()
    machine = LocalMachine(LocalConfig(limits=BootLimits(total=total)), root)
    job = Job(lane="wall", iterations=1, programs=(Program(name="command", command=command),))
    return machine.boot(BootOrder("a round", None, words, job, 1, directory, cancelled=cancelled or Event()))


def test_a_host_that_drives_no_pmu_is_refused_in_the_lane_of_the_core_pmu(root: Path) -> None:
    machine = LocalMachine(LocalConfig(lane="pmu"), root)
    with pytest.raises(CorePmuMissing, match="the kernel of this host drives none"):
        machine.describe()
    put(root, PLACES[0], "4\n")
    assert machine.describe().lane == "pmu"


@pytest.mark.parametrize(
    ("page_size", "enabled", "of_64k", "of_1m", "of_2m"),
    [
        ("4k", "never", "never", "never", "inherit"),
        ("2M", "always", "never", "never", "inherit"),
        ("always", "always", "never", "never", "inherit"),
        ("madvise", "madvise", "never", "never", "inherit"),
        ("64k", "never", "always", "never", "never"),
        ("1M", "never", "never", "always", "never"),
    ],
)
def test_a_page_size_says_what_each_size_does(
    root: Path, page_size: str, enabled: str, of_64k: str, of_1m: str, of_2m: str
) -> None:
    assert values_of(page_size_words(page_size), root) == {
        f"{THP}/enabled": enabled,
        f"{THP}/hugepages-64kB/enabled": of_64k,
        f"{THP}/hugepages-1024kB/enabled": of_1m,
        f"{THP}/hugepages-2048kB/enabled": of_2m,
    }


def test_a_kernel_with_one_size_takes_the_words_for_that(tmp_path: Path) -> None:
    put(tmp_path, f"{THP}/enabled", "always [madvise] never\n")
    assert values_of(page_size_words("4k"), tmp_path) == {f"{THP}/enabled": "never"}
    with pytest.raises(HostLacks, match="no huge pages of several sizes"):
        values_of(page_size_words("64k"), tmp_path)


@pytest.mark.parametrize(
    ("word", "error", "why"),
    [
        ("mitigations=off", NeedsBoot, "cannot be set on a running kernel"),
        ("sysctl.vm.swapiness=1", HostLacks, "/proc/sys/vm/swapiness does not exist"),
        ("sysctl.../../etc/passwd=1", NeedsBoot, "cannot be set"),
        ("sysctl.net.ipv4.conf.eth0:1.forwarding=1", NeedsBoot, "cannot be set"),
        ("cpufreq.default_governor=performance", HostLacks, "no CPU here"),
        ("block.vdb.scheduler=none", HostLacks, "/sys/block/vdb/queue/scheduler does not exist"),
        ("block.vda.scheduler=cfq", HostLacks, "vda has no cfq"),
        ("block.vda.nr_requests=4", NeedsBoot, "cannot be set"),
        ("block.../../etc.scheduler=none", NeedsBoot, "cannot be set"),
        ("block.events_dfl_poll_msecs=0", NeedsBoot, "cannot be set"),
        ("thp_anon=96K:always", HostLacks, "it has no huge pages of 96K"),
        ("thp_anon=64K:sometimes", HostLacks, "is not SIZE:MODE"),
        ("thp_anon=always", HostLacks, "is not SIZE:MODE"),
    ],
)
def test_what_this_host_can_not_be_told_is_refused_by_name(
    root: Path, word: str, error: type[KdynoError], why: str
) -> None:
    with pytest.raises(error, match=why):
        values_of([word], root)


def test_a_round_runs_with_its_knobs_set_and_sets_them_back(root: Path, tmp_path: Path) -> None:
    before = snapshot(root)
    words = Recipe(page_size="64k", sysctl={"vm.swappiness": 10, "net.ipv4.tcp_rmem": "4096 8192 16384"}).words
    files = [f"{root}/{name}" for name in (SWAPPINESS, "proc/sys/net/ipv4/tcp_rmem", f"{THP}/hugepages-64kB/enabled")]
    end = round_of(root, tmp_path / "round", "cat", *files, words=words)
    assert (end.status, end.report.steps[0].status) == ("ok", 0)
    assert end.report.steps[0].stdout == b"10\n4096 8192 16384\nalways\n"
    restored = snapshot(root)
    assert {name: content.strip() for name, content in restored.items() if "enabled" not in name} == {
        name: content.strip() for name, content in before.items() if "enabled" not in name
    }
    assert restored[f"{THP}/hugepages-64kB/enabled"].strip() == b"never"
    assert not journal_path(running_state(), RUNNING).exists()


def test_a_round_sets_a_disks_scheduler_and_read_ahead_and_sets_them_back(root: Path, tmp_path: Path) -> None:
    words = Recipe(block={"vda.scheduler": "none", "vda.read_ahead_kb": 0}).words
    end = round_of(
        root, tmp_path / "round", "cat", f"{root}/{QUEUE}/scheduler", f"{root}/{QUEUE}/read_ahead_kb", words=words
    )
    assert end.report.steps[0].stdout == b"none\n0\n"
    restored = snapshot(root)
    assert [restored[f"{QUEUE}/{name}"].strip() for name in ("scheduler", "read_ahead_kb")] == [b"mq-deadline", b"128"]


def test_how_a_command_ended_is_told_as_in_a_guest(root: Path, tmp_path: Path) -> None:
    failing = round_of(root, tmp_path / "failing", "sh", "-c", "echo before; echo broken >&2; exit 3")
    assert (failing.status, failing.report.steps[0].status, failing.report.steps[0].stderr) == ("ok", 3, b"broken\n")
    missing = round_of(root, tmp_path / "missing", "no-such-program-1234")
    assert missing.report.steps[0].status == 127 and b"no-such-program-1234" in missing.report.steps[0].stderr
    killed = round_of(root, tmp_path / "killed", "sh", "-c", "kill -9 $$")
    assert killed.report.steps[0].status == 137
    long = round_of(root, tmp_path / "long", "sh", "-c", "head -c 3000000 /dev/zero")
    assert long.report.steps[0].stdout_is_cut and len(long.report.steps[0].stdout) == MOST_STDOUT


def test_a_round_that_takes_too_long_or_is_interrupted_ends_and_its_knobs_are_set_back(
    root: Path, tmp_path: Path
) -> None:
    slow = round_of(root, tmp_path / "slow", "sleep", "60", words=("sysctl.vm.swappiness=1",), total=0.3)
    assert (slow.status, slow.reason) == ("failed", "the round took more than 0.3 s")
    cancelled = Event()
    Timer(0.3, cancelled.set).start()
    lost = round_of(root, tmp_path / "lost", "sleep", "60", words=("sysctl.vm.swappiness=1",), cancelled=cancelled)
    assert (lost.status, lost.reason) == ("lost", "interrupted")
    assert (root / SWAPPINESS).read_text() == "60\n"


def test_the_agents_tests_run_natively(root: Path, tmp_path: Path) -> None:
    job = Job(lane="wall", iterations=2, tests=(TestOrder(name="lat_pipe"), TestOrder(name="lat_syscall")))
    (tmp_path / "round").mkdir()
    end = LocalMachine(LocalConfig(), root).boot(BootOrder("a round", None, (), job, 1, tmp_path / "round"))
    assert end.status == "ok", end.reason
    assert {"lat_pipe", "lat_syscall.null"} <= {sample.benchmark for sample in end.report.samples}


def test_runs_of_a_command_are_measured_until_one_fails(root: Path, tmp_path: Path) -> None:
    def measured(name: str, script: str) -> Program:
        benchmark = CommandBenchmark(benchmark=f"{name}.step", description="a step", operations=10)
        return Program(name=name, command=("sh", "-c", script), runs=3, measured=benchmark)

    fails = measured("fails", f"mkdir {tmp_path}/first 2> /dev/null || exit 1")
    order = TestOrder(name="lat_pipe")
    job = Job(lane="wall", iterations=1, tests=(order,), programs=(fails, measured("sleeps", "sleep 0.02")))
    (tmp_path / "round").mkdir()
    end = LocalMachine(LocalConfig(), root).boot(BootOrder("a round", None, (), job, 1, tmp_path / "round"))
    assert end.status == "ok", end.reason
    assert [benchmark.name for benchmark in end.report.benchmarks] == ["lat_pipe", "fails.step", "sleeps.step"]
    taken = [(sample.benchmark, sample.iteration, sample.work) for sample in end.report.samples[1:]]
    assert taken == [("fails.step", 0, 10), *(("sleeps.step", run, 10) for run in range(3))]
    assert all(sample.elapsed and sample.elapsed > 20_000_000 for sample in end.report.samples[2:])
    assert [step.status for step in end.report.steps] == [0, 1, 0, 0, 0]


DAEMON = "(setsid sh -c 'echo $$ > {pids}; exec sleep 600' &); while [ ! -s {pids} ]; do sleep 0.01; done; {then}"
"""A program that leaves a daemon: in a session of its own, with no parent, as those that fork twice are."""


@pytest.mark.parametrize(("then", "killed", "status"), [("exit 0", 1, "ok"), ("sleep 600", 0, "failed")])
def test_no_daemon_outlives_a_round_that_ends_or_is_ended(
    root: Path, tmp_path: Path, then: str, killed: int, status: str
) -> None:
    end = round_of(root, tmp_path / "round", "sh", "-c", DAEMON.format(pids=tmp_path / "pids", then=then), total=4)
    assert (end.status, sum(end.report.left.values())) == (status, killed), end.reason
    assert not is_running(*pids(tmp_path))


def test_no_daemon_outlives_a_kdyno_that_is_killed(root: Path, tmp_path: Path) -> None:
    command = ("sh", "-c", DAEMON.format(pids=tmp_path / "pids", then="sleep 600"))
    code = f"""
        from pathlib import Path
        from tests.unit.boot.test_machine_local import round_of
        round_of(Path({str(root)!r}), Path({str(tmp_path / "round")!r}), *{command!r})
    """
    words = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(words, cwd=Path(__file__).parents[3]) as parent:
        [daemon] = pids(tmp_path)
        assert is_running(daemon)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not is_running(daemon))


@pytest.mark.parametrize(("number", "why"), [(22, "Invalid argument"), (13, "Permission denied")])
def test_a_value_that_the_kernel_refuses_or_only_root_may_set_leaves_nothing_changed(
    root: Path, tmp_path: Path, number: int, why: str
) -> None:
    before = snapshot(root)

    def write(path: Path, value: str) -> None:
        if value == "always":
            raise OSError(number, why)
        write_value(path, value)

    state = State(tmp_path / "state")
    values = {SWAPPINESS: "1", f"{THP}/enabled": "always"}
    with pytest.raises(KnobRefused, match=f"to always: {why}"), turned(state, values, root=root, write=write):
        pytest.fail("it isn't entered")
    assert {name: content.strip() for name, content in snapshot(root).items()} == {
        name: content.strip() for name, content in before.items()
    }
    assert not journal_path(state, RUNNING).exists()


def test_kill_9_at_any_moment_loses_no_knob(root: Path, tmp_path: Path) -> None:
    def values() -> dict[str, str]:
        return {path: content.decode() for path, content in snapshot(root).items()}

    state, wanted = State(tmp_path / "run"), {SWAPPINESS: "1", f"{THP}/enabled": "always"}
    program = f"""
        from pathlib import Path
        from kdyno.boot.host.turn import turned
        from kdyno.base.state import State
        from tests.unit.host_specimen import write_at_once
        state, root = State(Path({str(state.root)!r})), Path({str(root)!r})
        while True:
            with turned(state, {wanted!r}, root=root, write=write_at_once):
                print("set", flush=True)
    """
    chance = random.Random(18)
    for _ in range(10):
        child = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(program)], cwd=Path(__file__).parents[3], stdout=subprocess.PIPE
        )
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0, 0.01))
        child.send_signal(signal.SIGKILL)
        child.wait()
        child.stdout.close()
        restore(state, RUNNING, root=root)
        assert (values()[SWAPPINESS].strip(), "madvise" in values()[f"{THP}/enabled"]) == ("60", True)


def test_the_next_round_brings_back_what_a_killed_one_left(root: Path) -> None:
    def killed(path: Path, value: str) -> None:
        if value == "1":
            write_value(path, value)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), turned(running_state(), {SWAPPINESS: "1"}, root=root, write=killed):
        pytest.fail("it isn't entered")
    assert (root / SWAPPINESS).read_text() == "1\n" and journal_path(running_state(), RUNNING).exists()
    with turned(running_state(), {}, root=root):
        assert (root / SWAPPINESS).read_text() == "60\n"


@pytest.mark.usefixtures("root")
def test_restoring_without_anything_to_restore_makes_no_directory(tmp_path: Path) -> None:
    assert restore_all(State(tmp_path / "state")).turns == ()
    assert not (tmp_path / "run").exists()


def test_cpus_that_are_not_there_are_refused(root: Path) -> None:
    with pytest.raises(NoSuchCpus, match="has the CPUs 8000"):
        LocalMachine(LocalConfig(cpus=(8000,)), root).describe()


def test_a_workload_runs_on_the_cpus_that_are_named(root: Path, tmp_path: Path) -> None:
    cpu = max(os.sched_getaffinity(0))
    (tmp_path / "round").mkdir()
    machine = LocalMachine(LocalConfig(cpus=(cpu,)), root)
    asking = (sys.executable, "-c", "import os; print(os.sched_getaffinity(0))")
    job = Job(lane="wall", iterations=1, programs=(Program(name="command", command=asking),))
    end = machine.boot(BootOrder("a round", None, (), job, 1, tmp_path / "round"))
    assert end.report.steps[0].stdout.decode().strip() == f"{{{cpu}}}"
    assert len(os.sched_getaffinity(0)) == os.cpu_count() or cpu in os.sched_getaffinity(0)


def test_where_names_of_packages_are_unknown_it_is_said_and_the_workload_may_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    put(tmp_path, "os-release", FEDORA)
    monkeypatch.setattr(packages, "OS_RELEASE", tmp_path / "os-release")
    LocalMachine(LocalConfig()).provide(Needs(packages=("rt-tests",)), State(tmp_path), Talk())
    assert (
        "cannot check on this host that the workload's programs are installed: Debian's rt-tests"
        in capsys.readouterr().err
    )
