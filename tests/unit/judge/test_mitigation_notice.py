"""Instructions don't show what mitigations cost, and a report says so."""

from __future__ import annotations

from typing import Any

import pytest

from kdyno.base.lanes import LaneName
from kdyno.judge.verdicts.looks import look_of
from kdyno.judge.verdicts.notices import run_notices
from tests.unit import specimen


def notices(word: str, lane: LaneName = "model", machine: dict[str, Any] | None = None) -> list[str]:
    run = specimen.run_record(blocks=1, lane=lane)
    variants = tuple(
        variant.model_copy(update={"recipe": variant.recipe.model_copy(update={"cmdline": words})})
        for variant, words in zip(run.variants, ((), (word,), ()), strict=True)
    )
    run = run.model_copy(update={"variants": variants, "machine": {**run.machine, **(machine or {})}})
    boots = specimen.boot_records(run, iterations=1, failed=None)
    return [text for text in run_notices(run, boots, look_of(run, boots), (), []) if "mitigations" in text]


def test_who_asks_for_the_cost_of_mitigations_in_instructions_is_told_how_to_ask_for_cycles() -> None:
    [notice] = notices("mitigations=off")
    assert "pmu.family" in notice and "pmu.clock=cycles" in notice


@pytest.mark.parametrize(
    ("word", "lane", "machine"),
    [
        ("quiet", "model", None),
        ("mitigations=off", "wall", None),
        ("mitigations=off", "model", {"pmu_clock": "cycles"}),
    ],
    ids=["another parameter", "a clock that passes", "cycles"],
)
def test_nothing_is_said_of_mitigations_where_nobody_asks_or_the_clock_shows_them(
    word: str, lane: LaneName, machine: dict[str, Any] | None
) -> None:
    assert notices(word, lane, machine) == []
