"""Several benchmarks in one profile: each weighs the same."""

from __future__ import annotations

import pytest

from kdyno.profile.balance import TOTAL, balanced_edges, weights
from tests.unit.pmu_specimen import specimen


def test_every_region_has_an_equal_part_of_the_total() -> None:
    record = specimen()
    by_region = weights([record, record])
    assert len(by_region) == 2 and by_region[0] == by_region[1]
    executed = [
        sum(
            int(row["instructions"]) * int(row["count"])
            for name in (0, 1)
            for row in record.regions[index].contexts[name].blocks
        )
        * weight
        for index, weight in by_region[0].items()
    ]
    assert executed == pytest.approx([TOTAL / 2 / len(executed)] * len(executed))


def test_the_edges_of_all_records_are_added_up_and_what_ran_is_never_zero() -> None:
    record = specimen()
    once, twice = balanced_edges([record]), balanced_edges([record, record])
    assert [row[:2] for row in once.ranges] == [row[:2] for row in twice.ranges]
    assert all(abs(a[2] - b[2]) <= 1 for a, b in zip(once.ranges, twice.ranges, strict=True))
    assert min(count for _, _, count in once.ranges + once.branches) >= 1
