"""Flags: a boot is disturbed by what the host did, never by what it measured."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from kdyno.base.measurement import BootStatus
from kdyno.boot.conditions import UNITS
from kdyno.judge.verdicts.contamination import RULES, contamination, notice
from kdyno.store.records import BootRecord

QUIET = {"steal_percent": 0.1, "other_load": 0.05, "mhz": 3000.0, "mhz_low": 2950.0, "celsius": 60.0, "throttled": 0.0}


def boot(block: int, status: BootStatus = "ok", odd: Mapping[str, float] | None = None) -> BootRecord:
    return BootRecord(
        key=f"v, block {block}",
        variant="v",
        block=block,
        position=block,
        seed=1,
        status=status,
        started=datetime(2025, 3, 1, tzinfo=UTC),
        seconds=9.0,
        conditions=QUIET | dict(odd or {}),
    )


def run(**odd: float) -> list[BootRecord]:
    """Nine quiet boots and an odd one, whose temperatures and frequencies differ a little."""
    return [boot(n, "ok", {"celsius": 60 + n % 3, "mhz_low": 2950 + n}) for n in range(9)] + [boot(9, "ok", odd)]


def test_a_quiet_run_has_no_flags() -> None:
    assert contamination(run(), "wall") == ()


@pytest.mark.parametrize(
    ("odd", "sentence"),
    [
        ({"steal_percent": 3.2}, "the hypervisor took 3.2 % of the CPU time that was wanted (limit 1 %)"),
        ({"other_load": 0.84}, "other programs kept 0.84 CPUs busy (limit 0.25)"),
        ({"throttled": 2}, "the CPU was slowed down for its heat, 2 times"),
        ({"quota_stops": 7}, "a control group's limit of CPU time stopped it 7 times"),
        ({"swapped_pages": 1000}, "the host swapped 1000 pages (limit 256)"),
        ({"mhz": 2800}, "the CPU ran at 2800 MHz, more than 5 % below the run's median (limit 2850 MHz)"),
        ({"mhz_low": 1200}, "the CPU's frequency fell to 1200 MHz, which other boots' did not (limit 2854 MHz)"),
        ({"celsius": 81}, "the CPU reached 81 °C, hotter than in other boots (limit 71 °C)"),
        (
            {"disturbed_paths": 3},
            "other work was on its core, or the core's clock moved, in many samples of 3 paths, after reruns too",
        ),
        ({"celsius": 40}, "the CPU reached only 40 °C, colder than in other boots (limit 51 °C)"),
    ],
)
def test_a_disturbed_boot_is_flagged_with_its_cause(odd: dict[str, float], sentence: str) -> None:
    (flag,) = contamination(run(**odd), "wall")
    assert (flag.variant, flag.block, flag.what) == ("v", 9, next(iter(odd)))
    assert flag.value == next(iter(odd.values()))
    assert flag.sentence == sentence


@pytest.mark.parametrize("odd", [{"steal_percent": 1.0}, {"other_load": 0.25}, {"mhz": 2851}, {"celsius": 70}])
def test_what_stays_within_the_limit_is_not_flagged(odd: dict[str, float]) -> None:
    assert contamination(run(**odd), "wall") == ()


def test_temperatures_that_vary_from_boot_to_boot_make_no_outliers() -> None:
    boots = [boot(n, "ok", {"celsius": 50 + 7 * (n % 5)}) for n in range(20)]
    assert contamination(boots, "wall") == ()


def test_two_boots_have_no_median_worth_comparing_with() -> None:
    assert contamination([boot(0, "ok", {"mhz": 3000}), boot(1, "ok", {"mhz": 1000})], "wall") == ()


def test_what_a_host_does_not_show_is_not_flagged() -> None:
    boots = [boot.model_copy(update={"conditions": {}}) for boot in run(steal_percent=50)]
    assert contamination(boots, "wall") == ()


def test_the_model_lane_has_no_flags() -> None:
    assert contamination(run(steal_percent=50, other_load=9), "model") == ()


def test_boots_without_samples_are_neither_flagged_nor_compared_with() -> None:
    boots = [boot(n) for n in range(3)] + [boot(n, "failed", {"mhz": 9000, "steal_percent": 9}) for n in range(3, 9)]
    assert contamination(boots, "wall") == ()


def test_flags_come_in_the_order_of_the_boots() -> None:
    flags = contamination(
        [boot(2, "ok", {"steal_percent": 2}), boot(0, "ok", {"steal_percent": 3}), boot(1, "ok", {"other_load": 1})],
        "wall",
    )
    assert [(flag.block, flag.what) for flag in flags] == [
        (0, "steal_percent"),
        (1, "other_load"),
        (2, "steal_percent"),
    ]


def test_the_notice_counts_boots_once_and_causes_each() -> None:
    boots = [
        *run(),
        boot(10, "ok", {"steal_percent": 2}),
        boot(11, "ok", {"steal_percent": 2, "other_load": 1}),
        boot(12, "lost"),
    ]
    flags = contamination(boots, "wall")
    causes = "(2 by steal time, 1 by other load); they are flagged, but still counted"
    assert notice(flags, boots) == f"the host disturbed 2 of 12 boots {causes}"


def test_a_quiet_run_has_no_notice() -> None:
    assert notice((), run()) is None


def test_every_rule_is_about_a_condition_that_can_be_recorded() -> None:
    assert {rule.what for rule in RULES} <= set(UNITS)
