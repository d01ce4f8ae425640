"""The id of a run: a content hash of the keys of its boots, of how it is judged and called, and its repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from kdyno.base.frozen import digest
from kdyno.store import plain_json
from kdyno.store.records import BootPlace, RunRecord

DIGITS = 12
MOST_REPEATS = 100
"""Repeats of one experiment that are tried to find one with a given id."""


def run_id(
    name: str,
    baseline: str,
    layouts: int,
    judge: Mapping[str, Any],
    cells: Iterable[tuple[BootPlace, str]],
    repeat: int,
) -> str:
    """Return the id of a run with these boots, in the order in which it starts them; `judge` is [judge] of its
    experiment.
    """
    decides = {
        "name": name,
        "baseline": baseline,
        "layouts": layouts,
        "judge": dict(judge),
        "boots": [[place.variant, place.block, place.layout_index, key] for place, key in cells],
        "repeat": repeat,
    }
    return digest(decides)[:DIGITS]


def fits(run: RunRecord, cells: Iterable[tuple[BootPlace, str]]) -> bool:
    """Return whether a run's id matches its record."""
    try:
        judge = plain_json.parse(run.experiment)["judge"]
    except (ValueError, LookupError, TypeError):
        return False
    if not isinstance(judge, dict):
        return False
    in_order = sorted(cells, key=lambda cell: cell[0].position)
    ids = (run_id(run.name, run.baseline, run.layouts, judge, in_order, repeat) for repeat in range(MOST_REPEATS))
    return run.id in ids
