"""The machine `uml`: a kernel is a process of this host. Here it is a script that says what such a kernel says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace

import pytest

from kdyno.base.errors import KdynoError
from kdyno.boot import uml
from kdyno.boot.base import BootEnd, BootLimits, BootOrder, CpuLacks, NoShell
from kdyno.boot.host.quiet import NoTmpfs, writable_tmpfs
from kdyno.boot.pmu import PmuOutsideModelLane
from kdyno.boot.registry import read_machine
from kdyno.boot.uml import (
    NoExec,
    NoMeaning,
    NoSuchCpu,
    QemuUserMissing,
    QemuUserWithoutPlugins,
    TmpfsFull,
    UmlConfig,
    UmlMachine,
)
from kdyno.measure.guest.job import Job, TestOrder
from kdyno.measure.guest.pmu import PmuConfig
from tests.at_once import at_once
from tests.unit.base.test_process import is_running, wait_until
from tests.unit.measure.test_paths import PIPE, READ, hello, sample, whole

GOOD = "".join(f"echo {line}\n" for line in whole(PIPE))


def kernel_that(directory: Path, script: str) -> Path:
    program = directory / "linux"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return program


def boot(
    directory: Path,
    script: str,
    *,
    cancelled: Event | None = None,
    words: tuple[str, ...] = (),
    paths: tuple[str, ...] = (PIPE,),
    **settings: object,
) -> BootEnd:
    scratch = directory / "boot"
    scratch.mkdir()
    job = Job(lane="wall", iterations=3, tests=tuple(TestOrder(name=name) for name in paths))
    order = BootOrder("a boot", kernel_that(directory, script), words, job, 7, scratch, cancelled=cancelled or Event())
    return UmlMachine(UmlConfig(**settings)).boot(order)


def test_a_kernel_that_comes_to_its_end_is_ok_with_its_samples(tmp_path: Path) -> None:
    end = boot(tmp_path, GOOD)
    assert (end.status, end.reason) == ("ok", "")
    assert [sample.elapsed for sample in end.report.samples] == [5000] * 3
    assert end.conditions["clock_moved"] == end.conditions["core_shared"] == end.conditions["disturbed_paths"] == 0


def test_a_boot_whose_core_had_other_work_says_so_by_the_marks_and_keeps_what_is_left(tmp_path: Path) -> None:
    lines = [hello(2), *(sample(name, number, wide=0.4) for name in (PIPE, READ) for number in range(3))]
    script = "".join(f"echo {line}\n" for line in (*lines, "kdyno-paths done"))
    end = boot(tmp_path, script, paths=(PIPE, READ))
    assert (end.status, end.conditions["core_shared"], end.conditions["disturbed_paths"]) == ("ok", 6, 2)
    assert end.disturbance == (
        "other work was on its core, or the core's clock moved, in more than 20 % of the repetitions of "
        "pipe_ping and 1 other path"
    )


def test_a_boot_that_was_killed_is_not_called_disturbed(tmp_path: Path) -> None:
    script = "".join(f"echo {line}\n" for line in (hello(1), sample(PIPE, 0, wide=0.4)))
    end = boot(tmp_path, f"{script}kill -KILL $$")
    assert (end.status, end.disturbance, end.conditions["disturbed_paths"]) == ("lost", "", 0)


def test_a_boot_has_the_jobs_paths_its_repetitions_and_the_seed_of_the_block(tmp_path: Path) -> None:
    end = boot(tmp_path, GOOD, words=("init_on_alloc=1",), memory_mb=128)
    assert "mem=128M" in end.command
    own = ("kdyno.repetitions=3", "kdyno.seed=8", f"kdyno.paths={PIPE}", "kdyno.patience=1000000")
    assert end.command[-5:] == (*own, "init_on_alloc=1")
    assert {"nouser", "time-travel=inf-cpu"} <= set(end.command)


def test_what_is_timed_stays_on_one_cpu_and_its_memory_lies_in_tmpfs(tmp_path: Path) -> None:
    allowed = os.sched_getaffinity(0)
    policy = os.sched_getscheduler(0)
    end = boot(tmp_path, f'sleep 0.2; {GOOD}echo "$TMPDIR" $(taskset -cp $$) >&2')
    said = end.console.read_text().split()
    assert (said[0], said[-1]) == (str(writable_tmpfs("x", executable=True)), str(max(allowed)))
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == (allowed, policy), "kdyno itself stays as it was"


def test_each_boot_runs_a_copy_of_the_program_which_is_removed(tmp_path: Path) -> None:
    end = boot(tmp_path, f'{GOOD}echo "$0" >&2')
    ran = Path(end.console.read_text().strip())
    assert ran.parent == tmp_path / "boot" and not ran.exists()


@pytest.mark.parametrize(
    ("script", "status", "reason"),
    [
        ("echo 'Kernel panic - not syncing: no memory' >&2; exit 1", "failed", "panic: Kernel panic - not syncing"),
        (f"{GOOD}echo 'kernel BUG at mm/slub.c:1!' >&2", "failed", "BUG: kernel BUG at mm/slub.c:1!"),
        ("kill -SEGV $$", "failed", "ended by signal 11 (Segmentation fault)"),
        ("kill -ILL $$", "failed", "ended by signal 4 (Illegal instruction)"),
        ("exit 1", "failed", "the guest ended before the agent said hello"),
        ("kill -KILL $$", "lost", "it was killed by signal 9"),
        ("echo rubbish", "failed", "the guest ended before the agent said hello (line 1 is not the first line"),
        ("echo kdyno-paths 1 6.12 1; exit 0", "failed", "the guest ended before the agent was done"),
        ("while :; do echo x; done", "failed", "stream flooded: more than 0.01 MB"),
        ("while :; do echo x >&2; done", "failed", "console flooded: more than 0.01 MB"),
        ("sleep 60", "failed", "hung at boot: no word from the agent within 5 s"),
        ("echo kdyno-paths 1 6.12 1; sleep 60", "failed", "hung: silent for 5 s"),
    ],
)
def test_how_a_kernel_ends_is_told_as_for_a_guest(tmp_path: Path, script: str, status: str, reason: str) -> None:
    limits = BootLimits(boot=5, silence=5, console_mb=0.01, stream_mb=0.01)
    end = boot(tmp_path, script, limits=limits)
    assert (end.status, end.reason[: len(reason)]) == (status, reason)


def test_an_interrupted_boot_is_lost_and_leaves_no_process(tmp_path: Path) -> None:
    cancelled, started = Event(), tmp_path / "started"
    os.mkfifo(started)

    def interrupt() -> None:
        started.read_text()
        cancelled.set()

    Thread(target=interrupt).start()
    script = f"sleep 3600 & echo $! > {tmp_path}/child; echo started > {started}; wait"
    with at_once(120):
        end = boot(tmp_path, script, cancelled=cancelled)
    assert (end.status, end.reason) == ("lost", "interrupted")
    child = (tmp_path / "child").read_text().strip()
    wait_until(lambda: not is_running(child))


def test_a_kernel_in_a_session_of_its_own_dies_with_kdyno_even_if_that_is_killed(tmp_path: Path) -> None:
    code = f"""
from pathlib import Path
from tests.unit.boot.test_machine_uml import boot
boot(Path({str(tmp_path)!r}), "cd ..; echo $$ > new; mv new pid; exec setsid sleep 600")
"""
    with subprocess.Popen([sys.executable, "-c", code]) as kdyno:
        wait_until((tmp_path / "pid").exists)
        kernel = (tmp_path / "pid").read_text().strip()
        wait_until(lambda: os.getsid(int(kernel)) == int(kernel))
        kdyno.kill()
    wait_until(lambda: not is_running(kernel))


@pytest.mark.parametrize("word", ["mitigations=off", "nokaslr", "sysctl.vm.swappiness=1", "transparent_hugepage=never"])
def test_a_parameter_that_means_nothing_here_is_refused_by_name(word: str) -> None:
    with pytest.raises(NoMeaning, match=f"variant x has the kernel parameter {word}"):
        UmlMachine(UmlConfig()).require_cmdline((word,), "variant x")
    UmlMachine(UmlConfig()).require_cmdline(("init_on_alloc=1",), "variant x")


def test_a_cpu_that_kdyno_may_not_use_and_one_without_an_instruction_are_refused() -> None:
    with pytest.raises(NoSuchCpu, match="the CPU 8000"):
        UmlMachine(UmlConfig(cpu=8000)).describe()
    with pytest.raises(CpuLacks, match="which the machine's CPU"):
        UmlMachine(UmlConfig()).require_cpu(("no_such_flag",), "variant x")


def test_a_host_without_a_tmpfs_or_room_in_it_is_refused_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(f"tmpfs {tmp_path} tmpfs rw,noexec 0 0\n")
    with pytest.raises(NoTmpfs, match="the memory of a kernel that is a process needs a writable tmpfs"):
        writable_tmpfs(uml.NEEDS_MEMORY, mounts, executable=True)
    monkeypatch.setattr(uml, "MIB", 1 << 40)
    with pytest.raises(TmpfsFull, match="needs 256 MB there"):
        UmlMachine(UmlConfig()).describe()


def test_the_lane_wall_needs_no_plugin_and_the_lane_model_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "qemu-x86_64"
    program.write_text("#!/bin/sh\necho \"qemu: unknown option 'plugin'\" >&2; exit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert UmlMachine(UmlConfig()).describe().pmu is None
    with pytest.raises(QemuUserWithoutPlugins, match="unknown option 'plugin'") as refused:
        UmlMachine(UmlConfig(lane="model")).describe()
    assert 'choose the lane "wall"' in refused.value.advice


def test_without_qemu_the_lane_model_says_how_to_install_it_and_the_lane_wall_works(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in ("setarch", "true"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert UmlMachine(UmlConfig()).describe().lane == "wall"
    with pytest.raises(QemuUserMissing, match="qemu-x86_64 is not installed") as refused:
        UmlMachine(UmlConfig(lane="model")).describe()
    assert "qemu-user" in refused.value.advice and 'choose the lane "wall"' in refused.value.advice


def test_a_state_directory_that_no_program_may_run_from_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("os.statvfs", lambda _: SimpleNamespace(f_flag=os.ST_NOEXEC))
    with pytest.raises(NoExec, match="boot is mounted noexec"):
        boot(tmp_path, GOOD)


def test_settings_that_contradict_each_other_are_refused() -> None:
    with pytest.raises(PmuOutsideModelLane):
        UmlMachine(UmlConfig(pmu=PmuConfig()))
    with pytest.raises(NoShell):
        UmlMachine(UmlConfig()).converse(None)  # type: ignore[arg-type]
    for written in ({"memory_mb": 1}, {"accel": "kvm"}, {"lane": "walls"}):
        with pytest.raises(KdynoError):
            read_machine({"type": "uml", **written}, "--machine")
