"""The terminal output of `kdyno lab time`. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from kdyno.base.text import format_signed, number
from kdyno.understand.lab.verdicts import LabTimes, PatchChoice, RoutineTimesReport, Winner


def time_lines(report: LabTimes) -> list[str]:
    """Return the report as lines of text."""
    rows = [line for family in report.families for line in (*_family_lines(family), "")]
    return [
        *rows,
        f"lane wall: cycles of the core per call, on {report.cpu}",
        f"routines of {report.source}, called through a pointer",
        f"{report.blocks} blocks, each of another link order: chosen on one half of them, judged on the other",
    ]


def _family_lines(family: RoutineTimesReport) -> Iterator[str]:
    yield f"{family.family}: {family.about}; a kernel takes {family.own} here"
    width = max(len(candidate.name) for candidate in family.candidates)
    yield f"  {family.size:<20} {'mode':<5} {'own':>9}  {'fastest':<{width}} {'cycles':>9}  verdict"
    for row in family.mixed:
        winner = row.winner
        yield (
            f"  {row.name:<20} {row.mode:<5} {number(winner.own_cycles):>9}  {winner.name:<{width}} "
            f"{number(winner.cycles):>9}  {verdict_text(winner)}"
        )
    yield f"  over all rows: {_patch_summary(family.patch)}"
    yield f"  at {len(family.fixed)} single sizes and offsets: {_fixed_summary(family)}"
    for candidate in family.candidates:
        yield from (f"  {candidate.name}: {problem}" for problem in candidate.problems)
    yield from (f"  {note}" for note in family.notes)
    if family.note:
        yield f"  note: {family.note}"


def _patch_summary(choice: PatchChoice) -> str:
    """Return the fastest candidate that a patch can put into a kernel, with its verdict."""
    if choice.winner.is_own:
        return "no candidate with a patch is faster than the kernel's own"
    return f"{choice.winner.name} {verdict_text(choice.winner)}"


def verdict_text(winner: Winner) -> str:
    """Return `-43.3 % (-46.1 to -40.2), faster`, or that the kernel's own choice is the best."""
    if winner.is_own:
        return "the kernel's own is best"
    effect = f"{format_signed(winner.ratio - 1)} %"
    if winner.low is not None and winner.high is not None:
        effect += f" ({format_signed(winner.low - 1)} to {format_signed(winner.high - 1)})"
    return f"{effect}, {winner.verdict}"


def _fixed_summary(family: RoutineTimesReport) -> str:
    """Return how often which candidate is faster than the kernel's own choice."""
    wins: dict[str, int] = {}
    for cell in family.fixed:
        if cell.winner.is_faster:
            wins[cell.winner.name] = wins.get(cell.winner.name, 0) + 1
    others = len(family.fixed) - sum(wins.values())
    texts = [f"{name} faster at {count}" for name, count in sorted(wins.items(), key=lambda item: -item[1])]
    return "; ".join((*texts, f"none faster than the kernel's own at {others}"))
