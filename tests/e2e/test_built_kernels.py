"""A kernel that the distribution built: out of its package, never installed, on a machine with its own modules."""

from __future__ import annotations

import json
import subprocess

import pytest

from tests.e2e.conftest import Kdyno

PACKAGE = "linux-image-amd64"
WORKLOAD = """\
name = "greeting"
description = "a program of a package in a root file system"
packages = ["hello"]
runs = 1
command = "hello --greeting='value 7'"

[metrics]
value = { pattern = '^value ([0-9]+)$', unit = "x", direction = "lower" }
"""
EXPERIMENT = f"""\
name = "distribution"
baseline = "theirs"
blocks = 2

[variants.theirs]
image = "debian:{PACKAGE}"

[variants.unmitigated]
extends = "theirs"
cmdline = ["mitigations=off"]

[workload]
type = "programs"
use = ["./greeting.toml"]
tests = ["lat_syscall"]

[machine]
lane = "model"

[machine.pmu]
family = "znver2"
clock = "cycles"
"""


@pytest.fixture(autouse=True)
def _package_at_hand() -> None:
    known = subprocess.run(["apt-cache", "show", PACKAGE], capture_output=True, check=False).returncode == 0
    if not known:
        pytest.skip(f"apt knows no package {PACKAGE}: `apt-get update`, on Debian for x86-64")


def test_debians_kernel_boots_with_its_modules_and_is_counted_judged_and_explained(kdyno: Kdyno) -> None:
    (kdyno.directory / "greeting.toml").write_text(WORKLOAD, encoding="utf-8")
    path = kdyno.directory / "distribution.toml"
    path.write_text(EXPERIMENT, encoding="utf-8")
    kdyno("run", str(path))
    shown = json.loads(kdyno("show", "latest", "--json").stdout)
    [image] = {image["key"]: image for variant in shown["run"]["variants"] for image in variant["images"]}.values()
    assert image["release"].endswith("-amd64") and image["banner"].startswith(image["release"])
    assert {"virtio_pci", "virtio_console", "squashfs", "overlay", "loop"} <= set(image["modules"])
    assert shown["run"]["machine"]["platform"] == "q35"
    for boot in shown["boots"]:
        assert boot["status"] == "ok" and not boot["broken"]
        assert [sample["value"] for sample in boot["samples"] if sample["benchmark"] == "greeting.value"] == [7]
    report = json.loads(kdyno("report", "latest", "--json").stdout)
    verdicts = {row["benchmark"]: row["verdict"] for row in report["comparisons"]}
    assert verdicts["lat_syscall.null"] == "faster"
    explained = json.loads(kdyno("explain", "latest", "unmitigated", "lat_syscall.null", "--json").stdout)
    assert any("syscall" in row["function"] for row in explained["explanation"]["functions"])
