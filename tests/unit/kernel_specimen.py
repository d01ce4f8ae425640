"""A validation on kernel code that needs no kernel, no QEMU and no agent."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from kdyno.measure.cycles.events import UNSEEN
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.kernel_measured import (
    KernelBenchmark,
    KernelMeasurement,
    KernelPair,
    Mitigation,
    geometry_digest,
)
from kdyno.measure.cycles.kernel_roles import ROLES
from kdyno.measure.cycles.predict import weigh
from tests.unit.cycles_specimen import family as generic

KERNELS = KernelPair(
    running="6.18.44-host",
    compiler="gcc (GCC) 15.3.0",
    source="debian:linux-source-6.12",
    version="6.12.117",
    origin="linux-source-6.12 6.12.117-1",
    built_with="gcc (Debian 12.2.0-14) 12.2.0",
    additions={"DEBUG_INFO_NONE": "debug information takes time to build; symbols are enough"},
    dropped=("PVM_GUEST",),
    words=("pti=off", "noreplace-smp"),
    mitigations=(
        Mitigation(name="meltdown", host="Not affected", guest="Vulnerable"),
        Mitigation(name="spectre_v2", host="Mitigation: Enhanced / Automatic IBRS", guest="Vulnerable"),
    ),
)


def measured(
    true_weights: Mapping[str, float] | None = None, family: Family | None = None, noise: float = 0.0
) -> KernelMeasurement:
    """Every benchmark of the table; natively what `true_weights`, or else the family's, make of its counts."""
    family = family or generic()
    rng = np.random.default_rng(7)
    events = tuple(family.weights)
    rows = []
    for kind, roles in ROLES.items():
        for name, role in roles.items():
            counts = rng.integers(0, 5, len(events)).astype(np.float64)
            counts[events.index("slots")] = rng.integers(500, 20_000)
            for unseen in (name for name in UNSEEN if name in events):  # each may be half of the cycles
                counts[events.index(unseen)] = rng.integers(0, 2 + int(4000 / family.weights[unseen]))
            cycles = float(weigh(counts, events, true_weights or family.weights)) * rng.uniform(1 - noise, 1 + noise)
            unit = "KiB" if name.startswith("bw_") else "op"
            rows.append(
                KernelBenchmark(
                    name=name,
                    kind=kind,
                    role=role,
                    unit=unit,
                    passes=(cycles * 1.04, cycles),
                    counts=tuple(counts.tolist()),
                )
            )
    return KernelMeasurement(
        family=family.name,
        geometry=geometry_digest(family),
        cpu="A CPU",
        ghz=(2.93, 2.95),
        kernels=KERNELS,
        events=events,
        benchmarks=tuple(rows),
        left_out={"lat_proc.shell": "/bin/sh is busybox in the guest, and another program here"},
    )
