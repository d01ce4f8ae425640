"""What follows from a soak: one pure decision over loads, memory, console and taint."""

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
"""Bits of /proc/sys/kernel/tainted that tell of a mistake (include/linux/panic.h); others tell what was loaded."""


def decide(
    boot: tuple[BootStatus, str],
    loads: Sequence[SoakLoadOutcome],
    memory: SoakMemory,
    console: Sequence[ConsoleFinding],
    kunit: SoakKunit | None,
) -> tuple[SoakVerdict, tuple[str, ...]]:
    """The verdict with its reasons. What has failed stays failed, also where the soak was cut short.

    It is unfinished if it was cut short, or too short for a load to come round once.
    """
    status, why = boot
    reasons = [*_of_boot(status, why), *_of_loads(loads), *_of_memory(memory), *_of_kunit(kunit)]
    reasons += [f"console: {finding.reason}: {finding.said}" for finding in console]
    if reasons:
        return "failed", tuple(reasons)
    missing = [clean(why)] if status == "lost" else list(_not_shown(loads))
    return ("unfinished", tuple(missing)) if missing else ("passed", ())


def undecided(slopes: Sequence[Slope]) -> tuple[str, ...]:
    """What the looks at memory can't tell."""
    return tuple(
        f"{slope.field}: {slope.in_words()}" for slope in slopes if slope.growth in ("undecided", "not judged")
    )


def taints(before: int | None, after: int | None) -> tuple[str, ...]:
    """What has happened to the kernel between two looks at its taint."""
    new = (after or 0) & ~(before or 0)
    return tuple(what for bit, what in TAINTS.items() if new >> bit & 1)


def _of_boot(status: BootStatus, why: str) -> Iterator[str]:
    if status == "failed":
        yield f"the guest did not come to its end: {why}"


def _of_loads(loads: Sequence[SoakLoadOutcome]) -> Iterator[str]:
    for load in loads:
        if load.progress == "left-out":
            yield f"{load.load} could not run, and was left out"
        elif load.progress == "lost":
            yield f"{load.load}: the process that looked after it was killed"
        elif load.failures:
            yield (
                f"{load.load}: {format_count(load.failures, 'failure')} in "
                f"{format_count(load.rounds + load.failures, 'round')}"
            )


def _not_shown(loads: Sequence[SoakLoadOutcome]) -> Iterator[str]:
    """What the soak was too short for on this machine: the kernel didn't fail, and nothing is known of these."""
    for load in loads:
        if load.progress == "over" and not load.rounds:
            yield f"{load.load}: no round came to its end in the time"


def _of_memory(memory: SoakMemory) -> Iterator[str]:
    for slope in memory.slopes:
        if slope.growth == "grows":
            yield f"{slope.field} {slope.in_words()}"
    if memory.before and memory.after:
        yield from (f"the kernel is tainted: {what}" for what in taints(memory.before.tainted, memory.after.tainted))


def _of_kunit(kunit: SoakKunit | None) -> Iterator[str]:
    if kunit and (kunit.failures or kunit.fault):
        failed = f"{format_count(kunit.failed, 'test')} failed" if kunit.failed else ""
        failed = failed or ("a suite failed" if kunit.failures else "")
        yield f"KUnit: {'; '.join(filter(None, [failed, kunit.fault]))}"
