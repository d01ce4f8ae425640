"""Tuned kernels, really: trained in boots, linked or compiled by what that showed, booted and judged."""

from __future__ import annotations

import json
from typing import Any

from tests.e2e.conftest import Kdyno

ORDERED = """
[variants.plain]
opt = "O2"

[variants.ordered]
extends = "plain"
profile = { train = ["lat_syscall", "lat_pipe"], use = "order", seeds = 1 }

[workload]
tests = ["lat_syscall", "lat_pipe"]

[machine]
lane = "model"
[machine.pmu]
family = "znver4"
"""

SMALL = "{ INET = false, NET = false, SECCOMP = false, KALLSYMS = false, HYPERVISOR_GUEST = false }"
COMPILED = f"""
[variants.plain]
toolchain = "clang-19"
opt = "O2"
lines = true
kconfig = {SMALL}

[variants.tuned]
extends = "plain"
profile = {{ train = ["lat_syscall", "lat_pipe"], use = ["autofdo"], seeds = 2 }}

[workload]
tests = ["lat_syscall", "lat_pipe"]

[machine]
lane = "model"
[machine.pmu]
family = "znver4"
"""


def built(kdyno: Kdyno, path: str) -> dict[str, dict[str, Any]]:
    """The records of the images, by variant."""
    images: dict[str, dict[str, Any]] = json.loads(kdyno("build", path, "--json").stdout)
    return images


def verdicts(kdyno: Kdyno, path: str) -> dict[str, float]:
    """The effect on each benchmark as a fraction; every boot has to be good."""
    report = json.loads(kdyno("run", path, "--json").stdout)
    assert {boot["status"] for boot in report["boots"]} == {"ok"}
    [comparisons] = (
        report["comparisons"].values() if isinstance(report["comparisons"], dict) else [report["comparisons"]]
    )
    return {row["benchmark"]: row["effect"] for row in comparisons}
