"""Where a fit builds and boots its kernels: one source, one configuration, one load, one machine."""

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
from kdyno.kernel.build import BuildPlan, Configured, configured, plan_build
from kdyno.kernel.image import Image
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
from kdyno.runs.prepare import KUNIT
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost, SingleBoots, open_equipped_machine
from kdyno.store.records import Boot
from kdyno.understand.coverage.measure import ExecutedCode, RecordSelection, measure

ESCAPED = re.compile(r"\\(.)")


class BaseFails(UserError):
    message = "the kernel that is to be made smaller doesn't pass {load}: {why}"
    hint = "`kdyno workload try` shows what a workload writes; --fragment FILE adds what the kernel lacks"


@dataclass(frozen=True)
class FitRequest:
    """What is to be fitted to what."""

    load: tuple[str, ...]
    """Tests, suites, workloads."""
    source: str
    config: str
    toolchain: str = "gcc"
    fragments: tuple[str, ...] = ()
    """Paths, on top of the configuration."""
    keep: tuple[str, ...] = ()
    """Patterns of symbols that stay."""
    seeds: tuple[int, ...] = (1,)
    """One boot of each kernel for each."""
    kernels: int = 24
    """That may be built at most, beside the whole one."""


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
            toolchain=request.toolchain, lines=True, kconfig={**_of_fragments(request), **needs.kconfig}
        )
        check_early([self.recipe], request.config, session.state)
        self.source: KernelSource = fetch(request.source, session.state, session.talk.say)

    def requirements(self) -> dict[str, str]:
        """Why the workload or the guest needs a symbol, by symbol."""
        guest = {need.symbol: f"{need.why} (kdyno's guest)" for need in NEEDS["microvm"]}
        return {**dict.fromkeys(self.workload.needs().kconfig, "the workload needs it"), **guest}

    def plan(self, kconfig: Mapping[str, KconfigValue]) -> BuildPlan:
        """The plan of the kernel that has these values on top of the base configuration."""
        recipe = self.recipe.model_copy(update={"kconfig": dict(kconfig)})
        return plan_build(recipe, self.source, self.request.config, self.session.state, cpu=self.machine.cpu)

    def configure(self, kconfig: Mapping[str, KconfigValue]) -> Configured:
        """The configuration with these values, as Kconfig's tools make it."""
        return configured(self.plan(kconfig), self.session.state)

    def build(self, plan: BuildPlan, name: str) -> Image:
        """The image of a plan; `name` is what people know it by. Raises BuildFailed and ConfigRefused."""
        [image] = build_images({name: (plan,)}, self.session.state, self.session.talk)[name]
        return image

    def boot(self, image: Image, name: str, job: Job) -> list[tuple[Path, Boot]]:
        """PMU record and boot for each seed. Raises BootForFileFailed."""
        workload = self.workload if job is self.job else None
        cmdline = (f"{KUNIT}0",) if image.record.recipe.kconfig.get("KUNIT") in (True, "y") else ()
        boots = []
        for seed in self.request.seeds:
            wanted = WantedBoot(f"{name}, seed {seed}", image, cmdline, job, seed)
            record, boot, _ = SingleBoots(self.session).for_file(self.machine, wanted, "pmu", workload)
            boots.append((record, boot))
        return boots

    def boot_whole(self, image: Image, name: str, job: Job) -> list[tuple[Path, Boot]]:
        """The same of the kernel that is to be made smaller, which must pass. Raises BaseFails."""
        load = " ".join(self.request.load)
        try:
            boots = self.boot(image, name, job)
        except BootForFileLost:
            raise
        except BootForFileFailed as error:
            raise BaseFails(load=load, why=error) from error
        if broken := {benchmark: why for _, boot in boots for benchmark, why in boot.broken.items()}:
            benchmark, why = next(iter(broken.items()))
            raise BaseFails(load=load, why=f"{benchmark}: {clean(why)}")
        return boots

    def measure(self, image: Image, name: str, records: list[Path]) -> list[ExecutedCode]:
        """What each PMU record of an image says that was executed."""
        measurements = []
        with self.session.talk.working(f"reading what {name} executed") as advance:
            for number, path in enumerate(records):
                advance(number, len(records), "")
                record = read_pmu_record(path, needs_regions=False)
                measurements.append(measure(record, image.vmlinux, RecordSelection(with_boot=True), name))
        return measurements


def _of_fragments(request: FitRequest) -> dict[str, KconfigValue]:
    """What the fragments ask for on top of the base, in their order, in one table."""
    return {wanted.symbol: _unquoted(wanted.value) for wanted in read_fragments(request.fragments)}


def _unquoted(value: str) -> str:
    """A value of .config as a recipe has it: without quotes."""
    quoted = QUOTED.fullmatch(value)
    return ESCAPED.sub(r"\1", quoted[1]) if quoted else value
