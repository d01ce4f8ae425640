"""The KVM path, for real, on any host: TCG emulates SVM, a kernel there is the KVM host, and kdyno boots under it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Kdyno

pytestmark = pytest.mark.long
"""Ten minutes, for one way to boot; how KVM is proven has quick tests."""

FRAGMENT = ROOT / "tests" / "data" / "kconfig" / "kvm-host.config"
INNER = Path(__file__).parent / "inner_kvm.py"

EXPERIMENT = f"""
[variants.plain]
opt = "O2"
lines = true
[variants.kvm-host]
extends = "plain"
fragments = ["{FRAGMENT}"]
"""

# The host's files are read-only; /mnt is what the inner kdyno may write to.
IN_THE_GUEST = """
set -e
mkdir /host
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=262144,cache=loose host /host
mount -t devtmpfs dev /host/dev
mount -t proc proc /host/proc
mount -t sysfs sys /host/sys
mount -t tmpfs tmp /host/mnt
mkdir /host/mnt/boot
exec chroot /host /usr/bin/env -i PATH="$1" HOME=/mnt TMPDIR=/mnt PYTHONPATH="$2" "$3" "$4" "$5" /mnt/boot
"""


def test_a_kernel_boots_and_is_measured_under_kvm_that_was_proven(kdyno: Kdyno) -> None:
    experiment = kdyno.experiment("kvm", EXPERIMENT, baseline="plain", blocks=1)
    images = json.loads(kdyno("build", experiment, "--json").stdout)
    inner_kernel = str(kdyno.state.resolve() / "images" / images["plain"][0]["key"] / "bzImage")
    path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
    words = [path, str(ROOT / "src"), sys.executable, str(INNER), inner_kernel]
    done = kdyno(
        *("boot", images["kvm-host"][0]["key"], "--accel", "tcg", "--memory", "3072", "--share", "/"),
        *("--limit", "1500"),
        command=["sh", "-c", IN_THE_GUEST, "sh", *words],
    )
    document = json.loads(done.stdout)
    assert document["accel"] == "kvm"
    assert document["notices"] == []
    assert (document["status"], document["reason"]) == ("ok", "")
    assert "-accel kvm" in " ".join(document["command"])
    assert document["units"] == ["ns"]
    assert "lat_syscall.null" in document["benchmarks"]
