"""The machine `metal`: a box behind ssh, which may drop, hang, be full, be another's, or print anything."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from threading import Event
from types import SimpleNamespace

import pytest

from kdyno.base.errors import KdynoError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootEnd, BootLimits
from kdyno.boot.host.core_pmu import DEVICES, PLACES, CorePmuMissing
from kdyno.boot.metal import box as box_module
from kdyno.boot.metal import lease as lease_module
from kdyno.boot.metal import way_back
from kdyno.boot.metal.box import BoxLacks, BoxOfOtherArchitecture, BoxState, SilenceNotice
from kdyno.boot.metal.facts import copy_files
from kdyno.boot.metal.lease import BoxHeld
from kdyno.boot.metal.machine import MetalMachine, PackagesMissing
from kdyno.boot.metal.settings import MetalConfig
from kdyno.boot.metal.ssh import (
    BoxFailed,
    BoxFull,
    BoxUnreachable,
    BoxUntrusted,
    NotLetIn,
    NotRoot,
    Ssh,
    UnknownHostKey,
)
from kdyno.boot.metal.way_back import BoxGone, ResetFailed
from kdyno.boot.platforms import KernelNotStartable
from kdyno.boot.registry import BadMachine, read_machine
from kdyno.measure.guest.job import Job, Program, TestOrder
from kdyno.measure.workload.needs import Needs
from tests.at_once import at_once
from tests.unit.boot.fake_box import OWN_WORDS, RELEASE, FakeBox, order


def outputs(end: BootEnd) -> list[bytes]:
    return [step.stdout.strip() for step in end.report.steps]


def test_a_boot_starts_the_kernel_measures_and_brings_the_own_kernel_back(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    end = machine.boot(order(tmp_path, "mitigations=off"))
    assert (end.status, outputs(end)) == ("ok", [b"hello"])
    words = box.text("loaded").split()
    assert words[:4] == ["root=PARTUUID=0f0f-02", "ro", "quiet", "panic=10"], "without an initrd there are no UUIDs"
    assert "mitigations=off" in words
    assert words[-1].startswith("kdyno.boot=")
    assert box.text("proc/cmdline") == OWN_WORDS
    assert "Linux version" in end.console.read_text()


def test_a_kernel_with_modules_on_the_box_gets_the_initrd_of_the_box(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    (box.root / "lib/modules" / RELEASE).mkdir(parents=True)
    box.put(f"boot/initrd.img-{RELEASE}", "")
    assert machine.boot(order(tmp_path)).status == "ok"
    assert f"--initrd {box.root}/boot/initrd.img-{RELEASE}" in box.text("kexec")
    assert box.text("loaded").startswith("root=UUID=1234-abcd ro quiet panic=10")


def test_the_box_has_none_of_kdynos_files_when_the_lease_ends(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    machine.boot(order(tmp_path))
    assert {"agent", "lease", "lock"} < set(box.stored)
    machine.way_back.lease.release()
    assert box.stored == []


def test_ssh_asks_nothing_and_accepts_no_unknown_key(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    machine.boot(order(tmp_path))
    for call in box.calls():
        options = [value for word, value in pairwise(call) if word == "-o"]
        assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "ForwardAgent=no"} <= set(options)


@pytest.mark.parametrize(
    ("message", "error"),
    [
        ("No ED25519 host key is known for box.\r\nHost key verification failed.", UnknownHostKey),
        ("@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed.", UnknownHostKey),
        ("root@box: Permission denied (publickey).", NotLetIn),
        ("ssh: Could not resolve hostname box: Name or service not known", BoxUnreachable),
        ("", BoxUnreachable),
    ],
)
def test_a_box_that_ssh_does_not_reach_is_refused_with_the_reason(
    machine: MetalMachine, box: FakeBox, message: str, error: type[KdynoError]
) -> None:
    box.plan({"in": "", "message": message})
    with pytest.raises(error) as caught:
        machine.describe()
    assert "box" in str(caught.value)


def test_a_user_without_root_is_refused(machine: MetalMachine, box: FakeBox) -> None:
    box.put("user", "jane\n")
    with pytest.raises(NotRoot, match="jane may not use sudo"):
        machine.describe()


def test_a_user_with_sudo_is_root(machine: MetalMachine, box: FakeBox) -> None:
    box.put("user", "jane\n")
    box.put("sudo", "")
    assert machine.describe().facts["cpu"] == "AMD EPYC 9R14"
    assert box.calls()[-1][-1].startswith("sudo -n sh -c ")


def test_a_box_of_another_architecture_is_refused(machine: MetalMachine, box: FakeBox) -> None:
    box.put("architecture", "aarch64\n")
    with pytest.raises(BoxOfOtherArchitecture, match="aarch64"):
        machine.describe()


@pytest.mark.parametrize(
    ("file", "content", "missing"),
    [
        ("target", "/var\n", "/var/lib on its root file system"),
        ("proc/sys/kernel/kexec_load_disabled", "1\n", "kexec_load_disabled is 1"),
    ],
)
def test_a_box_that_cannot_start_kernels_is_refused(
    machine: MetalMachine, box: FakeBox, file: str, content: str, missing: str
) -> None:
    box.put(file, content)
    with pytest.raises(BoxLacks, match=missing):
        machine.describe()


def test_a_box_that_drives_no_pmu_is_refused_in_the_lane_of_the_core_pmu(box: FakeBox) -> None:
    counting = MetalMachine(MetalConfig(host="box", lane="pmu"))
    with pytest.raises(CorePmuMissing, match="the kernel of box drives none") as refused:
        counting.describe()
    assert 'set lane = "wall" in [machine]' in refused.value.advice
    assert box.stored == []


@pytest.mark.parametrize("device", ["cpu", "cpu_core"])
def test_a_box_that_drives_a_pmu_has_the_lane_of_the_core_pmu(box: FakeBox, device: str) -> None:
    box.put("copied", f"{(box.root / 'copied').read_text()}/{DEVICES}/{device}/type:4\n")
    assert MetalMachine(MetalConfig(host="box", lane="pmu")).describe().lane == "pmu"


@pytest.mark.skipif(any(Path("/", place).exists() for place in PLACES), reason="this host drives a PMU")
def test_a_kernel_that_drives_no_pmu_fails_its_boot_before_anything_is_measured(
    machine: MetalMachine, tmp_path: Path
) -> None:
    job = Job(lane="pmu", iterations=1, tests=(TestOrder(name="lat_syscall"),))
    end = machine.boot(replace(order(tmp_path), job=job))
    assert end.status == "failed"
    assert end.reason.startswith("agent: kdyno-agent: lane pmu: perf_event_open(): E")
    assert end.report.benchmarks == ()


def test_an_image_that_is_not_a_kernel_for_x86_is_refused_before_the_box_restarts(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    boot = order(tmp_path)
    assert boot.kernel is not None
    boot.kernel.write_bytes(b"\x7fELF" + bytes(0x4000))
    with pytest.raises(KdynoError):
        machine.boot(boot)
    assert box.text("restarts") == "0"


def test_a_full_disk_is_reported_and_nothing_incomplete_stays(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    cat = "#!/bin/sh\n[ $# = 0 ] && [ ! -t 0 ] && /bin/head -c 100 && echo 'cat: write error: No space left on device' "
    box.put("bin/cat", cat + '>&2 && exit 1\nexec /bin/cat "$@"\n').chmod(0o755)
    with pytest.raises(BoxFull):
        machine.boot(order(tmp_path))
    assert "agent.part" not in box.stored
    assert "agent" not in box.stored
    assert box.text("restarts") == "0"


def test_a_copy_that_is_cut_short_is_not_used(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    box.put("bin/cat", '#!/bin/sh\n[ $# = 0 ] && exec /bin/head -c 100\nexec /bin/cat "$@"\n').chmod(0o755)
    with pytest.raises(BoxFailed, match="the copy is cut short"):
        machine.boot(order(tmp_path))


def test_a_kernel_that_the_box_refuses_is_an_error_and_the_box_stays_as_it_was(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    box.put("refuse", "kexec_file_load(): EPERM")
    with pytest.raises(BoxFailed, match="EPERM"):
        machine.boot(order(tmp_path))
    assert box.text("restarts") == "0"


def test_a_kernel_that_panics_at_boot_fails_and_the_run_can_go_on(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    box.put("after_kexec", "own\n")
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("failed", "it did not come up: the box restarted into its own kernel")


def test_a_kernel_that_hangs_at_boot_is_reset_by_the_users_command(box: FakeBox, tmp_path: Path) -> None:
    box.put("after_kexec", "hang\n")
    reset = box.put("reset", f'#!/bin/sh\nrm -f "{box.root}/down"\n"{box.root}/bin/systemctl" reboot by reset\n')
    reset.chmod(0o755)
    machine = MetalMachine(MetalConfig(host="box", reset=(str(reset),), limits=BootLimits(boot=0.5)))
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("failed", "hung at boot: no answer by ssh within 0.5 s")
    assert "reboot by reset" in box.text("systemctl")
    machine.way_back.lease.release()


def test_a_box_that_does_not_come_back_is_reported_and_left(box: FakeBox, tmp_path: Path) -> None:
    box.put("after_kexec", "hang\n")
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=0.5)))
    with pytest.raises(BoxGone, match="it was left as it is") as caught:
        machine.boot(order(tmp_path))
    assert "switch it off and on" in caught.value.advice


def talk_that_keeps(monkeypatch: pytest.MonkeyPatch) -> tuple[Talk, list[str]]:
    """Return a talk, and the list of what it says."""
    talk, said = Talk(quiet=True), list[str]()
    monkeypatch.setattr(talk, "say", said.append)
    monkeypatch.setattr(talk, "warn", said.append)
    return talk, said


def test_a_silent_box_is_reported_long_before_it_is_given_up(
    box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(way_back, "SILENT_SECONDS", 0.3)
    box.put("after_kexec", "hang\n")
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=2.0)))
    machine.way_back.talk, said = talk_that_keeps(monkeypatch)
    with pytest.raises(BoxGone):
        machine.boot(order(tmp_path))
    assert said[0].startswith("box has not answered for ")
    assert re.search(r"waiting up to [0-2] s more$", said[0])


@pytest.mark.usefixtures("box")
def test_a_silence_as_long_as_that_of_the_last_restart_is_not_reported_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(way_back, "SILENT_SECONDS", 0.3)
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=20)))
    machine.way_back.talk, said = talk_that_keeps(monkeypatch)
    look, now = machine.box.look, [0.0]
    silent_until = [0.0]

    def look_later(seconds: float = 60.0) -> BoxState:
        now[0] += 0.1
        if now[0] < silent_until[0]:
            raise BoxUnreachable(host="box", why="No route to host")
        return look(seconds)

    clock = SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None)
    for module in (box_module, way_back):
        monkeypatch.setattr(module, "time", clock)
    monkeypatch.setattr(machine.box, "look", look_later)
    for _ in range(2):
        silent_until[0] = now[0] + 1.0
        assert machine.way_back.wait(lambda _: True, 20, lambda: False) is not None
    assert len(said) == 1


def test_no_look_is_so_long_that_a_silence_is_reported_late(
    machine: MetalMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, looks = [0.0], list[float]()

    def look(seconds: float = 60.0) -> BoxState:
        looks.append(seconds)
        now[0] += seconds
        raise BoxUnreachable(host="box", why="no answer")

    monkeypatch.setattr(machine.box, "look", look)
    monkeypatch.setattr(box_module, "time", SimpleNamespace(monotonic=lambda: now[0], sleep=lambda _: None))
    silences = list[float]()
    notice = SilenceNotice(way_back.SILENT_SECONDS, lambda silence, _: silences.append(silence))
    assert machine.box.wait(lambda _: True, 300, silence=notice) is None
    assert len(silences) == 1
    assert silences[0] <= 60
    assert max(looks) <= box_module.LONGEST_LOOK_SECONDS


def test_an_interrupt_ends_the_wait_for_a_silent_box(
    box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    box.put("after_kexec", "hang\n")
    cancelled = Event()
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=300)))
    machine.way_back.talk, said = talk_that_keeps(monkeypatch)
    threading.Thread(target=_set_when, args=((box.root / "down").exists, cancelled), daemon=True).start()
    with at_once(120):
        end = machine.boot(order(tmp_path, cancelled=cancelled))
    assert (end.status, end.reason) == ("lost", "interrupted")
    assert (
        said[-1] == "box does not answer: it may still run the kernel of this boot; a restart brings its own one back"
    )


def test_a_reset_that_fails_is_reported_with_its_message(box: FakeBox, tmp_path: Path) -> None:
    box.put("after_kexec", "hang\n")
    command = ("sh", "-c", "echo no BMC there >&2; exit 4")
    machine = MetalMachine(MetalConfig(host="box", reset=command, limits=BootLimits(boot=0.5)))
    with pytest.raises(ResetFailed, match="no BMC there"):
        machine.boot(order(tmp_path))


def test_a_kernel_that_another_one_answers_for_is_lost(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    box.put("version", "#2 SMP somebody else's\n")
    end = machine.boot(order(tmp_path))
    assert end.status == "lost"
    assert "#2 SMP somebody else's" in end.reason


def test_a_connection_that_breaks_in_a_measurement_loses_the_boot(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    box.plan({"in": "do job.json", "after": "drop"})
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("lost", "the connection to the box broke; its kernel still runs")


def test_a_panic_in_a_measurement_fails_the_boot(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    box.plan({"in": "do job.json", "after": "panic"})
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == (
        "failed",
        "the kernel ended in the middle of the measurement: the box has restarted",
    )


def test_a_box_that_loses_its_network_in_a_measurement_is_reset(box: FakeBox, tmp_path: Path) -> None:
    box.plan({"in": "do job.json", "after": "down"})
    reset = ("sh", "-c", f'rm -f "{box.root}/down"; "{box.root}/bin/systemctl" reboot')
    machine = MetalMachine(MetalConfig(host="box", reset=reset, limits=BootLimits(boot=5)))
    end = machine.boot(order(tmp_path))
    assert end.status == "failed"
    assert end.reason.startswith("hung, or without network")
    machine.way_back.lease.release()


def test_a_workload_that_is_silent_is_ended(box: FakeBox, tmp_path: Path) -> None:
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=3, silence=0.5)))
    end = machine.boot(order(tmp_path, program=Program(name="command", command=("sleep", "100"))))
    assert (end.status, end.reason) == ("failed", "hung: silent for 0.5 s")
    assert box.text("proc/cmdline") == OWN_WORDS
    machine.way_back.lease.release()


def test_a_flood_of_records_is_cut(box: FakeBox, tmp_path: Path) -> None:
    box.plan({"in": "do job.json", "output": "x" * 100_000, "times": 50})
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=3, stream_mb=1)))
    boot = order(tmp_path)
    end = machine.boot(boot)
    assert end.status == "failed"
    assert end.stream.stat().st_size <= 1_000_000
    machine.way_back.lease.release()


@pytest.mark.parametrize("text", ["", "boot_id x\n", "\x1b[2J" * 100, "boot_id " + "0" * 99_000])
def test_a_box_that_prints_something_else_is_not_trusted(machine: MetalMachine, box: FakeBox, text: str) -> None:
    box.plan({"in": "boot_id %s", "output": text})
    with pytest.raises(BoxUntrusted) as caught:
        machine.describe()
    assert "\x1b" not in str(caught.value)


def test_a_box_that_prints_without_end_is_not_trusted(machine: MetalMachine, box: FakeBox) -> None:
    box.plan({"in": "boot_id %s", "output": "y" * 1000, "times": 1000})
    with pytest.raises(BoxUntrusted, match="more than 100,000 bytes"):
        machine.describe()


def test_a_box_that_never_answers_is_given_up(box: FakeBox) -> None:
    box.plan({"in": "sleepy"})
    with pytest.raises(BoxUnreachable, match=r"no answer within 0\.3 s"):
        Ssh("box").run(("sleepy",), seconds=0.3)


def test_facts_of_other_paths_than_the_requested_ones_are_ignored(box: FakeBox, tmp_path: Path) -> None:
    lines = ["/proc/../../evil:x", "/etc/shadow:root", "/proc/meminfo:MemTotal: 4096 kB", "no path", "/sys/a/b:c"]
    box.put("copied", "\n".join(lines) + "\n")
    target = tmp_path / "copied"
    copy_files(Ssh("box"), ("proc/meminfo", "sys/*"), target)
    files = sorted(str(path.relative_to(target)) for path in target.rglob("*") if path.is_file())
    assert files == ["proc/meminfo"]


def test_two_kdynos_do_not_share_a_box(machine: MetalMachine, box: FakeBox) -> None:  # noqa: ARG001
    machine.way_back.lease.take()
    other = MetalMachine(MetalConfig(host="box"))
    with pytest.raises(BoxHeld, match=rf"another kdyno \(\S+@\S+, process {os.getpid()}\)"):
        other.way_back.lease.take()


def test_a_lease_whose_holder_died_is_taken_over(machine: MetalMachine, box: FakeBox) -> None:
    machine.way_back.lease.take()
    machine.way_back.lease.drop()
    assert "lease" in box.stored
    other = MetalMachine(MetalConfig(host="box"))
    other.way_back.lease.take()
    with pytest.raises(BoxHeld):
        machine.way_back.lease.take()
    other.way_back.lease.release()


def test_after_a_restart_the_box_waits_for_the_holder_of_its_lease(machine: MetalMachine, box: FakeBox) -> None:
    machine.way_back.lease.take()
    machine.way_back.lease.drop()
    box.put("proc/uptime", "17.33 2.00\n")
    other = MetalMachine(MetalConfig(host="box"))
    with pytest.raises(BoxHeld, match="it restarted just now, and waits 283 s"):
        other.way_back.lease.take()
    machine.way_back.lease.take()


def test_after_a_restart_the_lease_of_a_process_that_has_ended_here_is_taken_over(
    machine: MetalMachine, box: FakeBox
) -> None:
    machine.way_back.lease.take()
    machine.way_back.lease.drop()
    box.put("proc/uptime", "17.33 2.00\n")
    place = Path(f"{box.root}{box_module.DIRECTORY}/lease")
    ended = subprocess.Popen(["true"])
    ended.wait()
    place.write_text(place.read_text().replace(f'"pid": {os.getpid()}', f'"pid": {ended.pid}'))
    other = MetalMachine(MetalConfig(host="box"))
    other.way_back.lease.take()
    other.way_back.lease.release()


def test_no_clock_of_the_box_decides_a_lease(machine: MetalMachine, box: FakeBox) -> None:
    box.put("bin/date", "#!/bin/sh\nexit 1\n").chmod(0o755)
    machine.way_back.lease.take()
    assert "date" not in lease_module.HOLD
    assert set(box.stored) == {"lease", "lock"}


def test_a_hostile_file_of_a_lease_is_only_an_unknown_holder(machine: MetalMachine, box: FakeBox) -> None:
    machine.way_back.lease.take()
    Path(f"{box.root}{box_module.DIRECTORY}/lease").write_text('{"holder": ["\x1b"], "pid": "' + "9" * 5000)
    with pytest.raises(BoxHeld, match=r"another kdyno \(unknown\)"):
        MetalMachine(MetalConfig(host="box")).way_back.lease.take()


def test_a_kernel_of_a_killed_kdyno_is_replaced_by_the_own_one_first(machine: MetalMachine, box: FakeBox) -> None:
    box.put("proc/cmdline", f"{OWN_WORDS} kdyno.boot=0123\n")
    box.put("kernel", "test\n")
    facts = machine.describe().facts
    assert facts["cmdline"] == ["root=UUID=1234-abcd", "ro", "quiet", "panic=10"]
    assert box.text("kernel") == "own"


def test_an_interrupt_restarts_the_box_without_waiting(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    cancelled = Event()
    program = Program(name="command", command=("sh", "-c", "echo started; sleep 100"))
    boot = order(tmp_path, program=program, cancelled=cancelled)
    threading.Thread(target=_set_when, args=(lambda: box.text("kernel") == "test", cancelled), daemon=True).start()
    end = machine.boot(boot)
    assert (end.status, end.reason) == ("lost", "interrupted")
    assert box.text("kernel") == "own"
    assert box.stored == []


def _set_when(is_true: Callable[[], bool], event: Event, then: Callable[[], None] | None = None) -> None:
    """Set an event when something is true; or do something else, some seconds later."""
    for _ in range(1000):
        if is_true():
            break
        time.sleep(0.05)
    if then:
        time.sleep(4)
        then()
    event.set()


@pytest.mark.usefixtures("box")
def test_the_console_is_what_the_users_command_prints(tmp_path: Path) -> None:
    console = ("sh", "-c", "echo '[    1.0] kernel BUG at mm/slub.c:1!'; sleep 100")
    machine = MetalMachine(MetalConfig(host="box", console=console, limits=BootLimits(boot=5)))
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("failed", "BUG: kernel BUG at mm/slub.c:1!")
    machine.way_back.lease.release()


def test_packages_that_the_box_lacks_are_named(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    query = '#!/bin/sh\nfor last; do :; done\n[ "$last" = nginx-light ] && echo installed\n'
    box.put("bin/dpkg-query", query).chmod(0o755)
    with pytest.raises(PackagesMissing, match=r"not installed on box: wrk$"):
        machine.provide(Needs(packages=("nginx-light", "wrk")), State(tmp_path / "state"), Talk(quiet=True))


@pytest.mark.parametrize("host", ["-oProxyCommand=touch /tmp/x", "a b", "", "box;reboot"])
def test_a_host_that_ssh_would_take_for_an_option_is_refused(host: str) -> None:
    with pytest.raises(BadMachine):
        read_machine({"type": "metal", "host": host}, "[machine]")


def test_a_box_that_does_not_leave_its_kernel_loses_the_boot_and_is_restarted(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    box.put("after_kexec", "ignored\n")
    end = machine.boot(order(tmp_path))
    assert end.status == "lost"
    assert end.reason.startswith("the box did not leave its own kernel")
    assert "reboot" in box.text("systemctl")


def test_a_kernel_that_cannot_start_a_box_is_refused_before_the_box_restarts(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    boot = order(tmp_path)
    (tmp_path / "config").write_text("# Linux\nCONFIG_X86=y\nCONFIG_EPOLL=y\n# CONFIG_CGROUPS is not set\n")
    with pytest.raises(KernelNotStartable, match=r"CONFIG_CGROUPS=y \(here: not set\): systemd needs it") as caught:
        machine.boot(boot)
    assert "CONFIG_EPOLL" not in str(caught.value)
    assert box.text("restarts") == "0"


def test_a_box_that_answers_late_is_restarted_then(box: FakeBox, tmp_path: Path) -> None:
    down = box.root / "down"
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=30, silence=1)))
    program = Program(name="command", command=("sh", "-c", f'touch "{down}"; sleep 100'))
    threading.Thread(target=_set_when, args=(down.exists, Event()), kwargs={"then": down.unlink}, daemon=True).start()
    end = machine.boot(order(tmp_path, program=program))
    assert (end.status, end.reason) == ("failed", "hung: silent for 1 s")
    assert box.text("proc/cmdline") == OWN_WORDS
    machine.way_back.lease.release()


def test_a_box_that_another_kdyno_took_is_not_restarted(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take, calls = machine.way_back.lease.take, []

    def take_once() -> None:
        calls.append(1)
        if len(calls) > 1:
            raise BoxHeld(host="box", holder="jane@host, process 7", until="")
        take()

    monkeypatch.setattr(machine.way_back.lease, "take", take_once)
    with pytest.raises(BoxHeld, match="jane@host"):
        machine.boot(order(tmp_path))
    assert "reboot" not in box.text("systemctl")
    monkeypatch.undo()
