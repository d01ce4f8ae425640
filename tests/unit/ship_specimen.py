"""A judged run of two toy kernels, ready to be shipped."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.kernel import build as kernel_build
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.images import build_images
from kdyno.runs.prepare import plan_builds
from kdyno.runs.session import Session
from kdyno.ship import build as ship_build
from kdyno.ship.ship import ShipOrder
from kdyno.store.records import RunRecord, VariantRecord
from kdyno.store.store import Store
from tests.unit import specimen
from tests.unit.kernel_toy import TINY, toy_tree

BASELINE, TUNED = "gcc-12", "gcc-12-O3"
"""The names of variants for which the specimen has values."""
QUIET = Talk(quiet=True)


def small_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let builds of the toy begin on a disk with little room."""
    monkeypatch.setattr(kernel_build, "NEEDED_MB", 0)
    monkeypatch.setattr(ship_build, "NEEDED_MB", 0)


def experiment_of(
    folder: Path, kconfig: Mapping[str, Any], layouts: int = 0, toolchain: str = "gcc", config: str = TINY
) -> Experiment:
    """An experiment with the toy kernel: both variants have these options, and one is compiled for size."""
    tree = folder / "linux"
    if not tree.exists():
        toy_tree(folder)
    values = ", ".join(f"{name} = {'true' if value is True else repr(value)}" for name, value in kconfig.items())
    file = folder / "web.toml"
    file.write_text(
        f"""
        name = "web"
        source = "{tree}"
        config = "{config}"
        baseline = "{BASELINE}"
        blocks = 12
        {f"layouts = {layouts}" if layouts else ""}
        [variants.{BASELINE}]
        toolchain = "{toolchain}"
        kconfig = {{ {values} }}
        [variants.{TUNED}]
        extends = "{BASELINE}"
        opt = "Os"
        cmdline = ["quiet"]
        [workload]
        tests = ["lmbench"]
        """
    )
    return load_experiment(file)


def judged_run(experiment: Experiment, session: Session, run_id: str = "3f9a61c2" * 8) -> RunRecord:
    """A run on record, with its images; values and boots are made up."""
    builds = plan_builds(experiment, session.state, QUIET)
    images = build_images(builds.plans, session.state, QUIET)
    record = specimen.run_record(variants=(BASELINE, TUNED)).model_copy(
        update={
            "id": run_id,
            "name": experiment.name,
            "experiment": experiment.model_dump_json(),
            "layouts": experiment.layouts,
            "variants": tuple(
                VariantRecord(name=name, recipe=recipe, images=tuple(image.record for image in images[name]))
                for name, recipe in experiment.variants.items()
            ),
        }
    )
    boots = specimen.boot_records(record, iterations=2, failed=None)
    session.store.begin(record, specimen.placed_keys(boots))
    for boot in boots:
        session.store.add_boot(boot, specimen.benchmarks(record.lane))
    return record


def session_of(state: State, store: Store) -> Session:
    return Session(state, store, QUIET)


def order_of(run: RunRecord, output: Path, variant: str = TUNED, **changes: Any) -> ShipOrder:
    settings: dict[str, Any] = {
        "layout": 0,
        "kind": "deb",
        "soak": None,
        "key": None,
        "secure_boot": None,
        "uses_ccache": False,
    }
    return ShipOrder(run=run, variant=variant, output=output, **{**settings, **changes})
