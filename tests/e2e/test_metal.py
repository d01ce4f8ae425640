"""The machine `metal` on a box in QEMU: kernels are started by kexec, panic, hang, lose the network, and are reset."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.box import Box, make_disk, own_kernel_runs, started_box, started_firmware_box
from tests.e2e.conftest import Kdyno
from tests.e2e.debian_guest import Loader, missing_programs

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can make the disk of the box"),
    pytest.mark.skipif(shutil.which("mmdebstrap") is None, reason="mmdebstrap is not installed"),
]

TESTS = """
[workload]
type = "lmbench"
tests = ["lat_syscall"]
iterations = 3
"""
COMMAND = """
[workload]
type = "command"
command = ["sh", "-c", '''{command}''']
metrics = {{ seconds = {{ pattern = 'took ([0-9]+)', unit = "s", direction = "lower" }} }}
"""


@pytest.fixture
def box(state: Path, tmp_path: Path) -> Iterator[Box]:
    make_disk(state / "box")
    work = tmp_path / "box"
    work.mkdir()
    with started_box(state / "box", work) as started:
        yield started


def run(kdyno: Kdyno, box: Box, variants: str, workload: str, *, boot_seconds: int = 900) -> tuple[dict[str, Any], str]:
    """Carry out an experiment on the box; return what is on record, and what kdyno said."""
    path = kdyno.directory / "metal.toml"
    limits = f"limits = {{ boot = {boot_seconds}, total = 3600 }}\n"
    head = 'name = "metal"\nblocks = 1\nbaseline = "plain"\n'
    path.write_text(head + variants.format(kernel=box.tested_kernel) + workload + box.machine + limits)
    said = kdyno("run", str(path)).stderr
    runs = json.loads(kdyno("runs", "--json").stdout)
    return dict(json.loads(kdyno("report", runs[0]["id"], "--json").stdout)), said


PLAIN = '[variants.plain]\nimage = "{kernel}"\n'


def test_two_kernels_are_started_and_measured_and_the_box_has_its_own_again(kdyno: Kdyno, box: Box) -> None:
    variants = PLAIN + '[variants.off]\nimage = "{kernel}"\ncmdline = ["mitigations=off"]\n'
    report, _ = run(kdyno, box, variants, TESTS)
    assert report["run"]["lane"] == "wall"
    assert {comparison["benchmark"] for comparison in report["comparisons"]} >= {"lat_syscall.null"}
    assert own_kernel_runs(box)


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("init=/bin/false", "panic: Kernel panic - not syncing: Attempted to kill init"),
        ("init=/bin/cat", "hung at boot"),
    ],
)
def test_a_kernel_that_does_not_come_up_fails_and_the_box_comes_back(
    kdyno: Kdyno, box: Box, word: str, reason: str
) -> None:
    variants = PLAIN + '[variants.bad]\nimage = "{kernel}"\ncmdline = ["' + word + '"]\n'
    report, said = run(kdyno, box, variants, TESTS, boot_seconds=300)
    assert reason in json.dumps(report)
    if reason == "hung at boot":
        silences = [int(seconds) for seconds in re.findall(r"box has not answered for (\d+) s", said)]
        assert 45 <= min(silences) <= 60, said
    assert own_kernel_runs(box)


def test_a_box_with_another_host_key_is_refused(kdyno: Kdyno, box: Box) -> None:
    known = box.work / "known_hosts"
    address = known.read_text().split()[0]
    other = (box.place / "key.pub").read_text().split()[:2]
    path = kdyno.directory / "metal.toml"
    head = 'name = "metal"\nblocks = 1\nbaseline = "plain"\n'
    path.write_text(head + PLAIN.format(kernel=box.tested_kernel) + TESTS + box.machine)
    for text in (f"{address} {' '.join(other)}\n", ""):
        known.write_text(text)
        done = kdyno("run", str(path), status=1)
        assert "ssh does not connect to box: its host key is unknown or has changed" in done.stderr
        assert known.read_text() == text


def test_a_box_that_loses_its_network_is_reset(kdyno: Kdyno, box: Box) -> None:
    command = "for card in /sys/class/net/e*; do ip link set ${card##*/} down; done; sleep 3000"
    report, _ = run(kdyno, box, PLAIN, COMMAND.format(command=command))
    assert "hung, or without network" in json.dumps(report)
    assert own_kernel_runs(box)


@pytest.mark.skipif(bool(missing_programs()), reason=f"missing: {', '.join(missing_programs())}")
@pytest.mark.parametrize("loader", ["systemd-boot", "grub"])
def test_the_boot_loader_starts_a_kernel_once_and_nothing_of_it_stays(
    kdyno: Kdyno, state: Path, tmp_path: Path, loader: Loader
) -> None:
    work = tmp_path / "box"
    work.mkdir()
    with started_firmware_box(state / "firmware-box", work, loader=loader) as box:
        report, _ = run(kdyno, box, PLAIN, TESTS)
        assert "lat_syscall.null" in json.dumps(report)
        assert own_kernel_runs(box)
        left = box.run("ls -R /boot; ls /sys/firmware/efi/efivars; cat /boot/grub/grubenv || true")
        assert "kdyno" not in left
        if loader == "systemd-boot":
            assert "LoaderEntrySelected" in left
            assert "LoaderEntryOneShot" not in left
        else:
            assert "GRUB Environment Block" in left
            assert "custom.cfg" not in left
