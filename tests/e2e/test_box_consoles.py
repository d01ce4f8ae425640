"""The consoles of a box as users have them: a serial line, IPMI's serial over LAN, and netconsole. The box is in QEMU,
and its BMC is OpenIPMI's simulator, which the real ipmitool speaks to.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.e2e import debian_guest
from tests.e2e.box import Box, free_port, make_disk, own_kernel_runs, started_box
from tests.e2e.conftest import Kdyno
from tests.e2e.test_metal import COMMAND, PLAIN, TESTS, run

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the disk of the box"),
    *(
        pytest.mark.skipif(shutil.which(program) is None, reason=f"{program} is not installed")
        for program in ("mmdebstrap", "ipmitool", "nc")
    ),
]

BMC = """
name "box"
set_working_mc 0x20
  startlan 1
    addr 127.0.0.1 {lan}
    priv_limit admin
    allowed_auths_admin none md2 md5 straight
    guid 00112233445566778899aabbccddeeff
  endlan
  serial 15 127.0.0.1 {vm} codec VM
  sol "tcp:127.0.0.1:{line}" 115200
  startnow false
  user 1 true "" "" user 10 none
  user 2 true "kdyno" "secret" admin 10 none md2 md5 straight
"""
CONTROLLER = """
mc_setbmc 0x20
mc_add 0x20 0 no-device-sdrs 0x23 9 8 0x9f 0x1291 0xf02
mc_enable 0x20
"""
BAD = PLAIN + '[variants.bad]\nimage = "{kernel}"\ncmdline = '
PANIC = "panic: Kernel panic - not syncing: Attempted to kill init"


@pytest.fixture
def work(state: Path, tmp_path: Path) -> Path:
    make_disk(state / "box")
    work = tmp_path / "box"
    work.mkdir()
    return work


def unpacked_simulator(directory: Path) -> Path:
    """Return the root of OpenIPMI's packages. They aren't installed: a service of theirs loads drivers at each start of
    the host.
    """
    root = directory / "openipmi"
    if not root.exists():
        scratch = directory / "openipmi-scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True)
        debian_guest.run("apt-get", "download", "openipmi", "libopenipmi0", cwd=scratch)
        for package in scratch.glob("*.deb"):
            debian_guest.run("dpkg-deb", "--extract", package, scratch)
        scratch.rename(root)
    return root


@contextmanager
def started_bmc(simulator: Path, work: Path) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Start a BMC; yield the options for the QEMU that it controls, and the command that speaks to it."""
    lan, vm, line = free_port(), free_port(), free_port()
    (work / "lan.conf").write_text(BMC.format(lan=lan, vm=vm, line=line))
    (work / "controller").write_text(CONTROLLER)
    (work / "bmc").mkdir()
    words = [f"{simulator}/usr/bin/ipmi_sim", "-n", "-c", "lan.conf", "-f", "controller", "-s", "bmc"]
    devices = (
        *("-chardev", f"socket,id=line,host=127.0.0.1,port={line},server=on,wait=off", "-serial", "chardev:line"),
        *("-chardev", f"socket,id=bmc,host=127.0.0.1,port={vm},reconnect=1"),
        *("-device", "ipmi-bmc-extern,chardev=bmc,id=bmc0", "-device", "isa-ipmi-kcs,bmc=bmc0"),
    )
    # The simulator knows no list of ciphers.
    tool = ("ipmitool", "-I", "lanplus", "-C", "3", "-H", "127.0.0.1", "-p", str(lan), "-U", "kdyno", "-P", "secret")
    with (
        (work / "bmc.log").open("wb") as log,
        subprocess.Popen(
            words,
            cwd=work,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env={"LD_LIBRARY_PATH": f"{simulator}/usr/lib/x86_64-linux-gnu"},
        ) as bmc,
    ):
        try:
            yield devices, tool
        finally:
            bmc.kill()


def terminal_of(box: Box) -> str:
    """The terminal of this host at the other end of the box's serial line."""
    end = time.monotonic() + 60
    while not (match := re.search(r"/dev/pts/\d+", (box.work / "qemu.log").read_text())):
        assert time.monotonic() < end
        time.sleep(0.1)
    return match[0]


def test_a_panic_is_read_from_a_serial_line(kdyno: Kdyno, state: Path, work: Path) -> None:
    with started_box(state / "box", work, ("-serial", "pty"), "console=ttyS1,115200") as box:
        terminal = terminal_of(box)
        subprocess.run(["stty", "-F", terminal, "115200", "raw", "-echo"], check=True)
        with_line = replace(box, console=("cat", terminal))
        report, said = run(kdyno, with_line, BAD + '["init=/bin/false"]\n', TESTS, boot_seconds=600)
        assert PANIC in str(report)
        assert "`console`" not in said
        assert own_kernel_runs(box)


def test_ipmi_reads_a_panic_and_resets_a_box_that_stays_there(kdyno: Kdyno, state: Path, work: Path) -> None:
    with (
        started_bmc(unpacked_simulator(state / "machines"), work) as (devices, tool),
        started_box(state / "box", work, devices, "console=ttyS1,115200") as box,
    ):
        by_ipmi = replace(box, console=(*tool, "sol", "activate"), reset=(*tool, "chassis", "power", "reset"))
        report, said = run(kdyno, by_ipmi, BAD + '["init=/bin/false", "panic=0"]\n', TESTS, boot_seconds=300)
        assert PANIC in str(report)
        assert "box does not answer: ipmitool -I lanplus" in said
        assert "`console`" not in said, "each boot has a session of its own"
        assert own_kernel_runs(box)


def test_a_panic_in_the_middle_of_a_measurement_is_read_by_netconsole(kdyno: Kdyno, state: Path, work: Path) -> None:
    port = free_port()
    command = (
        f"card=$(ls /sys/class/net | grep ^e); modprobe netconsole netconsole=@/$card,{port}@10.0.2.2/; "
        "sleep 2; echo c > /proc/sysrq-trigger; sleep 1000"
    )
    with started_box(state / "box", work) as box:
        by_network = replace(box, console=("nc", "-u", "-l", str(port)))
        report, said = run(kdyno, by_network, PLAIN, COMMAND.format(command=command))
        assert "sysrq triggered crash" in str(report)
        assert "`console`" not in said
        assert own_kernel_runs(box)
