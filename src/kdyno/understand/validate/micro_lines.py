"""The terminal output of `kdyno validate --micro`. Pure."""

from __future__ import annotations

from itertools import groupby

from kdyno.base.text import format_count, format_list
from kdyno.measure.cycles.micro_programs import TOLERANCE, TOLERATED_CYCLES
from kdyno.understand.validate.micro import MicroReport, MicroResult


def lines(report: MicroReport) -> list[str]:
    """Return the report as lines of text."""
    width = max(len(result.program) for result in report.results)
    here = "" if report.cpu is None else f" {'here':>9}"
    rows = [f"{'cycles of an iteration':<{width}} {'known':>9}{here} {'modelled':>9} {'ratio':>6}"]
    for group, results in groupby(report.results, key=lambda result: result.group):
        rows += ["", f"{group}:", *(_row(result, width) for result in results)]
    return [*rows, "", *_summary(report)]


def _row(result: MicroResult, width: int) -> str:
    here = "" if result.native is None else f" {result.native:>9.2f}"
    mark = "" if result.is_close else " known error" if result.known_error else " error"
    ratio = result.modelled / result.known
    return f"{result.program:<{width}} {result.known:>9.2f}{here} {result.modelled:>9.2f} {ratio:>6.2f}{mark}"


def _summary(report: MicroReport) -> list[str]:
    tolerance = f"{100 * TOLERANCE:.0f} % or {TOLERATED_CYCLES} cycles"
    programs = format_count(len(report.results), "program")
    rows = [
        report.model,
        f"{report.close} of {programs} within {tolerance}; median error {100 * report.median_error:.1f} %",
    ]
    if report.median_native_error is not None:
        rows.append(f"on this processor ({report.cpu}): median error {100 * report.median_native_error:.1f} %")
    rows += [f"known error: {reason}: {format_list(names)}" for reason, names in sorted(report.known_errors.items())]
    return [*rows, *describe_unexpected(report)]


def describe_unexpected(report: MicroReport) -> list[str]:
    """Return a line for each program that is not as data/micro-programs.toml says."""
    return [
        f"not as expected: {result.program}: known {result.known:.2f}, modelled {result.modelled:.2f}, "
        + (f"which is close despite its known error: {result.known_error}" if result.known_error else "no known error")
        for result in report.results
        if result.program in report.unexpected
    ]
