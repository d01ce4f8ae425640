"""Counts the benchmarks in a guest: a kernel like that of the host, booted once with the emulated PMU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kdyno.base.errors import InfrastructureError
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.boot.base import BootOrder, MachineSettings
from kdyno.boot.registry import open_machine
from kdyno.kernel.build import build
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of
from kdyno.kernel.plan import check_early, plan_build
from kdyno.kernel.recipe import KconfigValue, Recipe
from kdyno.kernel.source import fetch
from kdyno.measure.cycles.family import Family
from kdyno.measure.cycles.predict import cycles
from kdyno.measure.guest.job import Program, TestOrder
from kdyno.measure.guest.pmu_parts import CONTEXTS
from kdyno.measure.guest.pmu_record import PmuRecord, read_pmu_record
from kdyno.measure.workload.needs import Load
from kdyno.runs.session import Session
from kdyno.runs.single_boots import PmuRun, SingleBoots
from kdyno.understand.validate.mitigations import VULNERABILITIES, parse_listing

INTERRUPT = CONTEXTS.index("interrupt")
LISTING = ("sh", "-c", f"mkdir -p /sys; mount -t sysfs sysfs /sys 2>/dev/null; grep . {VULNERABILITIES}/*")


class GuestSilent(InfrastructureError):
    message = "the kernel that was built like that of this host did not boot in a guest: {reason}"
    hint = "see its console: kdyno boot {image} --lane model"


@dataclass(frozen=True)
class GuestCounts:
    """The counts of the emulated PMU in one boot."""

    events: tuple[str, ...]
    counts: Mapping[str, tuple[float, ...]]
    """By benchmark, the events of task and exception context per operation or byte."""


def build_as_host(
    source: str, config: Path, additions: Mapping[str, KconfigValue], state: State, talk: Talk
) -> tuple[Image, dict[str, str]]:
    """Build the image of the configuration and `additions`, and return it with .config. Raises what builds raise."""
    recipe, base = Recipe(kconfig=dict(additions)), f"file:{config}"
    check_early([recipe], base, state)
    plan = plan_build(recipe, fetch(source, state, talk.say), base, state, talk.say)
    with talk.working("building the kernel as this host's", is_estimate=True) as advance:
        image = build(plan, state, advance)
    return image, configuration_of(image)


def guest_mitigations(
    image: Image, settings: MachineSettings, words: tuple[str, ...], state: State, talk: Talk
) -> dict[str, str]:
    """Return the mitigations that a guest of this kernel reports.

    Raises GuestSilent, so that a kernel that doesn't boot is known before the benchmarks run.
    """
    machine = open_machine(settings)
    job = machine.describe().job(1, programs=(Program(name="mitigations", command=LISTING),))
    talk.say("booting the kernel, to see which mitigations are active")
    with state.scratch("once") as scratch:
        order = BootOrder("mitigations", image.program, words, job, 1, scratch, vmlinux=image.vmlinux)
        end = machine.boot(order)
    if end.status != "ok":
        raise GuestSilent(reason=end.reason, image=image.record.key[:12])
    return parse_listing(end.report.steps[0].stdout.decode(errors="replace"))


def count_in_guest(
    image: Image,
    orders: Sequence[TestOrder],
    family: Family,
    family_name: str,
    words: tuple[str, ...],
    seed: int,
    settings: MachineSettings,
    *,
    session: Session,
) -> GuestCounts:
    """Boot once with all events on the hardware of the family; `family_name` is its name in the request.

    A boot on record is not repeated. Raises BootForFileFailed.
    """
    run = SingleBoots(session).count(
        image,
        Load(tests=tuple(order.name for order in orders), params={order.name: order.params for order in orders}),
        seed=seed,
        events="all",
        family=family_name,
        cmdline=words,
        settings=settings,
    )
    return count_events(run, read_pmu_record(run.record), family)


def count_events(run: PmuRun, record: PmuRecord, family: Family) -> GuestCounts:
    """Return the events per unit of work of each benchmark, in its iteration with the median of modelled cycles. Pure.

    The summary of a boot shows this iteration. Others may include a task switch, or cold caches.
    """
    counts: dict[str, tuple[float, ...]] = {}
    for index, name in enumerate(run.benchmarks):
        region, work = record.regions.get(index), run.work.get(name, [])
        if region is None or not work or len(work) != len(region.iterations):
            continue
        iterations = [region.iterations[number].astype(np.float64) for number in sorted(region.iterations)]
        rows = [
            (contexts.sum(axis=0) - contexts[INTERRUPT]) / amount
            for contexts, amount in zip(iterations, work, strict=True)
        ]
        rows.sort(key=lambda events: float(cycles(events, record.names, family)))
        counts[name] = tuple(rows[len(rows) // 2].tolist())
    return GuestCounts(tuple(record.names), counts)
