"""Machines: how ends of boots are told apart, limits, the initramfs, QEMU's command line, the proof of KVM."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Literal

import pytest

import kdyno.boot.kvm
from kdyno.base.errors import KdynoError
from kdyno.boot.base import BootLimits, BootOrder
from kdyno.boot.console import diagnose
from kdyno.boot.ending import Exit, verdict_on_boot
from kdyno.boot.fake import FakeConfig, FakeMachine, NoRecording
from kdyno.boot.initramfs import directory, file, initramfs, link, newc
from kdyno.boot.kvm import proof_rom, why_not_kvm
from kdyno.boot.qemu import KvmUnusable, QemuMachine, TooSmallForHugePages
from kdyno.boot.qemu_config import KvmInModelLane, ModelLaneIsUniprocessor, QemuConfig
from kdyno.boot.registry import BadMachine, read_machine
from kdyno.boot.watch import Watch
from kdyno.kernel.recipe import page_size_words
from kdyno.measure.guest.job import Job, Program
from kdyno.measure.guest.loads import find_loads
from kdyno.measure.guest.stream import AgentReport
from kdyno.measure.guest.stream_records import HelloRecord

HELLO = HelloRecord(v=1, type="hello", agent="0", kernel="6", lane="model", icount_shift=5, cpus=1, init=True)
DONE = AgentReport(hello=HELLO, complete=True)
BEGUN = AgentReport(hello=HELLO, fault="agent record 7 is truncated")
SILENT = AgentReport(fault="no stream")


@pytest.mark.parametrize(
    ("console", "reason"),
    [
        ("[    0.5] Kernel panic - not syncing: No working init found.  Try passing", "panic: Kernel panic - not"),
        (
            "[    1.0] kernel BUG at mm/slub.c:553!\n[    1.1] Kernel panic - not syncing: Fatal",
            "BUG: kernel BUG at mm",
        ),
        ("BUG: kernel NULL pointer dereference, address: 0000000000000000", "oops: BUG: kernel NULL"),
        ("VFS: Unable to mount root fs on unknown-block(0,0)\nKernel panic - not", "root not mounted: Unable to mount"),
        ("Out of memory: Killed process 17 (x) total-vm:1kB", "out of memory: Out of memory: Killed"),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [x:1]", "soft lock-up: watchdog: BUG: soft"),
        ("INFO: task x:1 blocked for more than 120 seconds.", "hung task: INFO: task x:1"),
        ("rcu: INFO: rcu_sched self-detected stall on CPU", "RCU stall: rcu: INFO"),
        ("kdyno-agent: no virtio port", "agent: kdyno-agent: no virtio port"),
    ],
)
def test_a_console_names_what_the_kernel_died_of(console: str, reason: str) -> None:
    assert (diagnose(console) or "").startswith(reason)


def test_a_healthy_console_gives_no_reason() -> None:
    assert diagnose("Linux version 6.12\nreboot: Restarting system\n") is None


def test_control_characters_of_a_guest_do_not_reach_the_reason() -> None:
    assert diagnose("Kernel panic - not syncing: \x1b[31mred\x07") == "panic: Kernel panic - not syncing: [31mred"


@pytest.mark.parametrize(
    ("left", "report", "console", "status", "reason"),
    [
        (Exit(), DONE, "", "ok", ""),
        (Exit(), DONE, "kernel BUG at x.c:1!", "failed", "BUG: kernel BUG at x.c:1!"),
        (Exit(lost="QEMU was killed by signal 9"), BEGUN, "Kernel panic - not syncing", "lost", "QEMU was killed"),
        (Exit(stopped="hung: silent"), BEGUN, "", "failed", "hung: silent"),
        (Exit(stopped="hung: silent"), BEGUN, "Kernel panic - not syncing: x", "failed", "panic: "),
        (Exit(), BEGUN, "", "failed", "agent record 7 is truncated"),
        (Exit(), SILENT, "", "failed", "the guest ended before the agent said hello"),
        (Exit(), AgentReport(hello=HELLO), "", "failed", "the guest ended before the agent was done"),
    ],
)
def test_every_boot_ends_ok_failed_or_lost(
    tmp_path: Path, left: Exit, report: AgentReport, console: str, status: str, reason: str
) -> None:
    path = tmp_path / "console.log"
    path.write_text(console)
    ending = verdict_on_boot(left, report, path)
    assert ending[0] == status
    assert ending[1].startswith(reason)


def test_a_boot_without_the_sysctl_that_was_asked_for_has_failed(tmp_path: Path) -> None:
    path = tmp_path / "console.log"
    path.write_text("[    0.7] Failed to set sysctl parameter 'vm.swapiness=1': parameter not found\r\n")
    assert verdict_on_boot(Exit(), DONE, path) == (
        "failed",
        "setting refused: Failed to set sysctl parameter 'vm.swapiness=1': parameter not found",
    )


def test_programs_may_be_silent_for_as_long_as_a_step_may_take() -> None:
    slow, quick = (Program(name="x", command=("true",), seconds=seconds) for seconds in (900, 10))
    limits = BootLimits()
    assert limits.for_programs([]) == limits
    assert limits.for_programs([quick]).silence == limits.silence
    assert limits.for_programs([quick, slow]).silence == 900
    assert BootLimits(total=600).for_programs([slow]).silence == 600
    assert BootLimits(silence=1200).for_programs([slow]).silence == 1200


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_boot_that_never_says_hello_breaks_the_boot_limit(tmp_path: Path) -> None:
    clock = Clock()
    watch = Watch(tmp_path / "c", tmp_path / "s", BootLimits(boot=10, silence=100), clock)
    clock.now = 9
    assert watch.broken_limit() is None
    clock.now = 11
    assert watch.broken_limit() == "hung at boot: no word from the agent within 10 s"


def test_a_boot_that_falls_silent_is_ended_and_one_that_talks_is_not(tmp_path: Path) -> None:
    clock, stream = Clock(), tmp_path / "s"
    watch = Watch(tmp_path / "c", stream, BootLimits(boot=10, silence=20), clock)
    for now in (5, 20, 35):
        clock.now = now
        stream.write_text("x" * now)
        assert watch.broken_limit() is None
    assert watch.ready == 5
    clock.now = 56
    assert watch.broken_limit() == "hung: silent for 20 s"


def test_a_console_that_floods_is_ended(tmp_path: Path) -> None:
    console = tmp_path / "c"
    console.write_bytes(b"x" * 2_000_000)
    assert (Watch(console, tmp_path / "s", BootLimits(console_mb=1)).broken_limit() or "").startswith("console flooded")


def test_the_initramfs_is_an_archive_that_cpio_reads_and_the_same_each_time(tmp_path: Path) -> None:
    entries = [directory("bin"), file("bin/tool", b"hello"), link("bin/sh", "tool")]
    archive = newc(entries)
    assert archive == newc(entries)
    subprocess.run(["busybox", "cpio", "-idm"], input=archive, cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "bin" / "tool").read_bytes() == b"hello"
    assert (tmp_path / "bin" / "sh").readlink() == Path("tool")


def order(tmp_path: Path, **more: object) -> BootOrder:
    settings = {
        "name": "x",
        "kernel": Path("/k"),
        "cmdline": ("a=b",),
        "job": Job(lane="model", iterations=1),
        "seed": 9,
    }
    return BootOrder(**(settings | {"directory": tmp_path} | more))  # type: ignore[arg-type]


def test_the_model_lane_runs_on_tcg_with_icount_a_seed_and_no_host_clock(tmp_path: Path) -> None:
    machine = QemuMachine(QemuConfig())
    command = machine.command(order(tmp_path), Path("/i"), serial="null", stream=Path("/s"))
    words = " ".join(command)
    assert "-accel tcg" in words
    assert "-icount shift=5,sleep=off,align=off" in words
    assert "-seed 9" in words
    assert "clock=vm" in words
    append = command[command.index("-append") + 1]
    assert " nokaslr idle=poll nolapic_timer no_timer_check " in append and append.endswith(" a=b")


@pytest.mark.parametrize(("platform", "transport"), [("microvm", "virtio-mmio"), ("q35", "virtio-pci")])
def test_in_the_model_lane_no_other_thread_serves_virtio(
    tmp_path: Path, platform: Literal["microvm", "q35"], transport: str
) -> None:
    command = QemuMachine(QemuConfig(lane="model", platform=platform)).command(
        order(tmp_path), Path("/i"), serial="null", stream=Path("/s")
    )
    assert f"-global {transport}.ioeventfd=off" in " ".join(command)


def test_a_microvm_alone_ticks_without_the_local_apics_timer(tmp_path: Path) -> None:
    for config in (QemuConfig(platform="q35"), QemuConfig(lane="wall", accel="tcg")):
        command = QemuMachine(config).command(order(tmp_path), Path("/i"), serial="null", stream=Path("/s"))
        assert "nolapic_timer" not in " ".join(command)
        assert ("idle=poll" in " ".join(command)) == (config.lane == "model")


def test_under_tcg_a_guest_of_the_wall_lane_is_told_how_fast_the_hosts_counter_runs(tmp_path: Path) -> None:
    def words(config: QemuConfig) -> str:
        return " ".join(QemuMachine(config).command(order(tmp_path), Path("/i"), serial="null", stream=Path("/s")))

    assert re.search(r"tsc=reliable tsc_early_khz=[0-9]{6,8}\b", words(QemuConfig(lane="wall", accel="tcg")))
    assert "tsc" not in words(QemuConfig()).replace("-tsc-deadline", "")


def test_only_a_guest_that_runs_commands_has_applets() -> None:
    tools = [link("bin/sh", "busybox"), link("bin/cat", "busybox")]
    tests = Job(lane="model", icount_shift=5, iterations=7)
    assert b"bin/sh" in initramfs(tools, tests) and b"bin/cat" not in initramfs(tools, tests)
    programs = (Program(name="x", command=("cat",)),)
    for job in (tests.model_copy(update={"programs": programs}), tests.model_copy(update={"interactive": True})):
        assert b"bin/cat" in initramfs(tools, job)


def test_only_a_guest_whose_command_names_the_loads_has_them() -> None:
    tests = Job(lane="model", icount_shift=5, iterations=7)
    for words, has_them in {
        ("cat",): False,
        ("kdyno-loads", "sieve"): True,
        ("sh", "-c", "kdyno-loads fft"): True,
    }.items():
        archive = initramfs([], tests.model_copy(update={"programs": (Program(name="x", command=words),)}))
        assert (find_loads().read_bytes() in archive) == has_them
    assert b"kdyno-loads" not in initramfs([], tests)


def test_a_comma_in_a_path_does_not_begin_another_option_of_qemu(tmp_path: Path) -> None:
    command = QemuMachine(QemuConfig()).command(order(tmp_path), Path("/i"), serial="null", stream=Path("/a,b/s"))
    assert "file,id=agent,path=/a,,b/s" in command


@pytest.mark.parametrize(
    ("config", "error"),
    [(QemuConfig(accel="kvm"), KvmInModelLane), (QemuConfig(cpus=2), ModelLaneIsUniprocessor)],
)
def test_what_the_model_lane_cannot_be_is_refused(config: QemuConfig, error: type[KdynoError]) -> None:
    with pytest.raises(error):
        QemuMachine(config)


@pytest.mark.parametrize("kind", ["qemu", "uml"])
def test_guests_and_kernels_that_are_processes_are_refused_in_the_lane_of_the_core_pmu(kind: str) -> None:
    with pytest.raises(BadMachine, match="`lane`: 'model' or 'wall' is expected"):
        read_machine({"type": kind, "lane": "pmu"}, "[machine]")


def test_a_fall_back_to_tcg_is_the_first_thing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kdyno.boot.qemu, "why_not_kvm", lambda _qemu: "it hung")
    machine = QemuMachine(QemuConfig(lane="wall"))
    assert machine.accel == "tcg"
    assert machine._notices()[0].startswith("KVM cannot be used here (it hung); the wall lane runs on TCG")


def test_kvm_that_was_demanded_and_hangs_is_an_error_not_a_fall_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kdyno.boot.qemu, "why_not_kvm", lambda _qemu: "it hung")
    with pytest.raises(KvmUnusable, match="it hung"):
        QemuMachine(QemuConfig(lane="wall", accel="kvm")).accel  # noqa: B018


def test_the_proof_of_kvm_is_what_its_source_assembles_to(tmp_path: Path) -> None:
    source = Path(kdyno.boot.kvm.__file__).parent.parent / "data" / "kvm-proof.S"
    subprocess.run(["as", "--64", "-o", tmp_path / "o", source], check=True)
    subprocess.run(["objcopy", "-O", "binary", tmp_path / "o", tmp_path / "rom"], check=True)
    assert (tmp_path / "rom").read_bytes() == proof_rom()


def test_the_proof_of_kvm_comes_through_where_the_processor_is_sound() -> None:
    assert why_not_kvm("qemu-system-x86_64", accel="tcg", limit=20) is None


def test_a_proof_that_takes_too_long_is_no_proof() -> None:
    assert "hung" in (why_not_kvm("qemu-system-x86_64", accel="tcg", limit=-100) or "")


def test_a_recording_is_found_by_variant_and_block_and_judged_like_a_boot(tmp_path: Path) -> None:
    recorded = tmp_path / "recording" / "v" / "3"
    recorded.mkdir(parents=True)
    hello = HELLO.model_dump_json(exclude_none=True)
    (recorded / "stream.jsonl").write_text(hello + "\n" + json.dumps({"v": 1, "type": "end", "records": 1}) + "\n")
    machine = FakeMachine(FakeConfig(type="fake", recording=tmp_path / "recording"))
    here = tmp_path / "boot"
    here.mkdir()
    assert machine.boot(order(here, variant="v", block=3)).status == "ok"
    (recorded / "pmu.kpmu").write_bytes(b"counts")
    pmu = machine.boot(order(here, variant="v", block=3)).pmu
    assert pmu and pmu.parent == here and pmu.read_bytes() == b"counts"
    with pytest.raises(NoRecording, match="v, block 4"):
        machine.boot(order(here, variant="v", block=4))


def test_huge_pages_that_linux_turns_off_in_a_small_guest_are_refused_before_it_boots() -> None:
    words = {size: page_size_words(size) for size in ("4k", "64k", "2M", "always", "madvise")}
    small, large = (QemuMachine(QemuConfig(memory_mb=memory)) for memory in (512, 1024))
    for size in ("2M", "always", "madvise"):
        large.require_cmdline(words[size], "variant large")
        with pytest.raises(TooSmallForHugePages, match="variant large: a guest with 512 MB ignores `transparent_huge"):
            small.require_cmdline(words[size], "variant large")
    for size in ("4k", "64k"):
        small.require_cmdline(words[size], "variant small")
