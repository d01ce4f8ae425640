"""kdyno-try on whole machines: a kernel is kept, rolled back, and comes back by itself from a panic and from a hang.

Each test goes on from a machine that was saved when it had started: a boot under TCG takes longer than all the rest.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import pytest

from tests.e2e.debian_guest import DISK, INSTALLED, STARTED, VARIABLES, Guest, Loader, make_machine, missing_programs
from tests.e2e.trial_kernel import make_trial_package

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(missing_programs()), reason=f"missing: {', '.join(missing_programs())}"),
    pytest.mark.parametrize("loader", ["systemd-boot", "grub"]),
]

QUICK = "--healthy-for 5 --deadline 600"
PANIC = "echo c > /proc/sysrq-trigger"
HANG = 'echo -1 > /proc/sys/kernel/sched_rt_runtime_us && exec chrt -f 99 sh -c "while :; do :; done"'
"""A loop of the highest priority on the only processor: nothing else runs any more, and nobody feeds the watchdog."""
UNIT = "/etc/systemd/system/kdyno-try.service"


@pytest.fixture
def package(state: Path) -> Path:
    return make_trial_package(state / "machines")


@pytest.fixture
def release(package: Path) -> str:
    """The release of the kernel that is tried."""
    return package.name.removeprefix("linux-image-").partition("_")[0]


@pytest.fixture
def directory(state: Path, tmp_path: Path, package: Path, loader: Loader) -> Path:
    """The directory of a copy of the saved machine."""
    machine = make_machine(loader, state / "machines", package)
    for name in (DISK, VARIABLES):
        shutil.copyfile(machine / name, tmp_path / name)
    return tmp_path


def try_once(guest: Guest, words: str) -> str:
    """Arm a trial, reboot, and return the release of the kernel that was running."""
    old = guest("uname -r")
    guest(f"kdyno-try {QUICK} {words}")
    guest.send("systemctl reboot")
    return old


def wait_for_status(guest: Guest, text: str, seconds: float = 1800) -> str:
    """Wait until kdyno-try reports something of the trial, and return what it reports."""
    end = time.monotonic() + seconds
    while text not in (status := guest("kdyno-try --status")):
        assert time.monotonic() < end, f"{status}\n{guest('journalctl -b -u kdyno-try --no-pager')}"
        time.sleep(2)
    return status


def test_nothing_is_armed_by_an_installation(directory: Path, package: Path, release: str) -> None:
    with Guest(directory, package, INSTALLED) as guest:
        assert guest("uname -r") != release
        assert guest(f"ls /boot/vmlinuz-{release} /boot/initrd.img-{release}")
        assert "nothing is armed" in guest("kdyno-try --status")


def test_a_healthy_kernel_is_kept_and_can_be_rolled_back(directory: Path, package: Path, release: str) -> None:
    with Guest(directory, package, INSTALLED) as guest:
        old = try_once(guest, "")
        assert guest.wait_for_shell() == release
        wait_for_status(guest, "was healthy, or kept by hand: it is the default")
        assert guest("systemctl is-system-running") == "running"
        assert guest("cat /sys/class/watchdog/watchdog0/state") == "active"
        assert guest("kdyno-try --rollback").endswith(f"reboot into {old}")
        assert "was rolled back" in guest("kdyno-try --status")
        guest.send("systemctl reboot")
        assert guest.wait_for_shell() == old
        guest("kdyno-try --forget; dpkg --purge linux-image-" + release)
        assert guest("ls /etc/kdyno-try /usr/sbin/kdyno-try /etc/grub.d/42_kdyno_try", status=2)


@pytest.mark.parametrize("check", [PANIC, HANG], ids=["panic", "hang"])
def test_the_old_kernel_comes_back_after_a_panic_or_a_hang(
    directory: Path, package: Path, release: str, check: str
) -> None:
    with Guest(directory, package, INSTALLED) as guest:
        old = try_once(guest, f"--check '{check}'")
        while (running := guest.wait_for_shell()) == release:  # it may start before its check ends
            pass
        assert running == old
        assert "it was started and never became healthy" in wait_for_status(guest, "failed:")
        guest(f"while [ -e {UNIT} ]; do sleep 1; done")  # it is removed after the status is written
        assert guest("ls /boot/efi/loader/entries/kdyno-try.conf /etc/grub.d/42_kdyno_try", status=2)


def test_a_full_boot_is_refused(directory: Path, package: Path, release: str, loader: Loader) -> None:
    place = {"systemd-boot": "/boot/efi", "grub": "/boot"}[loader]
    with Guest(directory, package, STARTED) as guest:
        guest(f"dd if=/dev/zero of={place}/filler bs=1M", status=1)
        guest(f"truncate -s -8M {place}/filler")  # with GRUB dpkg's own files are on the same file system
        assert "remove an old kernel" in guest("dpkg -i /root/kernel.deb", status=1)
        assert guest(f"ls /boot/vmlinuz-{release}", status=2)


def test_a_power_cut_during_the_installation_leaves_the_old_kernel(directory: Path, package: Path) -> None:
    with Guest(directory, package, STARTED) as guest:
        old = guest("uname -r")
        guest("dpkg --fsys-tarfile /root/kernel.deb | tar -xO --wildcards './usr/lib/kdyno/*/kdyno-try' > /root/try")
        assert "the default of" in guest("sh /root/try --pin")
        guest.send("dpkg -i /root/kernel.deb")
        guest.wait_for("Setting up")
        guest.wait_for("Generating")
    with Guest(directory, package) as guest:  # leaving it has cut the power
        assert guest.wait_for_shell() == old
        guest("dpkg --configure -a")
        assert "is pinned as the default" in guest("kdyno-try --status")
