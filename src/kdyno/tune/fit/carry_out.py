"""Fitting a configuration to a load: boot, see what ran, leave out the rest, and confirm it by kernels that pass."""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.text import clean, format_count
from kdyno.boot.base import Limits
from kdyno.boot.platforms import NEEDS
from kdyno.boot.qemu_config import QemuConfig
from kdyno.boot.registry import open_machine
from kdyno.kernel.build import BuildFailed, BuildPlan, Configured, configured, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.kconfig_check import ConfigRefused, explain, read_config, selectors
from kdyno.kernel.kconfig_tree import KconfigTree, read_tree
from kdyno.kernel.knobs.base import KconfigRequest
from kdyno.kernel.knobs.kconfig import MOST_BYTES, QUOTED, read_fragments
from kdyno.kernel.plan import check_early
from kdyno.kernel.recipe import KconfigValue, Recipe
from kdyno.kernel.source import Source, fetch
from kdyno.measure.guest.job import Job
from kdyno.measure.guest.pmu import PmuConfig
from kdyno.measure.guest.pmu_record import read_pmu_record
from kdyno.run.forecast import forecast_builds
from kdyno.run.images import build_images
from kdyno.run.one_boot import Wanted as WantedBoot
from kdyno.run.outlook import builds_ahead, span
from kdyno.run.prepare import KUNIT
from kdyno.run.session import Session
from kdyno.run.single_boots import BootForFileFailed, BootForFileLost, SingleBoots
from kdyno.store.records import Boot
from kdyno.tune.fit.evidence import Evidence, Functions, gathered, line_counts
from kdyno.tune.fit.load import load_of
from kdyno.tune.fit.model import FitKernel, FitSymbol, Fitted
from kdyno.tune.fit.splitting import Splitting, WontDo
from kdyno.tune.fit.symbols import GOING, Reason, held, in_order, lost, reasons, selected_only, with_whom
from kdyno.understand.coverage.kbuild import files_of_symbols
from kdyno.understand.coverage.measure import Measured, Wanted, measure
from kdyno.understand.coverage.sources import Tree
from kdyno.understand.size.report import size_report

ESCAPED = re.compile(r"\\(.)")
LONGEST_REASON = 300
"""Characters of why a kernel won't do, in a fragment."""


class NoKconfig(UserError):
    message = "{spec} has no Kconfig files, so that nothing is known of its symbols"
    hint = "name the source of a kernel: debian:linux-source-6.12, a directory, a tarball, or git:DIR#REV"


class UnknownSymbol(UserError):
    message = "--keep {pattern} fits no symbol of {spec}"
    hint = "did you mean {near}? `*` stands for any characters"


class BaseFails(UserError):
    message = "the kernel that is to be made smaller doesn't pass {load}: {why}"
    hint = "`kdyno workload try` shows what a workload writes; --fragment FILE adds what the kernel lacks"


class NothingToLeaveOut(UserError):
    message = "nothing of {config} can be left out for {load}: each of its {count:,} symbols has a reason to stay"
    hint = "`kdyno coverage IMAGE --unused` shows what didn't run; start from a larger configuration"


@dataclass(frozen=True)
class Request:
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
class Small:
    """A kernel that passed, and what it was made of."""

    image: Image
    config: dict[str, str]
    on: tuple[str, ...]
    """What it was asked to set, for nothing that it has selects it any more."""


@dataclass
class Bench:
    """Builds and boots kernels for one request."""

    request: Request
    session: Session
    passed: dict[tuple[str, ...], Small] = field(default_factory=dict)
    """By what was switched off."""
    unsupported: set[str] = field(default_factory=set)
    """Benchmarks that the whole kernel can't run either."""
    selected: tuple[str, ...] = ()
    """Symbols that stay, that others select, and that can be set without these."""

    def __post_init__(self) -> None:
        self.workload = load_of(self.request.load)
        needs = self.workload.needs()
        settings = QemuConfig(limits=Limits(silence=Limits().total)).suited(needs.memory_mb, needs.cpus)
        self.machine = open_machine(settings.counting(PmuConfig(events="edges", clock="instructions")))
        if needs.packages:
            self.machine.provide(needs.packages, needs.unpack, self.session.state, self.session.talk)
        self.about = self.machine.describe()
        part = self.workload.part(self.about.lane)
        self.job = self.about.job(part.iterations, tests=part.tests, programs=part.programs)
        self.recipe = Recipe(toolchain=self.request.toolchain, lines=True, kconfig=_asked(self.request, needs.kconfig))
        check_early([self.recipe], self.request.config, self.session.state)
        self.source: Source = fetch(self.request.source, self.session.state, self.session.talk.say)

    def asked(self) -> dict[str, str]:
        """Who wants a symbol, by symbol."""
        guest = {need.symbol: f"{need.why} (kdyno's guest)" for need in NEEDS["microvm"]}
        return {**dict.fromkeys(self.workload.needs().kconfig, "the workload needs it"), **guest}

    def plan(self, kconfig: Mapping[str, KconfigValue]) -> BuildPlan:
        recipe = self.recipe.model_copy(update={"kconfig": dict(kconfig)})
        return plan_build(recipe, self.source, self.request.config, self.session.state, cpu=self.machine.cpu)

    def build(self, plan: BuildPlan, name: str) -> Image:
        [image] = build_images({name: (plan,)}, self.session.state, self.session.talk)[name]
        return image

    def boots(self, image: Image, name: str, job: Job) -> list[tuple[Path, Boot]]:
        """PMU record and boot for each seed. Raises BootForFileFailed."""
        is_asked = job is self.job
        words = (f"{KUNIT}0",) if image.record.recipe.kconfig.get("KUNIT") in (True, "y") else ()
        boots = []
        for seed in self.request.seeds:
            wanted = WantedBoot(f"{name}, seed {seed}", image, words, job, seed)
            record, boot, _ = SingleBoots(self.session).for_file(
                self.machine, wanted, "pmu", self.workload if is_asked else None
            )
            boots.append((record, boot))
        return boots

    def measured(self, image: Image, name: str, job: Job) -> list[Measured]:
        """What each boot executed. Raises BaseFails."""
        try:
            boots = self.boots(image, name, job)
        except BootForFileLost:
            raise
        except BootForFileFailed as error:
            raise BaseFails(load=" ".join(self.request.load), why=error) from error
        if broken := {benchmark: why for _, boot in boots for benchmark, why in boot.broken.items()}:
            benchmark, why = next(iter(broken.items()))
            raise BaseFails(load=" ".join(self.request.load), why=f"{benchmark}: {clean(why)}")
        self.unsupported = {benchmark for _, boot in boots for benchmark in boot.unsupported}
        measurements = []
        with self.session.talk.working(f"reading what {name} executed") as advance:
            for number, (path, _) in enumerate(boots):
                advance(number, len(boots), "")
                record = read_pmu_record(path, needs_regions=False)
                measurements.append(measure(record, image.vmlinux, Wanted(with_boot=True), name))
        return measurements

    def configured(self, off: tuple[str, ...]) -> Configured:
        """The configuration without these symbols, as Kconfig's tools make it."""
        return configured(self.plan(self._without(off)), self.session.state)

    def why_not(
        self, off: tuple[str, ...], made: Configured, config: Mapping[str, str], kconfig: KconfigTree
    ) -> str | None:
        """Why a kernel without these symbols won't do; None if it does. One that was lost is no answer: raises."""
        vain = {miss.request.symbol for miss in made.unmet}
        vain |= {name for name in self.selected if selectors(name, made.config, kconfig)}
        asks = {name: value for name, value in self._without(off).items() if name not in vain}
        asks |= {name: False for name, value in config.items() if value == "y" and made.config.get(name, "n") == "n"}
        name = f"the kernel without {format_count(len(off), 'symbol')}"
        try:
            image = self.build(self.plan(asks), name)
            boots = self.boots(image, name, self.job)
        except (BuildFailed, ConfigRefused) as error:
            return clean(str(error))[:LONGEST_REASON]
        except BootForFileLost:
            raise
        except BootForFileFailed as error:
            return clean(str(error.facts["reason"]))[:LONGEST_REASON]
        for _, boot in boots:
            for benchmark, why in {**boot.unsupported, **boot.broken}.items():
                if benchmark not in self.unsupported:
                    return f"{benchmark}: {clean(why)}"[:LONGEST_REASON]
        self.passed[off] = Small(image, made.config, tuple(name for name in self.selected if name in asks))
        return None

    def _without(self, off: tuple[str, ...]) -> dict[str, KconfigValue]:
        return {**dict.fromkeys(self.selected, True), **self.recipe.kconfig, **dict.fromkeys(off, False)}


def _asked(request: Request, needed: Mapping[str, KconfigValue]) -> dict[str, KconfigValue]:
    """What is asked on top of the base, in one table: the fragments in their order, then what the workload needs."""
    of_fragments: dict[str, KconfigValue] = {
        wanted.symbol: _plain(wanted.value) for wanted in read_fragments(request.fragments)
    }
    return {**of_fragments, **needed}


def _plain(value: str) -> str:
    """A value of .config as a recipe has it: without quotes."""
    quoted = QUOTED.fullmatch(value)
    return ESCAPED.sub(r"\1", quoted[1]) if quoted else value


def fit(request: Request, session: Session) -> Fitted:
    """Find out what the load needs. Images and boots are kept: the same call goes on where it was interrupted.

    Raises the errors above, and what sources, builds, machines and stores raise.
    """
    bench = Bench(request, session)
    plan = bench.plan(bench.recipe.kconfig)
    kconfig = read_tree(plan.tree)
    if not kconfig.entries:
        raise NoKconfig(spec=request.source)
    asked = {**bench.asked(), **_kept(request, kconfig)}
    for line in builds_ahead(forecast_builds({"the whole kernel": (plan,)}, session.state)):
        session.talk.say(line)
    image = bench.build(plan, "the whole kernel")
    config = read_config(read_whole(image.config, MOST_BYTES).decode(errors="replace"))
    of = reasons(config, kconfig, _evidence(bench, image, plan, config), asked)
    going = in_order(of, kconfig)
    of |= held(going, of, config, kconfig)
    going = [symbol for symbol in going if of[symbol].why in GOING]
    bench.selected = tuple(name for name in selected_only(of, config, kconfig) if name not in bench.recipe.kconfig)
    if not going:
        raise NothingToLeaveOut(config=request.config, load=" ".join(request.load), count=len(of))
    splitting = Splitting(request.kernels)
    session.talk.say(f"{format_count(len(going), 'symbol')} of {len(of):,} may go")
    _search(splitting, bench, going, of, config, kconfig, image.record.build_seconds)
    small = bench.passed.get(splitting.off)
    return _fitted(bench, image, config, of, kconfig, splitting, small)


def _kept(request: Request, kconfig: KconfigTree) -> dict[str, str]:
    """The symbols that --keep names. Raises UnknownSymbol."""
    kept: dict[str, str] = {}
    for pattern in request.keep:
        name = pattern.removeprefix("CONFIG_")
        fitting = [symbol for symbol in kconfig.entries if fnmatchcase(symbol, name)]
        if not fitting:
            [near] = difflib.get_close_matches(name, kconfig.entries, n=1, cutoff=0)
            raise UnknownSymbol(pattern=pattern, spec=request.source, near=near)
        kept |= dict.fromkeys(fitting, f"--keep {pattern}")
    return kept


def _evidence(bench: Bench, image: Image, plan: BuildPlan, config: Mapping[str, str]) -> dict[str, Evidence]:
    """What ran of the code of each symbol, with the load and without."""
    start = line_counts(bench.measured(image, "the start alone", bench.about.job(1)))
    measured = bench.measured(image, "the load", bench.job)
    load, tree = line_counts(measured), Tree(plan.tree)
    symbols = {symbol for symbol, value in config.items() if value == "y"}
    return gathered(
        symbols,
        files_of_symbols(plan.tree, load),
        lambda file: tree.text(file, 0) or (),
        load,
        start,
        Functions(measured[0].report.functions),
    )


def _search(
    splitting: Splitting,
    bench: Bench,
    going: Sequence[str],
    of: Mapping[str, Reason],
    config: Mapping[str, str],
    kconfig: KconfigTree,
    seconds: float,
) -> None:
    """Try kernels until it is known which of the symbols can go; `seconds` is what one takes to build, about."""
    asked = splitting.run(going)
    try:
        off = next(asked)
        while True:
            without = f"without {format_count(len(off), 'symbol')}"
            made = bench.configured(off)
            failure = None
            if gone := lost(of, made.config):
                failure = WontDo(f"{gone[0]} went with it ({of[gone[0]].text})", is_built=False)
                bench.session.talk.say(f"{without}: {failure.why}")
            else:
                number = f"kernel {splitting.kernels + 1} of at most {splitting.most}"
                bench.session.talk.say(f"{number}: {without}; {span(seconds)} at most to build")
                if why := bench.why_not(off, made, config, kconfig):
                    failure = WontDo(why)
                bench.session.talk.say(f"  won't do: {why}" if why else "  passes")
            off = asked.send(failure)
    except StopIteration:
        return


def _fitted(
    bench: Bench,
    image: Image,
    config: Mapping[str, str],
    of: Mapping[str, Reason],
    kconfig: KconfigTree,
    splitting: Splitting,
    small: Small | None,
) -> Fitted:
    final = small.config if small else dict(config)
    request = bench.request
    texts = {
        **{symbol: Reason(why="culprit", text=f"without it: {why}") for symbol, why in splitting.culprits.items()},
        **{symbol: Reason(why="untried", text=f"not tried alone; {why}") for symbol, why in splitting.untried.items()},
    }
    rows = []
    for symbol in sorted(of):
        is_on = final.get(symbol, "n") != "n"
        reason = texts.get(symbol, of[symbol])
        if is_on and reason.why in GOING:
            reason = Reason(
                why="selected", text=explain(KconfigRequest(symbol=symbol, value="n", by="fit"), final, kconfig)
            )
        elif not is_on and symbol not in splitting.off:
            with_others = with_whom(symbol, config, final, kconfig)
            reason = Reason(why="along", text=f"it went with {with_others}" if with_others else "Kconfig took it along")
        is_set = small is not None and symbol in small.on
        rows.append(FitSymbol(name=symbol, is_on=is_on, is_set=is_set, why=reason.why, text=reason.text))
    sizes = size_report(str(image.directory), str(small.image.directory), bench.session.state).totals if small else ()
    return Fitted(
        load=request.load,
        source=f"{image.record.source.version} ({image.record.source.origin})",
        config=request.config,
        fragments=request.fragments,
        toolchain=image.record.toolchain.banner,
        lane=bench.about.lane,
        seeds=request.seeds,
        before=_kernel(image, config),
        after=_kernel(small.image, final) if small else None,
        sizes=sizes,
        kernels=splitting.kernels,
        modules=sum(value == "m" for value in config.values()),
        symbols=tuple(rows),
        switched_on=tuple(sorted(name for name, value in final.items() if value == "y" and config.get(name) != "y")),
    )


def _kernel(image: Image, config: Mapping[str, str]) -> FitKernel:
    record = image.record
    return FitKernel(
        key=record.key,
        symbols=sum(value == "y" for value in config.values()),
        bzimage=record.sizes.bzimage,
        text=record.sizes.text,
    )
