"""kdyno-try on whole machines: a kernel is kept, rolled back, and comes back by itself from a panic and from a hang."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.debian_guest import Guest, Loader, make_disk, missing_programs, run
from tests.e2e.trial_kernel import make_trial_package

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(bool(missing_programs()), reason=f"missing: {', '.join(missing_programs())}"),
]
both_loaders = pytest.mark.parametrize("loader", ["systemd-boot", "grub"])

QUICK = "--healthy-for 5 --deadline 600"
PANIC = "echo c > /proc/sysrq-trigger"
HANG = 'sysctl -q kernel.sched_rt_runtime_us=-1; exec chrt -f 99 sh -c "while :; do :; done"'
"""A loop of the highest priority on the only processor: nothing else runs any more, and nobody feeds the watchdog."""


@pytest.fixture
def package(state: Path) -> Path:
    return make_trial_package(state / "machines")


@pytest.fixture
def guest(state: Path, tmp_path: Path, package: Path, loader: Loader) -> Iterator[Guest]:
    """A machine that has never started, with the package on its second disk and a watchdog."""
    disk = tmp_path / "disk.raw"
    run("cp", "--sparse=always", make_disk(loader, state / "machines"), disk)
    yield Guest(disk, tmp_path, package, ("i6300esb",))
    disk.unlink(missing_ok=True)


def fetch(guest: Guest, package: Path) -> None:
    guest(f"head -c {package.stat().st_size} /dev/vdb > /root/kernel.deb")


def try_once(guest: Guest, words: str) -> None:
    """Arm a trial, and reboot."""
    guest(f"kdyno-try {QUICK} {words}")
    guest.send("systemctl reboot")


def wait_for_status(guest: Guest, text: str, seconds: float = 600) -> str:
    """Wait until kdyno-try reports something of the trial, and return what it reports."""
    end = time.monotonic() + seconds
    while text not in (status := guest("kdyno-try --status")):
        assert time.monotonic() < end, f"{status}\n{guest('journalctl -b -u kdyno-try --no-pager')}"
        time.sleep(2)
    return status


@both_loaders
def test_a_kernel_is_kept_and_rolled_back_and_comes_back_from_a_panic_and_a_hang(guest: Guest, package: Path) -> None:
    release = package.name.removeprefix("linux-image-").partition("_")[0]
    with guest:
        old = guest.wait_for_shell()
        assert old != release
        fetch(guest, package)
        guest("dpkg -i /root/kernel.deb")
        assert "nothing is armed" in guest("kdyno-try --status")

        for check in (PANIC, HANG):
            try_once(guest, f"--check '{check}'")
            while guest.wait_for_shell() != old:  # that of the trial may start before its check ends
                pass
            assert "it was started and never became healthy" in wait_for_status(guest, "failed:")
            assert guest("ls /etc/systemd/system/kdyno-try.service", status=2)

        try_once(guest, "")
        assert guest.wait_for_shell() == release
        wait_for_status(guest, "was healthy, or kept by hand: it is the default")
        assert guest("systemctl is-system-running") == "running"
        assert guest("cat /sys/class/watchdog/watchdog0/state") == "active"
        assert guest("kdyno-try --rollback").endswith(f"reboot into {old}")
        assert "was rolled back" in guest("kdyno-try --status")

        guest("kdyno-try --forget; dpkg --purge linux-image-" + release)
        assert guest("ls /etc/kdyno-try /usr/sbin/kdyno-try /etc/grub.d/42_kdyno_try", status=2)
        guest.power_off()


@both_loaders
def test_a_full_boot_is_refused_and_a_power_cut_during_the_installation_leaves_the_old_kernel(
    guest: Guest, package: Path, loader: Loader
) -> None:
    place = {"systemd-boot": "/boot/efi", "grub": "/boot"}[loader]
    with guest:
        old = guest.wait_for_shell()
        fetch(guest, package)
        name = package.name.partition("_")[0]
        guest("dpkg --fsys-tarfile /root/kernel.deb | tar -xO --wildcards './usr/lib/kdyno/*/kdyno-try' > /root/try")
        assert "the default of" in guest("sh /root/try --pin")
        guest(f"dd if=/dev/zero of={place}/filler bs=1M", status=1)
        assert "remove an old kernel" in guest("dpkg -i /root/kernel.deb", status=1)
        assert guest(f"ls /boot/vmlinuz-{name.removeprefix('linux-image-')}", status=2)
        guest(f"rm {place}/filler; sync")
        guest.send("dpkg -i /root/kernel.deb")
        guest.wait_for("Setting up")
        guest.wait_for("Generating")
    with guest:  # leaving it has cut the power
        assert guest.wait_for_shell() == old
        guest("dpkg --configure -a")
        assert "is pinned as the default" in guest("kdyno-try --status")
        guest.power_off()
