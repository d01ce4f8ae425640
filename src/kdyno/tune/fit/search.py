"""Fits a configuration to a load: boots, records what ran, leaves out the rest, and confirms it by trials."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from kdyno.base.errors import UserError
from kdyno.base.text import clean, format_count
from kdyno.kernel.build import BuildFailed, BuildPlan, Configured
from kdyno.kernel.images import configuration_of
from kdyno.kernel.kconfig_check import ConfigRefused, selectors
from kdyno.kernel.kconfig_tree import KconfigTree, read_tree
from kdyno.kernel.recipe import KconfigValue
from kdyno.runs.forecast import forecast_builds
from kdyno.runs.outlook import builds_ahead, span
from kdyno.runs.session import Session
from kdyno.runs.single_boots import BootForFileFailed, BootForFileLost
from kdyno.tune.fit.bench import FitBench, FitRequest, TrialKernel
from kdyno.tune.fit.evidence import Evidence, Functions, gather_evidence, line_counts
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
"""The most characters of the reason why a kernel fails, in a fragment."""


class NoKconfig(UserError):
    message = "{spec} has no Kconfig files, so that its symbols are not known"
    hint = "name the source of a kernel: debian:linux-source-6.12, a directory, a tarball, or git:DIR#REV"


class UnknownSymbol(UserError):
    message = "--keep {pattern} matches no symbol of {spec}"
    hint = "did you mean {near}? `*` matches any characters"


class NothingToLeaveOut(UserError):
    message = "nothing of {config} can be left out for {load}: each of its {count:,} symbols has a reason to stay"
    hint = "start from a larger configuration; `kdyno coverage IMAGE --unused` shows the code that didn't run"


def fit(request: FitRequest, session: Session) -> Fitted:
    """Find the symbols that the load needs.

    Images and boots are kept: the same call continues where it was interrupted.

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
    whole = TrialKernel(image, configuration_of(image))
    evidence, unsupported = _boot_for_evidence(bench, plan, whole)
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
    """Return the symbols that --keep names, with their patterns. Raises UnknownSymbol."""
    pattern_by_symbol: dict[str, str] = {}
    for pattern in request.keep:
        name = pattern.removeprefix("CONFIG_")
        fitting = [symbol for symbol in kconfig.entries if fnmatchcase(symbol, name)]
        if not fitting:
            [near] = difflib.get_close_matches(name, kconfig.entries, n=1, cutoff=0)
            raise UnknownSymbol(pattern=pattern, spec=request.source, near=near)
        pattern_by_symbol |= dict.fromkeys(fitting, f"--keep {pattern}")
    return pattern_by_symbol


def _boot_for_evidence(bench: FitBench, plan: BuildPlan, whole: TrialKernel) -> tuple[dict[str, Evidence], set[str]]:
    """Boot the whole kernel with and without the load. Raises BaseFails.

    Returns the evidence by symbol, and the benchmarks that the whole kernel can't run.
    """
    start_boots = bench.boot_whole(whole.image, "the start alone", bench.about.job(1))
    start = bench.measure(whole.image, "the start alone", [record for record, _ in start_boots])
    load_boots = bench.boot_whole(whole.image, "the load", bench.job)
    load = bench.measure(whole.image, "the load", [record for record, _ in load_boots])
    counts, tree = line_counts(load), Tree(plan.tree)
    evidence = gather_evidence(
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
    """Kernels with disabled symbols: their configurations, and whether they pass."""

    bench: FitBench
    whole: Mapping[str, str]
    """The configuration of the whole kernel."""
    kconfig: KconfigTree
    selected: tuple[str, ...]
    """Symbols that stay, and that others select, but that can be set explicitly."""
    unsupported: set[str]
    """Benchmarks that the whole kernel can't run either."""
    passed: dict[tuple[str, ...], SmallKernel] = field(default_factory=dict)
    """The kernels that passed, by their disabled symbols."""

    def configure(self, disabled: tuple[str, ...]) -> Configured:
        """Return the configuration without these symbols, as Kconfig's tools make it."""
        return self.bench.configure(self._asks(disabled))

    def failure(self, disabled: tuple[str, ...], configured: Configured) -> str | None:
        """Return why a kernel without these symbols fails; None if it passes. `configured` is its configuration.

        Raises BootForFileLost if the host lost the boot, which is not an answer.
        """
        vain = {miss.request.symbol for miss in configured.unmet}
        vain |= {name for name in self.selected if selectors(name, configured.config, self.kconfig)}
        asks = {name: value for name, value in self._asks(disabled).items() if name not in vain}
        removed = [
            name for name, value in self.whole.items() if value == "y" and configured.config.get(name, "n") == "n"
        ]
        asks |= dict.fromkeys(removed, False)
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
            for benchmark, reason in {**boot.unsupported, **boot.broken}.items():
                if benchmark not in self.unsupported:
                    return f"{benchmark}: {clean(reason)}"[:LONGEST_REASON]
        explicitly_enabled = tuple(name for name in self.selected if name in asks)
        self.passed[disabled] = SmallKernel(image, configured.config, explicitly_enabled)
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
    """Try kernels until each candidate is decided; a build takes about `build_seconds`."""
    say = kernels.bench.session.talk.say
    trials = splitting.run(candidates)
    try:
        disabled = next(trials)
        while True:
            label = f"without {format_count(len(disabled), 'symbol')}"
            configured = kernels.configure(disabled)
            failure = None
            if missing_symbols := missing_firm(reasons, configured.config):
                failure = WontDo(
                    f"{missing_symbols[0]} went with it ({reasons[missing_symbols[0]].text})", is_built=False
                )
                say(f"{label}: {failure.why}")
            else:
                number = f"kernel {splitting.kernels + 1} of at most {splitting.most}"
                say(f"{number}: {label}; {span(build_seconds)} at most to build")
                if reason := kernels.failure(disabled, configured):
                    failure = WontDo(reason)
                say(f"  won't do: {reason}" if reason else "  passes")
            disabled = trials.send(failure)
    except StopIteration:
        return
