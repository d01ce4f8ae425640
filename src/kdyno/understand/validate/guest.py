"""The same benchmarks in a guest: a kernel built as the host's, booted once with the emulated PMU."""

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
from kdyno.kernel.kconfig_check import read_config
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
    message = "the kernel that was built as this host's did not come up in a guest: {reason}"
    hint = "see its console: kdyno boot {image} --lane model"


@dataclass(frozen=True)
class GuestCounts:
    """What the emulated PMU counted of one boot."""

    events: tuple[str, ...]
    counts: Mapping[str, tuple[float, ...]]
    """By benchmark: events per operation or byte, of task and exception context."""


def build_as_host(
    source: str, config: Path, asked: Mapping[str, KconfigValue], state: State, talk: Talk
) -> tuple[Image, dict[str, str]]:
    """The image of this configuration with what is asked on top, and its own .config. Raises what builds raise."""
    recipe, base = Recipe(kconfig=dict(asked)), f"file:{config}"
    check_early([recipe], base, state)
    plan = plan_build(recipe, fetch(source, state, talk.say), base, state, talk.say)
    with talk.working("building the kernel as this host's", is_estimate=True) as advance:
        image = build(plan, state, advance)
    return image, read_config(image.config.read_text(encoding="utf-8", errors="replace"))


def guest_mitigations(
    image: Image, settings: MachineSettings, words: tuple[str, ...], state: State, talk: Talk
) -> dict[str, str]:
    """What a guest of this kernel says of its CPU's faults. Raises GuestSilent: so a kernel that doesn't boot is known
    before the benchmarks are run."""
    machine = open_machine(settings)
    job = machine.describe().job(1, programs=(Program(name="mitigations", command=LISTING),))
    talk.say("booting the kernel, to see which mitigations are active")
    with state.scratch("once") as scratch:
        order = BootOrder("mitigations", image.bzimage, words, job, 1, scratch, vmlinux=image.vmlinux)
        end = machine.boot(order)
    if end.status != "ok":
        raise GuestSilent(reason=end.reason, image=image.record.key[:12])
    return parse_listing(end.report.steps[0].stdout.decode(errors="replace"))


def count_in_guest(
    image: Image,
    orders: Sequence[TestOrder],
    family: Family,
    named: str,
    words: tuple[str, ...],
    seed: int,
    settings: MachineSettings,
    *,
    session: Session,
) -> GuestCounts:
    """Boot once with all events under the family's hardware; `named` is how the family was named.

    A boot that is on record isn't done again. Raises BootForFileFailed.
    """
    run = SingleBoots(session).count(
        image,
        Load(tests=tuple(order.name for order in orders), params={order.name: order.params for order in orders}),
        seed=seed,
        events="all",
        family=named,
        cmdline=words,
        settings=settings,
    )
    return counted(run, read_pmu_record(run.record), family)


def counted(run: PmuRun, record: PmuRecord, family: Family) -> GuestCounts:
    """Events per unit of work of each benchmark, in its iteration with the median of modelled cycles. Pure.

    That is the iteration which a boot's summary shows; the others may hold a switch to another task, or be cold.
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
