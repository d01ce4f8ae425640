"""The line: recipe + source -> image -> boot -> samples, for one experiment. Reading this file is reading the design.

What comes after the samples (judge, report) starts from the store alone; see report/assemble.py.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kdyno import __version__
from kdyno.experiment.models import Experiment
from kdyno.frozen import digest
from kdyno.host import host_facts
from kdyno.instrument.agent import test_orders
from kdyno.instrument.job import DEFAULT_ITERATIONS, Job
from kdyno.kernel.build import BuildPlan, build, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.source import fetch
from kdyno.machine.base import Description, Machine
from kdyno.machine.config import FakeConfig, QemuConfig
from kdyno.machine.registry import open_machine
from kdyno.state import State
from kdyno.store.records import RunRecord, VariantRecord
from kdyno.store.store import Store
from kdyno.talk import Talk

RUN_ID_DIGITS = 12


@dataclass(frozen=True)
class Prepared:
    """An experiment that has been checked against this host: everything that can be known before building."""

    experiment: Experiment
    machine: Machine
    about: Description
    job: Job
    plans: Mapping[str, BuildPlan]
    """By variant; variants that differ only in how they are started share an image."""


def plan_builds(experiment: Experiment, state: State, talk: Talk) -> dict[str, BuildPlan]:
    """What has to be built for each variant; raises KdynoError for all that can be known to fail."""
    source = fetch(experiment.source, state, talk.say)
    plans = {name: plan_build(recipe, source, experiment.config, state) for name, recipe in experiment.variants.items()}
    for name, plan in plans.items():
        for note in plan.notes:
            talk.say(f"note: {name}: {note}")
    return plans


def prepare(experiment: Experiment, state: State, talk: Talk) -> Prepared:
    """Check everything that can be checked without building or booting; raises KdynoError."""
    machine = open_machine(experiment.machine)
    about = machine.describe()
    for notice in about.notices:
        talk.say(f"note: {notice}")  # not a warning: the report has it in its first line
    workload = experiment.workload
    config = experiment.machine
    job = Job(
        lane=about.lane,
        icount_shift=config.icount_shift if isinstance(config, QemuConfig) and about.lane == "model" else None,
        iterations=workload.iterations or DEFAULT_ITERATIONS[about.lane],
        tests=test_orders(workload.tests, workload.params),
    )
    plans = {} if isinstance(config, FakeConfig) else plan_builds(experiment, state, talk)
    for variant, plan in plans.items():
        machine.require_cpu(plan.needs, f"variant {variant}")
    return Prepared(experiment, machine, about, job, plans)


def build_images(plans: Mapping[str, BuildPlan], state: State, talk: Talk) -> dict[str, Image]:
    """The images by variant; each is built once, whoever needs it and however often."""
    images: dict[str, Image] = {}
    for variant, plan in plans.items():
        with talk.working(f"building {variant}") as advance:
            images[variant] = build(plan, state, advance)
    return images


def run_identity(prepared: Prepared, repeat: int) -> str:
    """Content hash of all that decides the samples; `repeat` tells carryings-out of one experiment apart."""
    experiment = prepared.experiment
    return digest(
        {
            "name": experiment.name,
            "baseline": experiment.baseline,
            "variants": {
                name: {"image": plan.key if (plan := prepared.plans.get(name)) else None, "cmdline": recipe.cmdline}
                for name, recipe in experiment.variants.items()
            },
            "job": prepared.job.model_dump(mode="json"),
            "machine": prepared.about.facts,
            "host": host_facts() if prepared.about.lane == "wall" else None,
            "limits": experiment.machine.model_dump(mode="json").get("limits"),
            "blocks": experiment.blocks,
            "seed": experiment.seed,
            "judge": experiment.judge.model_dump(mode="json"),
            "repeat": repeat,
        }
    )[:RUN_ID_DIGITS]


def choose_run(prepared: Prepared, is_complete: Callable[[str], bool], again: bool) -> str:
    """The id to run under: the experiment's own, or with `again` that of its first repeat that isn't complete."""
    repeat = 1 if again else 0
    while again and is_complete(run_identity(prepared, repeat)):
        repeat += 1
    return run_identity(prepared, repeat)


def begin_run(run_id: str, prepared: Prepared, images: Mapping[str, Image], store: Store) -> RunRecord:
    """Put the run on record; the same id again changes nothing."""
    experiment, about = prepared.experiment, prepared.about
    run = RunRecord(
        id=run_id,
        name=experiment.name,
        created=datetime.now(UTC),
        experiment=experiment.model_dump_json(),
        baseline=experiment.baseline,
        blocks=experiment.blocks,
        seed=experiment.seed,
        lane=about.lane,
        machine=about.facts,
        host=host_facts(),
        notices=about.notices,
        margin=experiment.judge.margin,
        alpha=experiment.judge.alpha,
        kdyno=__version__,
        variants=tuple(
            VariantRecord(name=name, recipe=recipe, image=images[name].record if name in images else None)
            for name, recipe in experiment.variants.items()
        ),
    )
    store.begin(run)
    return run
