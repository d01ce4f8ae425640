"""The report of a fit for `kdyno fit-config`: a reason for each symbol, and both kernels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kdyno.base.state import State
from kdyno.kernel.kconfig_check import explain
from kdyno.kernel.kconfig_tree import KconfigTree
from kdyno.kernel.knobs.base import KconfigRequest
from kdyno.tune.fit.bench import FitBench, TrialKernel
from kdyno.tune.fit.model import FitKernel, FitSymbol, Fitted
from kdyno.tune.fit.splitting import Splitting
from kdyno.tune.fit.symbols import REMOVABLE, SymbolReason, removal_causes
from kdyno.understand.size.model import KindTotal
from kdyno.understand.size.report import size_report


@dataclass(frozen=True)
class SmallKernel(TrialKernel):
    """A smaller kernel that passed."""

    explicitly_enabled: tuple[str, ...]
    """Symbols that were set explicitly, since no symbol of the kernel selects them any more."""


def make_report(
    bench: FitBench,
    whole: TrialKernel,
    small: SmallKernel | None,
    reasons: Mapping[str, SymbolReason],
    kconfig: KconfigTree,
    splitting: Splitting,
) -> Fitted:
    """Return the report. `small` is the smallest kernel that passed; None if no symbol could be left out."""
    request, record = bench.request, whole.image.record
    final = (small or whole).config
    enabled = small.explicitly_enabled if small else ()
    switched_on = (name for name, value in final.items() if value == "y" and whole.config.get(name) != "y")
    return Fitted(
        load=request.load,
        source=f"{record.source.version} ({record.source.origin})",
        config=request.config,
        fragments=request.fragments,
        toolchain=record.toolchain.banner,
        lane=bench.about.lane,
        seeds=request.seeds,
        before=_figures(whole),
        after=_figures(small) if small else None,
        sizes=_sizes(whole, small, bench.session.state) if small else (),
        kernels=splitting.kernels,
        modules=sum(value == "m" for value in whole.config.values()),
        symbols=tuple(
            FitSymbol(
                name=symbol,
                is_on=final.get(symbol, "n") != "n",
                is_set=symbol in enabled,
                why=reason.why,
                text=reason.text,
            )
            for symbol, reason in sorted(final_reasons(reasons, whole.config, final, kconfig, splitting).items())
        ),
        switched_on=tuple(sorted(switched_on)),
    )


def final_reasons(
    reasons: Mapping[str, SymbolReason],
    config: Mapping[str, str],
    final: Mapping[str, str],
    kconfig: KconfigTree,
    splitting: Splitting,
) -> dict[str, SymbolReason]:
    """Return the final reason of each symbol, from the reasons before the search and from its result. Pure.

    `config` is the configuration of the whole kernel, `final` that of the chosen kernel.
    """
    reason_by_symbol = {
        **{
            symbol: SymbolReason(why="culprit", text=f"without it: {cause}")
            for symbol, cause in splitting.culprits.items()
        },
        **{
            symbol: SymbolReason(why="untried", text=f"not tried alone; {cause}")
            for symbol, cause in splitting.untried.items()
        },
    }
    final_reason: dict[str, SymbolReason] = {}
    for symbol, first_reason in reasons.items():
        is_on = final.get(symbol, "n") != "n"
        reason = reason_by_symbol.get(symbol, first_reason)
        if is_on and reason.why in REMOVABLE:
            text = explain(KconfigRequest(symbol=symbol, value="n", by="fit"), final, kconfig)
            reason = SymbolReason(why="selected", text=text)
        elif not is_on and symbol not in splitting.disabled:
            causes = removal_causes(symbol, config, final, kconfig)
            reason = SymbolReason(why="along", text=f"it went with {causes}" if causes else "Kconfig took it along")
        final_reason[symbol] = reason
    return final_reason


def _figures(kernel: TrialKernel) -> FitKernel:
    record = kernel.image.record
    return FitKernel(
        key=record.key,
        symbols=sum(value == "y" for value in kernel.config.values()),
        bzimage=record.sizes.bzimage or 0,
        text=record.sizes.text,
    )


def _sizes(whole: TrialKernel, small: TrialKernel, state: State) -> tuple[KindTotal, ...]:
    return size_report(str(whole.image.directory), str(small.image.directory), state).totals
