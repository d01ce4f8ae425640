"""The boots that the host disturbed, judged by its activity, never by the samples. They are flagged, not dropped.

To leave out odd values would make every run look clean, and its intervals too narrow; so a flag needs a cause that was
seen. The model lane counts instructions, which no host disturbs: nothing is flagged there.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kdyno.base.frozen import Frozen
from kdyno.base.lanes import LANES, LaneName
from kdyno.base.measurement import DISTURBED_PATHS
from kdyno.boot.host.counters import OTHER_LOAD_LIMIT, STEAL_LIMIT
from kdyno.store.records import BootRecord

NORMAL_MAD = 1.4826
"""A normal distribution's standard deviation in median absolute deviations."""
OUTLIER = 5.0
"""Robust standard deviations from the run's median that make an outlier."""
FEWEST = 3
"""The fewest boots with a value for a median worth comparing with."""


class Flag(Frozen):
    """A disturbance of one boot."""

    variant: str
    block: int
    what: str
    """The condition, as in BootRecord.conditions."""
    value: float
    limit: float
    """The value from which on it is flagged, in the condition's unit."""
    sentence: str


@dataclass(frozen=True)
class ContaminationRule:
    """The rule by which a condition is flagged. `limit` gets the values of all boots of the run."""

    what: str
    cause: str
    """The words for counts: `3 by steal time`."""
    limit: Callable[[Sequence[float]], float | None]
    sentence: str
    """The sentence, filled with `value` and `limit`."""
    below: bool = False
    """Whether values below the limit are flagged, not those above."""

    def is_violated(self, value: float, limit: float) -> bool:
        return value < limit if self.below else value > limit


def _constant_limit(limit: float) -> Callable[[Sequence[float]], float | None]:
    return lambda _values: limit


def _share_of_median(share: float) -> Callable[[Sequence[float]], float | None]:
    return lambda values: statistics.median(values) * share if len(values) >= FEWEST else None


def _off_median(step: float, sign: int) -> Callable[[Sequence[float]], float | None]:
    """Return a limit beyond which a value is an outlier among the run's boots, and off by no less than `step`."""

    def limit(values: Sequence[float]) -> float | None:
        if len(values) < FEWEST:
            return None
        median = statistics.median(values)
        spread = NORMAL_MAD * statistics.median(abs(value - median) for value in values)
        return median + sign * max(step, OUTLIER * spread)

    return limit


RULES = (
    ContaminationRule(
        "steal_percent",
        "steal time",
        _constant_limit(STEAL_LIMIT),
        "the hypervisor took {value:.1f} % of the CPU time that was wanted (limit {limit:g} %)",
    ),
    ContaminationRule(
        "other_load",
        "other load",
        _constant_limit(OTHER_LOAD_LIMIT),
        "other programs kept {value:.2f} CPUs busy (limit {limit:g})",
    ),
    ContaminationRule(
        "throttled",
        "thermal throttling",
        _constant_limit(0),
        "the CPU was slowed down for its heat, {value:.0f} times",
    ),
    ContaminationRule(
        "quota_stops",
        "the CPU limit",
        _constant_limit(0),
        "a control group's limit of CPU time stopped it {value:.0f} times",
    ),
    ContaminationRule(
        "swapped_pages",
        "swapping",
        _constant_limit(256),
        "the host swapped {value:.0f} pages (limit {limit:g})",
    ),
    ContaminationRule(
        "mhz",
        "frequency",
        _share_of_median(0.95),
        "the CPU ran at {value:.0f} MHz, more than 5 % below the run's median (limit {limit:.0f} MHz)",
        below=True,
    ),
    ContaminationRule(
        "mhz_low",
        "a dip in frequency",
        _off_median(100, -1),
        "the CPU's frequency fell to {value:.0f} MHz, which other boots' did not (limit {limit:.0f} MHz)",
        below=True,
    ),
    ContaminationRule(
        "celsius",
        "heat",
        _off_median(10, +1),
        "the CPU reached {value:.0f} °C, hotter than in other boots (limit {limit:.0f} °C)",
    ),
    ContaminationRule(
        "celsius",
        "cold",
        _off_median(10, -1),
        "the CPU reached only {value:.0f} °C, colder than in other boots (limit {limit:.0f} °C)",
        below=True,
    ),
    ContaminationRule(
        DISTURBED_PATHS,
        "other work on the core",
        _constant_limit(0),
        "other work was on its core, or the core's clock moved, in many samples of {value:.0f} paths, after reruns too",
    ),
)


def contamination(boots: Sequence[BootRecord], lane: LaneName) -> tuple[Flag, ...]:
    """Return the flags of a run's ok boots, in the order in which these were started."""
    if not LANES[lane].is_disturbed_by_host:
        return ()
    ok = sorted((boot for boot in boots if boot.status == "ok"), key=lambda boot: (boot.position, boot.attempt))
    limits = [rule.limit([boot.conditions[rule.what] for boot in ok if rule.what in boot.conditions]) for rule in RULES]
    return tuple(
        _flag(boot, rule, boot.conditions[rule.what], limit)
        for boot in ok
        for rule, limit in zip(RULES, limits, strict=True)
        if limit is not None and rule.what in boot.conditions and rule.is_violated(boot.conditions[rule.what], limit)
    )


def notice(flags: Sequence[Flag], boots: Sequence[BootRecord]) -> str | None:
    """Return one line for the top of a report; None if no boot was flagged."""
    if not flags:
        return None
    disturbed = {(flag.variant, flag.block) for flag in flags}
    ok = sum(boot.status == "ok" for boot in boots)
    causes = {rule.cause: {(flag.variant, flag.block) for flag in flags if _is_of(flag, rule)} for rule in RULES}
    counts = ", ".join(f"{len(cells)} by {cause}" for cause, cells in causes.items() if cells)
    return f"the host disturbed {len(disturbed)} of {ok} boots ({counts}); they are flagged, but still counted"


def _flag(boot: BootRecord, rule: ContaminationRule, value: float, limit: float) -> Flag:
    return Flag(
        variant=boot.variant,
        block=boot.block,
        what=rule.what,
        value=value,
        limit=limit,
        sentence=rule.sentence.format(value=value, limit=limit),
    )


def _is_of(flag: Flag, rule: ContaminationRule) -> bool:
    return flag.what == rule.what and rule.is_violated(flag.value, flag.limit)
