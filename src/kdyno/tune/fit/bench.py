"""The bench of a fit: builds and boots kernels of one source and configuration with one load on one machine."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.text import clean
from kdyno.boot.base import BootLimits
from kdyno.boot.platforms import NEEDS
from kdyno.boot.registry import default_machine
from kdyno.kernel.boot_tests import disable_boot_tests
from kdyno.kernel.build import BuildPlan, Configured, configured, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.images import configuration_of
from kdyno.kernel.knobs.kconfig import QUOTED, read_fragments
from kdyno.kernel.plan import check_early
from kdyno.kernel.recipe import KconfigValue, Recipe
from kdyno.kernel.source import KernelSource, fetch
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.measure.workload.named import load_named
from kdyno.runs.images import build_images
from kdyno.runs.one_boot import BootRequest as WantedBoot
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost, SingleBoots, open_equipped_machine
from kdyno.store.records import Boot
from kdyno.understand.coverage.measure import ExecutedCode, RecordSelection, measure

ESCAPED = re.compile(r"\\(.)")


class BaseFails(UserError):
    message = "the whole kernel does not pass {load}: {why}"
    hint = "see the output of `kdyno workload try`, and add missing symbols by --fragment FILE"


@dataclass(frozen=True)
class FitRequest:
    """The configuration to be fitted, and the load."""

    load: tuple[str, ...]
    """Names of tests, suites and workloads."""
    source: str
    config: str
    toolchain: str = "gcc"
    fragments: tuple[str, ...] = ()
    """Paths of Kconfig fragments on top of the configuration."""
    keep: tuple[str, ...] = ()
    """Patterns of symbols that stay."""
    seeds: tuple[int, ...] = (1,)
    """The seeds; each kernel boots once for each seed."""
    kernels: int = 24
    """The most kernels that may be built, besides the whole one."""


@dataclass(frozen=True)
class TrialKernel:
    """A kernel that was built, and its configuration: values by symbol, without CONFIG_."""

    image: Image
    config: Mapping[str, str]


class FitBench:
    """Plans, builds and boots kernels for one request."""

    def __init__(self, request: FitRequest, session: Session) -> None:
        self.request, self.session = request, session
        self.workload = load_named(request.load)
        needs = self.workload.needs()
        settings = default_machine(limits=BootLimits(silence=BootLimits().total))
        counting = settings.with_pmu(PmuConfig(events="edges", clock="instructions"))
        self.machine = open_equipped_machine(counting, needs, session.state, session.talk)
        self.about = self.machine.describe()
        part = self.workload.part(self.about.lane)
        self.job = self.about.job(part.iterations, tests=part.tests, programs=part.programs)
        self.recipe = Recipe(
            toolchain=request.toolchain, lines=True, kconfig={**_read_values(request), **needs.kconfig}
        )
        check_early([self.recipe], request.config, session.state)
        self.source: KernelSource = fetch(request.source, session.state, session.talk.say)

    def requirements(self) -> dict[str, str]:
        """Return by symbol why the workload or the guest needs it."""
        guest = {need.symbol: f"{need.why} (kdyno's guest)" for need in NEEDS["microvm"]}
        return {**dict.fromkeys(self.workload.needs().kconfig, "the workload needs it"), **guest}

    def plan(self, kconfig: Mapping[str, KconfigValue]) -> BuildPlan:
        """Return the plan of the kernel with these values on top of the base configuration."""
        recipe = self.recipe.model_copy(update={"kconfig": dict(kconfig)})
        return plan_build(recipe, self.source, self.request.config, self.session.state, cpu=self.machine.cpu)

    def configure(self, kconfig: Mapping[str, KconfigValue]) -> Configured:
        """Return the configuration with these values, as Kconfig's tools make it."""
        return configured(self.plan(kconfig), self.session.state)

    def build(self, plan: BuildPlan, name: str) -> Image:
        """Build the image of a plan; `name` is its name in messages. Raises BuildFailed and ConfigRefused."""
        [image] = build_images({name: (plan,)}, self.session.state, self.session.talk)[name]
        return image

    def boot(self, image: Image, name: str, job: Job) -> list[tuple[Path, Boot]]:
        """Boot the image once for each seed, and return PMU records and boots. Raises BootForFileFailed."""
        workload = self.workload if job is self.job else None
        cmdline = disable_boot_tests((), configuration_of(image))
        requests = [WantedBoot(f"{name}, seed {seed}", image, cmdline, job, seed) for seed in self.request.seeds]
        files = SingleBoots(self.session).for_files(self.machine, requests, "pmu", workload)
        return [(record, boot) for record, boot, _ in files]

    def boot_whole(self, image: Image, name: str, job: Job) -> list[tuple[Path, Boot]]:
        """Boot the whole kernel as `boot` does; it must pass. Raises BaseFails."""
        load = " ".join(self.request.load)
        try:
            boots = self.boot(image, name, job)
        except BootForFileLost:
            raise
        except BootForFileFailed as error:
            raise BaseFails(load=load, why=error) from error
        if reason_by_benchmark := {benchmark: reason for _, boot in boots for benchmark, reason in boot.broken.items()}:
            benchmark, reason = next(iter(reason_by_benchmark.items()))
            raise BaseFails(load=load, why=f"{benchmark}: {clean(reason)}")
        return boots

    def measure(self, image: Image, name: str, records: list[Path]) -> list[ExecutedCode]:
        """Return the executed code in each PMU record of an image."""
        measurements = []
        with self.session.talk.working(f"reading what {name} executed") as advance:
            for number, path in enumerate(records):
                advance(number, len(records), "")
                record = read_pmu_record(path, needs_regions=False)
                measurements.append(measure(record, image.vmlinux, RecordSelection(with_boot=True), name))
        return measurements


def _read_values(request: FitRequest) -> dict[str, KconfigValue]:
    """Return the values of all fragments by symbol; a later one replaces an earlier one."""
    return {value.symbol: _unquote(value.value) for value in read_fragments(request.fragments)}


def _unquote(value: str) -> str:
    """Return a value of .config as in a recipe: without quotes."""
    quoted = QUOTED.fullmatch(value)
    return ESCAPED.sub(r"\1", quoted[1]) if quoted else value
