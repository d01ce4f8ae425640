"""A box that attacks, and a connection that breaks at any moment, on the machine `metal`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdyno.boot.base import BootLimits
from kdyno.boot.metal import box as box_module
from kdyno.boot.metal import facts as facts_module
from kdyno.boot.metal import lease as lease_module
from kdyno.boot.metal.facts import copy_files
from kdyno.boot.metal.knobs import KnobsMissing, KnobsRefused, set_knobs
from kdyno.boot.metal.lease import BoxDirectoryForeign
from kdyno.boot.metal.machine import CommandMissing, MetalMachine
from kdyno.boot.metal.settings import MetalConfig
from kdyno.boot.metal.ssh import BoxFull, BoxUnreachable, BoxUntrusted, Ssh, UnknownHostKey
from tests.unit.boot.fake_box import OWN_WORDS, RELEASE, FakeBox, order

LEASE, COPY, INITRD, ROOT = "flock -n", "sha256sum <", "mkinitramfs -o", "PARTUUID -o"
START, MEASURE, LOOK = "kexec.target", "do job.json", "boot_id %s"
"""Texts of kdyno's commands on a box."""
DROPS = {"message": "Connection to box closed by remote host.", "once": "dropped"}
CHANGED_KEY = "@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\nHost key verification failed."


def directory(box: FakeBox) -> Path:
    """Return the directory of kdyno on the box."""
    place = Path(f"{box.root}{box_module.DIRECTORY}")
    place.parent.mkdir(parents=True, exist_ok=True)
    return place


@pytest.mark.parametrize("answer", ["busy\n", "", "restarted 9\n", "\x1b]0;owned\x07\n"])
def test_an_answer_to_the_request_for_a_lease_that_never_ends_is_one_error(
    machine: MetalMachine, box: FakeBox, answer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "END_SECONDS", 0.5)
    box.plan({"in": LEASE, "output": answer + "x" * 1_000_000})
    with pytest.raises(BoxUntrusted, match="its answer does not end") as caught:
        machine.way_back.lease.take()
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("name", ["lease", "lock"])
def test_a_lease_that_is_a_link_is_not_written_through(machine: MetalMachine, box: FakeBox, name: str) -> None:
    victim = box.put("victim", "precious\n")
    directory(box).mkdir()
    (directory(box) / name).symlink_to(victim)
    with pytest.raises(BoxDirectoryForeign, match=box_module.DIRECTORY):
        machine.way_back.lease.take()
    assert box.text("victim") == "precious"


def test_a_directory_that_is_a_link_is_not_written_to(machine: MetalMachine, box: FakeBox) -> None:
    (box.root / "elsewhere").mkdir()
    directory(box).symlink_to(box.root / "elsewhere")
    with pytest.raises(BoxDirectoryForeign):
        machine.way_back.lease.take()
    assert not list((box.root / "elsewhere").iterdir())


def test_a_disk_that_is_too_full_for_a_lock_is_reported(machine: MetalMachine, box: FakeBox) -> None:
    box.plan({"in": LEASE, "output": "kdyno: 4: cannot create lock: No space left on device\n"})
    with pytest.raises(BoxFull):
        machine.way_back.lease.take()


def test_messages_without_end_in_a_measurement_are_cut(box: FakeBox, tmp_path: Path) -> None:
    box.plan({"in": MEASURE, "error_output": "x" * 100_000, "times": 1000})
    machine = MetalMachine(MetalConfig(host="box", limits=BootLimits(boot=3, console_mb=0.5)))
    end = machine.boot(order(tmp_path))
    assert (end.status, end.reason) == ("failed", "console flooded: more than 0.5 MB")
    assert end.console.stat().st_size <= 500_000
    machine.way_back.lease.release()


def test_facts_in_more_files_than_a_host_has_are_not_all_stored(
    box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(facts_module, "MOST_FILES", 10)
    box.put("copied", "".join(f"/sys/{number}:x\n/sys/0:again\n" for number in range(100)))
    copy_files(Ssh("box"), ("sys/*",), tmp_path / "copied")
    assert len(list((tmp_path / "copied/sys").iterdir())) == 10
    assert (tmp_path / "copied/sys/0").read_text().count("again") == 100


@pytest.mark.parametrize("answer", ["/boot/" + "x" * 500_000, "/boot/a b", "--kexec", "/boot/a\0b", "/boot/\x1b[2J"])
def test_an_initrd_that_is_not_a_path_is_not_passed_on(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, answer: str
) -> None:
    box.plan({"in": INITRD, "output": answer})
    with pytest.raises(BoxUntrusted, match="its answer is not a path"):
        machine.boot(order(tmp_path))
    assert box.text("restarts") == "0"


@pytest.mark.parametrize("step", [COPY, INITRD, ROOT])
def test_a_connection_that_breaks_before_the_kernel_is_started_loses_the_boot(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, step: str
) -> None:
    box.plan({"in": step, **DROPS})
    end = machine.boot(order(tmp_path))
    assert (end.status, box.text("restarts")) == ("lost", "0")
    assert end.reason.startswith("box cannot be reached")


def test_a_box_that_is_out_of_reach_before_the_kernel_is_started_is_an_error(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    box.plan({"in": COPY, "after": "down"})
    with pytest.raises(BoxUnreachable):
        machine.boot(order(tmp_path))


def test_a_lease_is_requested_again_after_a_break(machine: MetalMachine, box: FakeBox, tmp_path: Path) -> None:
    box.plan({"in": LEASE, **DROPS})
    assert machine.boot(order(tmp_path)).status == "ok"


def test_a_break_when_the_box_has_come_back_does_not_lose_its_samples(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bring_back = machine.way_back.bring_back

    def break_then(*arguments: Any) -> Any:
        box.plan({"in": LEASE, **DROPS})
        return bring_back(*arguments)

    monkeypatch.setattr(machine.way_back, "bring_back", break_then)
    assert machine.boot(order(tmp_path)).status == "ok"


def test_a_box_that_obeyed_before_the_connection_broke_is_not_taken_for_one_that_is_back(
    machine: MetalMachine, box: FakeBox, tmp_path: Path
) -> None:
    box.put("after_kexec", "ignored\n")  # it still stops its services when it is asked for its kernel
    box.plan({"in": START, "done": True})
    end = machine.boot(order(tmp_path))
    assert end.status == "lost"
    assert "reboot" in box.text("systemctl"), "its own kernel, which is about to end, is not the one after a restart"
    assert box.text("proc/cmdline") == OWN_WORDS


def test_a_box_that_lets_nobody_in_while_it_starts_is_waited_for(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = machine.starter.start

    def refuse_then(*arguments: Any) -> None:
        start(*arguments)
        box.plan({"in": LOOK, "message": "root@box: Permission denied (publickey).", "once": "refused"})

    monkeypatch.setattr(machine.starter, "start", refuse_then)
    assert machine.boot(order(tmp_path)).status == "ok"
    assert (box.root / "refused").exists()


def test_a_host_key_that_changes_amid_a_boot_ends_the_run_and_nothing_is_sent(
    machine: MetalMachine, box: FakeBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    monkeypatch.setattr(machine.way_back.talk, "warn", said.append)
    start = machine.starter.start

    def change_then(*arguments: Any) -> None:
        start(*arguments)
        box.plan({"in": "", "message": CHANGED_KEY})

    monkeypatch.setattr(machine.starter, "start", change_then)
    with pytest.raises(UnknownHostKey):
        machine.boot(order(tmp_path))
    assert said == [
        "box is left as it is, and may still run the kernel of this boot; a restart brings its own one back"
    ]
    assert "reboot" not in box.text("systemctl")


@pytest.mark.parametrize("key", ["reset", "console"])
@pytest.mark.usefixtures("box")
def test_a_command_that_is_not_on_this_host_is_refused_before_anything_is_built(key: str) -> None:
    machine = MetalMachine(MetalConfig.model_validate({"host": "box", key: ["no-such-ipmitool", "reset"]}))
    with pytest.raises(CommandMissing, match=f"`{key}` in .machine. names no-such-ipmitool"):
        machine.describe()


def cpufreq(box: FakeBox, governor: str = "powersave") -> Path:
    """Give the box a governor and a turbo, and return the file of the governor."""
    place = "sys/devices/system/cpu"
    for name, value in (("cpufreq/policy0/scaling_governor", governor), ("intel_pstate/no_turbo", "0")):
        (box.root / place / name).parent.mkdir(parents=True, exist_ok=True)
        box.put(f"{place}/{name}", f"{value}\n")
        box.put("copied", f"{(box.root / 'copied').read_text()}/{place}/{name}:{value}\n")
    return box.root / place / "cpufreq/policy0/scaling_governor"


def knobs_machine(*knobs: str) -> MetalMachine:
    return MetalMachine(MetalConfig.model_validate({"host": "box", "knobs": knobs, "limits": {"boot": 3, "total": 20}}))


def test_knobs_are_set_after_the_kernel_has_started_and_are_a_fact(box: FakeBox, tmp_path: Path) -> None:
    governor = cpufreq(box)
    machine = knobs_machine("turbo", "governor")
    assert machine.describe().facts["set"] == ["governor", "turbo"]
    assert governor.read_text() == "powersave\n"
    assert machine.boot(order(tmp_path)).status == "ok"
    assert governor.read_text() == "performance\n"
    assert box.text("sys/devices/system/cpu/intel_pstate/no_turbo") == "1"
    machine.way_back.lease.release()


@pytest.mark.usefixtures("box")
def test_a_knob_that_the_box_lacks_is_refused_before_anything_is_built() -> None:
    with pytest.raises(KnobsMissing, match="box lacks the host knobs smt"):
        knobs_machine("smt").describe()


def test_a_kernel_that_has_no_file_for_a_knob_ends_the_run_and_the_box_is_restarted(
    box: FakeBox, tmp_path: Path
) -> None:
    governor = cpufreq(box)
    machine = knobs_machine("governor")
    machine.describe()
    governor.unlink()
    with pytest.raises(KnobsRefused, match="did not take the host knob governor: it has no file for it"):
        machine.boot(order(tmp_path))
    assert box.text("proc/cmdline") == OWN_WORDS
    machine.way_back.lease.release()


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        ("0 powersave", "did not take the host knob governor: it is powersave, not performance"),
        ("0 \x1b[2J", "did not take the host knob governor: its file has '.x1b"),
    ],
)
def test_a_value_that_a_kernel_does_not_take_is_named(box: FakeBox, answer: str, why: str) -> None:
    box.plan({"in": "number=0", "output": f"{answer}\n"})
    with pytest.raises(KnobsRefused, match=why):
        set_knobs(Ssh("box"), ["governor"], RELEASE)


@pytest.mark.parametrize("answer", ["99 performance", "performance", "1 performance"])
def test_an_answer_about_knobs_that_were_not_set_is_not_trusted(box: FakeBox, answer: str) -> None:
    box.plan({"in": "number=0", "output": f"{answer}\n"})
    with pytest.raises(BoxUntrusted, match="the request to set knobs"):
        set_knobs(Ssh("box"), ["governor"], RELEASE)
