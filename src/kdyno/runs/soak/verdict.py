"""The verdict of a soak: one pure decision over loads, memory, console and taint."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kdyno.base.measurement import BootStatus
from kdyno.base.text import clean, format_count
from kdyno.runs.soak.growth import Slope
from kdyno.runs.soak.record import ConsoleFinding, SoakKunit, SoakLoadOutcome, SoakMemory, SoakVerdict

TAINTS = {
    2: "a module was forced out",
    4: "a machine check",
    5: "a bad page",
    7: "an oops or BUG",
    9: "a warning",
    14: "a soft lock-up",
}
"""Bits of /proc/sys/kernel/tainted that report a mistake (include/linux/panic.h); others report what was loaded."""


def decide(
    boot: tuple[BootStatus, str],
    loads: Sequence[SoakLoadOutcome],
    memory: SoakMemory,
    console: Sequence[ConsoleFinding],
    kunit: SoakKunit | None,
) -> tuple[SoakVerdict, tuple[str, ...]]:
    """Return the verdict with its reasons. A failure counts in a soak that was cut short, too.

    A soak is unfinished if it was cut short, or if a load finished no round.
    """
    status, boot_reason = boot
    reasons = [
        *_boot_reasons(status, boot_reason),
        *_load_reasons(loads),
        *_memory_reasons(memory),
        *_kunit_reasons(kunit),
    ]
    reasons += [f"console: {finding.reason}: {finding.said}" for finding in console]
    if reasons:
        return "failed", tuple(reasons)
    gaps = [clean(boot_reason)] if status == "lost" else list(_unfinished_loads(loads))
    return ("unfinished", tuple(gaps)) if gaps else ("passed", ())


def undecided(slopes: Sequence[Slope]) -> tuple[str, ...]:
    """Return a line for each slope that is undecided or not judged."""
    return tuple(
        f"{slope.field}: {slope.in_words()}" for slope in slopes if slope.growth in ("undecided", "not judged")
    )


def taints(before: int | None, after: int | None) -> tuple[str, ...]:
    """Return the events that tainted the kernel between two looks."""
    new = (after or 0) & ~(before or 0)
    return tuple(event for bit, event in TAINTS.items() if new >> bit & 1)


def _boot_reasons(status: BootStatus, reason: str) -> Iterator[str]:
    if status == "failed":
        yield f"the guest did not come to its end: {reason}"


def _load_reasons(loads: Sequence[SoakLoadOutcome]) -> Iterator[str]:
    for load in loads:
        if load.progress == "left-out":
            yield f"{load.load} could not run, and was left out"
        elif load.progress == "lost":
            yield f"{load.load}: the process that supervised it was killed"
        elif load.failures:
            yield (
                f"{load.load}: {format_count(load.failures, 'failure')} in "
                f"{format_count(load.rounds + load.failures, 'round')}"
            )


def _unfinished_loads(loads: Sequence[SoakLoadOutcome]) -> Iterator[str]:
    """Yield a line for each load that finished no round: the soak was too short for it on this machine."""
    for load in loads:
        if load.progress == "over" and not load.rounds:
            yield f"{load.load}: no round ended in the time"


def _memory_reasons(memory: SoakMemory) -> Iterator[str]:
    for slope in memory.slopes:
        if slope.growth == "grows":
            yield f"{slope.field} {slope.in_words()}"
    if memory.before and memory.after:
        yield from (f"the kernel is tainted: {event}" for event in taints(memory.before.tainted, memory.after.tainted))


def _kunit_reasons(kunit: SoakKunit | None) -> Iterator[str]:
    if kunit and (kunit.failures or kunit.fault):
        failed_tests = f"{format_count(kunit.failed, 'test')} failed" if kunit.failed else ""
        failed_tests = failed_tests or ("a suite failed" if kunit.failures else "")
        yield f"KUnit: {'; '.join(filter(None, [failed_tests, kunit.fault]))}"
