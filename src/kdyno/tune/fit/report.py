"""What a fit found, as `kdyno fit-config` prints it: a reason for each symbol, and both kernels."""

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
from kdyno.tune.fit.symbols import REMOVABLE, SymbolReason, with_whom
from kdyno.understand.size.model import KindTotal
from kdyno.understand.size.report import size_report


@dataclass(frozen=True)
class SmallKernel(TrialKernel):
    """A kernel that passed, and what it was made of."""

    explicitly_enabled: tuple[str, ...]
    """Symbols that were set by themselves, since nothing that the kernel has selects them any more."""


def make_report(
    bench: FitBench,
    whole: TrialKernel,
    small: SmallKernel | None,
    reasons: Mapping[str, SymbolReason],
    kconfig: KconfigTree,
    splitting: Splitting,
) -> Fitted:
    """`small` is the smallest kernel that passed; None if nothing could be left out of the whole one."""
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
    """Why each symbol stayed or went in the end, from why it might and from what the search found. Pure.

    `config` is the whole kernel's configuration, `final` that of the kernel that was found.
    """
    found = {
        **{
            symbol: SymbolReason(why="culprit", text=f"without it: {why}") for symbol, why in splitting.culprits.items()
        },
        **{
            symbol: SymbolReason(why="untried", text=f"not tried alone; {why}")
            for symbol, why in splitting.untried.items()
        },
    }
    final_reason: dict[str, SymbolReason] = {}
    for symbol, before in reasons.items():
        is_on = final.get(symbol, "n") != "n"
        reason = found.get(symbol, before)
        if is_on and reason.why in REMOVABLE:
            text = explain(KconfigRequest(symbol=symbol, value="n", by="fit"), final, kconfig)
            reason = SymbolReason(why="selected", text=text)
        elif not is_on and symbol not in splitting.disabled:
            others = with_whom(symbol, config, final, kconfig)
            reason = SymbolReason(why="along", text=f"it went with {others}" if others else "Kconfig took it along")
        final_reason[symbol] = reason
    return final_reason


def _figures(kernel: TrialKernel) -> FitKernel:
    record = kernel.image.record
    return FitKernel(
        key=record.key,
        symbols=sum(value == "y" for value in kernel.config.values()),
        bzimage=record.sizes.bzimage,
        text=record.sizes.text,
    )


def _sizes(whole: TrialKernel, small: TrialKernel, state: State) -> tuple[KindTotal, ...]:
    return size_report(str(whole.image.directory), str(small.image.directory), state).totals
