"""The plan of a run: its id, its boots in order with their keys, and its progress."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from kdyno.base.frozen import digest
from kdyno.base.lanes import LANES
from kdyno.runs.experiment.plan import PlannedBoot, plan_boots
from kdyno.runs.keys import boot_key
from kdyno.runs.prepare import Prepared
from kdyno.store.identity import run_id
from kdyno.store.progress import Cell, Progress
from kdyno.store.records import BootPlace
from kdyno.store.store import Store


@dataclass(frozen=True)
class RunPlan:
    """The plan of a run: its id, and its boots in order with their keys."""

    id: str
    boots: tuple[PlannedBoot, ...]
    keys: Mapping[Cell, str]

    @property
    def cells(self) -> list[tuple[BootPlace, str]]:
        """The place and the key of each boot, for the record."""
        return _cells(self.boots, self.keys)

    def boots_of(self, cells: Iterable[Cell]) -> list[PlannedBoot]:
        """Return the boots that fill these cells, in order; cells that share a key share a boot."""
        requested_cells = set(cells)
        boot_by_key: dict[str, PlannedBoot] = {}
        for boot in self.boots:
            if boot.cell in requested_cells:
                boot_by_key.setdefault(self.keys[boot.cell], boot)
        return list(boot_by_key.values())

    def progress(self, store: Store, blocks: int | None = None) -> Progress:
        """Return the progress in the first `blocks`, or in all blocks of the run, by boots of any run."""
        if blocks is None:
            blocks = store.stopped_at(self.id)
        cells = [boot.cell for boot in self.boots if blocks is None or boot.block < blocks]
        ends = store.ends(self.keys[cell] for cell in cells)
        order = {key: place for place, key in enumerate(ends)}
        recorded_cells = sorted(
            (cell for cell in cells if self.keys[cell] in ends), key=lambda cell: order[self.keys[cell]]
        )
        return Progress(cells, {cell: ends[self.keys[cell]] for cell in recorded_cells})


def plan_run(prepared: Prepared, repeat: int = 0) -> RunPlan:
    """Plan the run of a prepared experiment; `repeat` distinguishes the runs of one experiment."""
    experiment, about = prepared.experiment, prepared.about
    boots = tuple(plan_boots(experiment))
    series = "" if LANES[about.lane].is_repeatable else _series(prepared)
    keys = {}
    for boot in boots:
        replicate: dict[str, Any] = {"repeat": repeat} if repeat else {}
        if series:
            replicate |= {"series": series, "variant": boot.variant, "block": boot.block}
        keys[boot.cell] = boot_key(
            _image(prepared, boot),
            prepared.cmdline(boot.variant),
            prepared.job,
            about,
            seed=boot.seed,
            replicate=replicate,
            reading=experiment.workload.reading(),
        )
    judge = experiment.judge.model_dump(mode="json")
    cells = _cells(boots, keys)
    identity = run_id(experiment.name, experiment.baseline, experiment.layouts, judge, cells, repeat)
    return RunPlan(identity, boots, keys)


def _cells(boots: Iterable[PlannedBoot], keys: Mapping[Cell, str]) -> list[tuple[BootPlace, str]]:
    return [
        (
            BootPlace(variant=boot.variant, block=boot.block, position=boot.position, layout_index=boot.layout_index),
            keys[boot.cell],
        )
        for boot in boots
    ]


def _series(prepared: Prepared) -> str:
    """Return a digest of all that boots of the wall lane share if they are judged together, except the block count."""
    experiment, about = prepared.experiment, prepared.about
    return digest(
        {
            "variants": {
                name: [
                    [plan.key for plan in prepared.plans.get(name, ())],
                    list(prepared.cmdline(name)),
                ]
                for name in experiment.variants
            },
            "job": prepared.job.model_dump(mode="json"),
            "machine": about.facts,
            "host": about.host,
            "seed": experiment.seed,
            "seeds": experiment.seeds,
            "layouts": experiment.layouts,
        }
    )


def _image(prepared: Prepared, boot: PlannedBoot) -> str:
    if boot.variant in prepared.plans:
        return prepared.plans[boot.variant][boot.layout_index].key
    return prepared.machine.stand_in(boot.variant, boot.block)
