"""`kdyno validate`: compares the running kernel with a modelled one, benchmark by benchmark."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.cpu import Cpu, read_cpu
from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.host import host_facts
from kdyno.base.lanes import TIMED_LANE
from kdyno.base.measurement import Benchmark
from kdyno.boot.registry import default_machine
from kdyno.measure.cycles.family import Family, load_family
from kdyno.measure.cycles.host import UnknownCpu, find_family
from kdyno.measure.cycles.kernel_measured import KernelBenchmark, KernelMeasurement, KernelPair, geometry_digest
from kdyno.measure.cycles.kernel_roles import KINDS, UNLIKE, UNLIKE_IN_TIME, UNLIKE_ON_A_GUEST, find_role
from kdyno.measure.guest.agent import catalogue
from kdyno.measure.guest.catalogue import Catalogue, CatalogueTest
from kdyno.runs.session import Session
from kdyno.understand.validate.guest import GuestCounts, build_as_host, count_in_guest, guest_mitigations
from kdyno.understand.validate.host_kernel import (
    additions,
    compiler_of,
    config_of,
    dropped_options,
    nearest_source,
    running_config,
)
from kdyno.understand.validate.mitigations import CMDLINE, compare_mitigations, read_vulnerabilities, words_for
from kdyno.understand.validate.native import BYTES_OF_KIB, NativePass, measure_native, model_orders, unit_of

FEWEST = 2
"""The fewest benchmarks of each role: fewer have no rank correlation."""


class OtherFamily(UserError):
    message = "{family} is not the family of this host's CPU, {own}, and its cycles cannot be compared with times here"
    hint = "remove --family, or name a file that was calibrated from {own}: --family file:PATH"


class NoSharedBenchmark(InfrastructureError):
    message = "too few benchmarks ended both natively and in the guest: {count}"
    hint = "run `kdyno-agent run lmbench` to see the failures; left out: {left_out}"


@dataclass(frozen=True)
class ValidationRequest:
    """The request of a validation on kernel code."""

    family: str = "auto"
    """The family: `auto`, a name, or file:PATH."""
    source: str | None = None
    """The source; None: the nearest source of the host."""
    config: Path | None = None
    """The configuration; None: that of the running kernel, if it can be read."""
    passes: int = 5
    seed: int = 1


def host_family(name: str, cpu: Cpu | None = None) -> tuple[str, Family]:
    """Return the name of the family for other commands, and the family. Raises UnknownCpu and OtherFamily.

    If the host's own family has no cycle model, a named family is not checked.
    """
    cpu = cpu or read_cpu()
    if name == "auto":
        family = find_family(cpu)
        return family.name, family
    family = load_family(name)
    try:
        own = find_family(cpu)
    except UnknownCpu:
        return name, family
    if not set(family.march) & set(own.march):
        raise OtherFamily(family=family.name, own=own.name)
    return name, family


def validate_kernel(request: ValidationRequest, *, session: Session) -> KernelMeasurement:
    """Build, boot, count and time. Raises KdynoError, before the build if the error can be known then."""
    family_name, family = host_family(request.family)
    tests_of_agent = catalogue()
    tests = comparable_tests(tests_of_agent)
    orders = model_orders(tests)
    running = os.uname().release
    config = request.config or running_config()
    host = config_of(config)
    source = request.source or nearest_source(running)
    additional_values, reasons = additions(host)
    vulnerabilities = read_vulnerabilities()
    words = words_for(vulnerabilities, CMDLINE.read_text(encoding="utf-8"))
    settings = default_machine()

    image, built_config = build_as_host(source, config, additional_values, session.state, session.talk)
    session.talk.say(f"{image.record.source.origin} stands for the running kernel, {running}")
    counting_machine = default_machine(cpu=family.cpu.qemu), (*family.cpu.cmdline, *words)
    mitigations = compare_mitigations(
        vulnerabilities, guest_mitigations(image, *counting_machine, session.state, session.talk)
    )
    guest_counts = count_in_guest(image, orders, family, family_name, words, request.seed, settings, session=session)
    native = measure_native(orders, request.passes, session.talk)

    unlike = {**UNLIKE, **UNLIKE_IN_TIME, **(UNLIKE_ON_A_GUEST if read_cpu().is_guest else {})}
    benchmarks, left_out = join_sides(_described(tests_of_agent, tests), native, guest_counts, unlike)
    for role in ("fit", "held-out"):
        if sum(benchmark.role == role for benchmark in benchmarks) < FEWEST:
            raise NoSharedBenchmark(count=len(benchmarks), left_out=", ".join(left_out) or "none")
    return KernelMeasurement(
        family=family.name,
        geometry=geometry_digest(family),
        cpu=str(host_facts().get("cpu", "unknown")),
        ghz=tuple(round(one.ghz, 3) for one in native),
        kernels=KernelPair(
            running=running,
            compiler=compiler_of(host),
            source=source,
            version=image.record.source.version,
            origin=image.record.source.origin,
            built_with=compiler_of(built_config),
            additions=reasons,
            dropped=dropped_options(host, built_config, additional_values),
            words=words,
            mitigations=mitigations,
        ),
        events=guest_counts.events,
        benchmarks=benchmarks,
        left_out=left_out,
    )


def comparable_tests(known: Catalogue) -> tuple[CatalogueTest, ...]:
    """Return the tests with a benchmark that is equal natively and in a guest."""
    return tuple(test for test in known.tests if any(benchmark.name in KINDS for benchmark in test.benchmarks))


def _described(known: Catalogue, tests: Sequence[CatalogueTest]) -> tuple[Benchmark, ...]:
    return known.benchmarks([test.name for test in tests], TIMED_LANE.name)


def join_sides(
    described: Sequence[Benchmark], native: Sequence[NativePass], guest_counts: GuestCounts, unlike: Mapping[str, str]
) -> tuple[tuple[KernelBenchmark, ...], dict[str, str]]:
    """Return the benchmarks of both sides, and the reasons for omitted ones: those in `unlike`, and failures. Pure."""
    rows: list[KernelBenchmark] = []
    left_out: dict[str, str] = {}
    absent: Mapping[str, str] = {name: why for one in native for name, why in one.absent.items()}
    for benchmark in described:
        name = benchmark.name
        unit = unit_of(benchmark)
        passes = tuple(one.cycles[name] for one in native if name in one.cycles)
        if name in unlike:
            left_out[name] = unlike[name]
        elif name not in KINDS:
            left_out[name] = "it is not known whether it is equal on both sides"
        elif name not in guest_counts.counts:
            left_out[name] = "it was not measured in the guest"
        elif len(passes) < len(native):
            left_out[name] = absent.get(name, "it was not measured on this host")
        else:
            scale = BYTES_OF_KIB if unit == "KiB" else 1
            counts = tuple(amount * scale for amount in guest_counts.counts[name])
            rows.append(
                KernelBenchmark(
                    name=name, kind=KINDS[name], role=find_role(name), unit=unit, passes=passes, counts=counts
                )
            )
    return tuple(rows), left_out
