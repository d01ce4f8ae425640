"""Scaling curves as words and cells, for terminal and HTML."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.text import clean, confidence, format_signed, number, p_value, percent
from kdyno.judge.curves.model import ScalingReport, ScalingSeries, Tax
from kdyno.judge.stats.scaling.both_laws import Scaling
from kdyno.judge.stats.scaling.laws import MISFIT, NEEDED, TITLES, LawFit, Parameter

WORDS = {
    "copies": "n processes, each does the whole work",
    "shared": "n processes or threads share one work",
    None: "n processes",
}


def name_of(series: ScalingSeries, report: ScalingReport) -> str:
    """Return the workload, and the variant where there are several."""
    several = len({one.variant for one in report.series}) > 1
    return clean(f"{series.workload}, {series.variant}" if several else series.workload)


def columns(report: ScalingReport) -> tuple[str, ...]:
    sure = f"{confidence(report.confidence)} interval"
    return ("n", "throughput", sure, "speed-up", sure, "efficiency", "values")


def rows(series: ScalingSeries) -> list[tuple[str, ...]]:
    """Return a row of text for each n that was measured."""
    return [
        (
            str(point.n),
            number(point.throughput),
            _span(point.low, point.high),
            "" if point.speedup is None else f"{point.speedup:.4g}",
            _span(point.speedup_low, point.speedup_high),
            "" if point.efficiency is None else f"{percent(point.efficiency)} %",
            str(point.replicates),
        )
        for point in series.scaling.points
    ]


def sentences(series: ScalingSeries) -> list[str]:
    """Return the text below the table: both laws, which is better, and what applies to both."""
    scaling = series.scaling
    lines = [] if scaling.points[0].n == 1 else ["n = 1 wasn't measured: no speed-up, and X1 is extrapolated"]
    lines += [_fit(fit) for fit in scaling.fits]
    lines += [f"not fitted: {why}" for why in (scaling.no_amdahl, scaling.no_usl) if why]
    lines += [_untested_sentence(fit) for fit in scaling.fits if len(scaling.points) == NEEDED[fit.law]]
    if verdict := _better(scaling):
        lines.append(verdict)
    if why := next((fit.no_interval for fit in scaling.fits if fit.no_interval), ""):
        lines.append(f"no intervals of the fits: {why}")
    return lines + _predictions(scaling)


def tax(tax: Tax, report: ScalingReport) -> str:
    """Return the cost of a variant for a single process, as a sentence."""
    span = (
        ""
        if tax.low is None or tax.high is None
        else f", {format_signed(tax.low - 1)} to {format_signed(tax.high - 1)} %"
    )
    return clean(
        f"{tax.workload}: work per time of a single process under {tax.variant} against {report.baseline}: "
        f"{format_signed(tax.ratio - 1)} %{span}"
    )


def _untested_sentence(fit: LawFit) -> str:
    """Return the sentence on a law that has as many parameters as there are n."""
    return (
        f"whether {TITLES[fit.law]} holds can't be told from {NEEDED[fit.law]} different n: it has as many parameters, "
        "and goes through all means unless one of these is on its bound"
    )


def _fit(fit: LawFit) -> str:
    name = "s" if fit.law == "amdahl" else "a"
    parts = [f"X1 {_parameter(fit.single)}", f"{name} {_share(fit.contention)}"]
    if fit.coherency is not None:
        parts.append(f"b {_share(fit.coherency)}")
    parts += [_peak(fit)] if fit.law == "usl" else []
    parts.append(f"residual spread {percent(fit.residual_sd)} %")
    if fit.misfit_p is not None and fit.misfit_p < MISFIT:
        parts.append(f"the curve misses the means by more than their spread explains (p {p_value(fit.misfit_p)})")
    return f"{TITLES[fit.law]}: {'; '.join(parts)}"


def _peak(fit: LawFit) -> str:
    peak = fit.peak
    if peak is None:
        return "no peak"
    span = "" if peak.low is None else f" ({peak.low:.3g} to {'any' if peak.high is None else f'{peak.high:.3g}'})"
    return f"peak at n = {peak.n:.3g}{span}{', extrapolated' if peak.extrapolated else ''}"


def _parameter(parameter: Parameter) -> str:
    span = _span(parameter.low, parameter.high)
    return f"{number(parameter.value)}{f' ({span})' if span else ''}"


def _share(parameter: Parameter) -> str:
    span = f" ({percent(parameter.low)} to {percent(parameter.high)})" if _is_known(parameter) else ""  # type: ignore[arg-type]
    bound = f", the {parameter.bound} that the law allows" if parameter.bound else ""
    return f"{percent(parameter.value)} %{span}{bound}"


def _is_known(parameter: Parameter) -> bool:
    return parameter.low is not None and parameter.high is not None


def _better(scaling: Scaling) -> str:
    gain = scaling.aicc_gain
    if gain is None:
        both = scaling.amdahl is not None and scaling.usl is not None
        return "which law is better isn't known: the fit is exact, or there are too few values" if both else ""
    if scaling.better is None:
        return f"the two laws can't be distinguished: their AICc differ by {abs(gain):.2g}"
    other = "Amdahl" if scaling.better == "usl" else "USL"
    return f"{TITLES[scaling.better]} is better than {other}: its AICc is lower by {abs(gain):.3g}"


def _predictions(scaling: Scaling) -> list[str]:
    """Return the laws' predictions for the largest n, if it is beyond the measured ones."""
    lines = []
    for fit in scaling.fits:
        last = fit.curve[-1]
        if last.extrapolated:
            span = _span(last.low, last.high)
            lines.append(
                f"{TITLES[fit.law]} at n = {last.n}: {number(last.throughput)}{f' ({span})' if span else ''}, "
                f"extrapolated: nothing beyond n = {fit.largest} was measured"
            )
    return lines


def _span(low: float | None, high: float | None) -> str:
    return "" if low is None or high is None else f"{number(low)} to {number(high)}"


def notes(report: ScalingReport) -> Sequence[str]:
    return [clean(notice) for notice in report.notices]
