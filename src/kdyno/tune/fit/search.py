"""Fitting a configuration to a load: boot, see what ran, leave out the rest, and confirm it by kernels that pass."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kdyno.base.errors import UserError
from kdyno.base.files import read_whole
from kdyno.base.text import clean, format_count
from kdyno.kernel.build import BuildFailed, BuildPlan, Configured
from kdyno.kernel.kconfig_check import ConfigRefused, read_config, selectors
from kdyno.kernel.kconfig_tree import KconfigTree, read_tree
from kdyno.kernel.knobs.kconfig import MOST_BYTES
from kdyno.kernel.recipe import KconfigValue
from kdyno.runs.forecast import forecast_builds
from kdyno.runs.outlook import builds_ahead, span
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost
from kdyno.tune.fit.bench import FitBench, FitRequest, TrialKernel
from kdyno.tune.fit.evidence import Evidence, Functions, gathered, line_counts
from kdyno.tune.fit.model import Fitted
from kdyno.tune.fit.report import SmallKernel, make_report
from kdyno.tune.fit.splitting import Splitting, WontDo
from kdyno.tune.fit.symbols import (
    SymbolReason,
    find_dependencies,
    find_reasons,
    find_selected,
    missing_firm,
    removal_order,
)
from kdyno.understand.coverage.kbuild import files_of_symbols
from kdyno.understand.coverage.sources import Tree

LONGEST_REASON = 300
"""Characters of why a kernel won't do, in a fragment."""


class NoKconfig(UserError):
    message = "{spec} has no Kconfig files, so that nothing is known of its symbols"
    hint = "name the source of a kernel: debian:linux-source-6.12, a directory, a tarball, or git:DIR#REV"


class UnknownSymbol(UserError):
    message = "--keep {pattern} fits no symbol of {spec}"
    hint = "did you mean {near}? `*` stands for any characters"


class NothingToLeaveOut(UserError):
    message = "nothing of {config} can be left out for {load}: each of its {count:,} symbols has a reason to stay"
    hint = "`kdyno coverage IMAGE --unused` shows what didn't run; start from a larger configuration"


def fit(request: FitRequest, session: Session) -> Fitted:
    """Find out what the load needs. Images and boots are kept: the same call goes on where it was interrupted.

    Raises the errors above, BaseFails, and what sources, builds, machines and stores raise.
    """
    bench = FitBench(request, session)
    plan = bench.plan(bench.recipe.kconfig)
    kconfig = read_tree(plan.tree)
    if not kconfig.entries:
        raise NoKconfig(spec=request.source)
    required = {**bench.requirements(), **_kept_by_user(request, kconfig)}
    for line in builds_ahead(forecast_builds({"the whole kernel": (plan,)}, session.state)):
        session.talk.say(line)
    image = bench.build(plan, "the whole kernel")
    whole = TrialKernel(image, read_config(read_whole(image.config, MOST_BYTES).decode(errors="replace")))
    evidence, unsupported = _gather_evidence(bench, plan, whole)
    reasons = find_reasons(whole.config, kconfig, evidence, required)
    reasons |= find_dependencies(removal_order(reasons, kconfig), reasons, whole.config, kconfig)
    candidates = removal_order(reasons, kconfig)
    if not candidates:
        raise NothingToLeaveOut(config=request.config, load=" ".join(request.load), count=len(reasons))
    selected = [name for name in find_selected(reasons, whole.config, kconfig) if name not in bench.recipe.kconfig]
    kernels = SmallerKernels(bench, whole.config, kconfig, tuple(selected), unsupported)
    splitting = Splitting(request.kernels)
    session.talk.say(f"{format_count(len(candidates), 'symbol')} of {len(reasons):,} may go")
    _search(splitting, kernels, candidates, reasons, whole.image.record.build_seconds)
    small = kernels.passed.get(splitting.disabled)
    return make_report(bench, whole, small, reasons, kconfig, splitting)


def _kept_by_user(request: FitRequest, kconfig: KconfigTree) -> dict[str, str]:
    """The symbols that --keep names, and which pattern does. Raises UnknownSymbol."""
    kept: dict[str, str] = {}
    for pattern in request.keep:
        name = pattern.removeprefix("CONFIG_")
        fitting = [symbol for symbol in kconfig.entries if fnmatchcase(symbol, name)]
        if not fitting:
            [near] = difflib.get_close_matches(name, kconfig.entries, n=1, cutoff=0)
            raise UnknownSymbol(pattern=pattern, spec=request.source, near=near)
        kept |= dict.fromkeys(fitting, f"--keep {pattern}")
    return kept


def _gather_evidence(bench: FitBench, plan: BuildPlan, whole: TrialKernel) -> tuple[dict[str, Evidence], set[str]]:
    """What ran of the code of each symbol, with the load and without; and benchmarks that the whole kernel can't run.

    Raises BaseFails.
    """
    start_boots = bench.boot_whole(whole.image, "the start alone", bench.about.job(1))
    start = bench.measure(whole.image, "the start alone", [record for record, _ in start_boots])
    load_boots = bench.boot_whole(whole.image, "the load", bench.job)
    load = bench.measure(whole.image, "the load", [record for record, _ in load_boots])
    counts, tree = line_counts(load), Tree(plan.tree)
    evidence = gathered(
        {symbol for symbol, value in whole.config.items() if value == "y"},
        files_of_symbols(plan.tree, counts),
        lambda file: tree.text(file, 0) or (),
        counts,
        line_counts(start),
        Functions(load[0].report.functions),
    )
    return evidence, {benchmark for _, boot in load_boots for benchmark in boot.unsupported}


@dataclass
class SmallerKernels:
    """Kernels with symbols disabled: what Kconfig makes of that, and whether they pass."""

    bench: FitBench
    whole: Mapping[str, str]
    """The configuration of the whole kernel."""
    kconfig: KconfigTree
    selected: tuple[str, ...]
    """Symbols that stay, that others select, and that can be set without these."""
    unsupported: set[str]
    """Benchmarks that the whole kernel can't run either."""
    passed: dict[tuple[str, ...], SmallKernel] = field(default_factory=dict)
    """By what was disabled."""

    def configure(self, disabled: tuple[str, ...]) -> Configured:
        """The configuration without these symbols, as Kconfig's tools make it."""
        return self.bench.configure(self._asks(disabled))

    def failure(self, disabled: tuple[str, ...], made: Configured) -> str | None:
        """Why a kernel without these symbols won't do; None if it does. `made` is its configuration.

        A kernel that was lost is no answer: raises BootForFileLost.
        """
        vain = {miss.request.symbol for miss in made.unmet}
        vain |= {name for name in self.selected if selectors(name, made.config, self.kconfig)}
        asks = {name: value for name, value in self._asks(disabled).items() if name not in vain}
        gone = [name for name, value in self.whole.items() if value == "y" and made.config.get(name, "n") == "n"]
        asks |= dict.fromkeys(gone, False)
        name = f"the kernel without {format_count(len(disabled), 'symbol')}"
        try:
            image = self.bench.build(self.bench.plan(asks), name)
            boots = self.bench.boot(image, name, self.bench.job)
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
        explicitly_enabled = tuple(name for name in self.selected if name in asks)
        self.passed[disabled] = SmallKernel(image, made.config, explicitly_enabled)
        return None

    def _asks(self, disabled: tuple[str, ...]) -> dict[str, KconfigValue]:
        return {**dict.fromkeys(self.selected, True), **self.bench.recipe.kconfig, **dict.fromkeys(disabled, False)}


def _search(
    splitting: Splitting,
    kernels: SmallerKernels,
    candidates: Sequence[str],
    reasons: Mapping[str, SymbolReason],
    build_seconds: float,
) -> None:
    """Try kernels until it is known which of the candidates can go; one takes about `build_seconds` to build."""
    say = kernels.bench.session.talk.say
    trials = splitting.run(candidates)
    try:
        disabled = next(trials)
        while True:
            without = f"without {format_count(len(disabled), 'symbol')}"
            made = kernels.configure(disabled)
            failure = None
            if missing := missing_firm(reasons, made.config):
                failure = WontDo(f"{missing[0]} went with it ({reasons[missing[0]].text})", is_built=False)
                say(f"{without}: {failure.why}")
            else:
                number = f"kernel {splitting.kernels + 1} of at most {splitting.most}"
                say(f"{number}: {without}; {span(build_seconds)} at most to build")
                if why := kernels.failure(disabled, made):
                    failure = WontDo(why)
                say(f"  won't do: {why}" if why else "  passes")
            disabled = trials.send(failure)
    except StopIteration:
        return
