"""The line: recipe + source -> image -> boot -> samples, for one experiment. Reading this file is reading the design.

What comes after the samples (judge, report) starts from the store alone; see verdicts/.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from kdyno import __version__
from kdyno.experiment.models import Experiment
from kdyno.experiment.plan import recipes
from kdyno.frozen import digest
from kdyno.host import host_facts
from kdyno.instrument.agent import test_orders
from kdyno.instrument.job import DEFAULT_ITERATIONS, Job
from kdyno.kernel.build import BuildPlan, build_layouts, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.plan import check_without_source
from kdyno.kernel.source import fetch
from kdyno.machine.base import Description, Machine
from kdyno.machine.config import FakeConfig, QemuConfig
from kdyno.machine.registry import open_machine
from kdyno.state import State
from kdyno.store.records import RunRecord, VariantRecord
from kdyno.store.store import Store
from kdyno.talk import Talk

RUN_ID_DIGITS = 12
Plans = Mapping[str, tuple[BuildPlan, ...]]
"""By variant, one for each layout; variants that differ only in how they are started share their images."""
Images = Mapping[str, tuple[Image, ...]]
"""By variant, one for each layout."""


@dataclass(frozen=True)
class Prepared:
    """An experiment that has been checked against this host: everything that can be known before building."""

    experiment: Experiment
    machine: Machine
    about: Description
    job: Job
    plans: Plans
    """Empty where the machine replays a recording."""


def plan_builds(experiment: Experiment, state: State, talk: Talk) -> Plans:
    """What has to be built for each variant; raises KdynoError for all that can be known to fail."""
    check_without_source(experiment.variants.values(), experiment.config, state)
    source = fetch(experiment.source, state, talk.say)
    plans = {
        name: tuple(plan_build(recipe, source, experiment.config, state) for recipe in recipes(experiment, name))
        for name in experiment.variants
    }
    for name, (first, *_) in plans.items():
        for note in first.notes:
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
    for variant, (first, *_) in plans.items():
        machine.require_cpu(first.needs, f"variant {variant}")
    return Prepared(experiment, machine, about, job, plans)


def build_images(plans: Plans, state: State, talk: Talk) -> Images:
    """Each image is built once, whoever needs it and however often; what differs only in layout shares its objects."""
    wanted: dict[str, list[tuple[str, BuildPlan]]] = defaultdict(list)
    for variant, layouts in plans.items():
        for plan in layouts:
            wanted[plan.objects_key].append((variant, plan))
    notes: set[str] = set()

    def say_once(note: str) -> None:
        if note not in notes:
            notes.add(note)
            talk.say(note)

    found: dict[str, Image] = {}
    for group in wanted.values():
        variants = ", ".join(dict.fromkeys(variant for variant, _ in group))
        with talk.working(f"building {variants}", about=True) as advance:
            built = build_layouts([plan for _, plan in group], state, advance, say=say_once)
        found |= {image.record.key: image for image in built}
    return {variant: tuple(found[plan.key] for plan in layouts) for variant, layouts in plans.items()}


def run_identity(prepared: Prepared, repeat: int) -> str:
    """Content hash of all that decides the samples; `repeat` tells carryings-out of one experiment apart."""
    experiment = prepared.experiment
    return digest(
        {
            "name": experiment.name,
            "baseline": experiment.baseline,
            "variants": {
                name: {"images": [plan.key for plan in prepared.plans.get(name, ())], "cmdline": recipe.cmdline}
                for name, recipe in experiment.variants.items()
            },
            "job": prepared.job.model_dump(mode="json"),
            "machine": prepared.about.facts,
            "host": host_facts() if prepared.about.lane == "wall" else None,
            "limits": experiment.machine.model_dump(mode="json").get("limits"),
            "blocks": experiment.blocks,
            "layouts": experiment.layouts,
            "seed": experiment.seed,
            "seeds": experiment.seeds,
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


def begin_run(run_id: str, prepared: Prepared, images: Images, store: Store) -> RunRecord:
    """Put the run on record; the same id again changes nothing."""
    experiment, about = prepared.experiment, prepared.about
    run = RunRecord(
        id=run_id,
        name=experiment.name,
        created=datetime.now(UTC),
        experiment=experiment.model_dump_json(),
        baseline=experiment.baseline,
        blocks=experiment.blocks,
        layouts=experiment.layouts,
        seed=experiment.seed,
        lane=about.lane,
        machine=about.facts,
        host=host_facts(),
        notices=(*about.notices, *filter(None, [experiment.pilot])),
        margin=experiment.judge.margin,
        alpha=experiment.judge.alpha,
        correction=experiment.judge.correction,
        looks=experiment.judge.looks,
        kdyno=__version__,
        variants=tuple(
            VariantRecord(name=name, recipe=recipe, images=tuple(image.record for image in images.get(name, ())))
            for name, recipe in experiment.variants.items()
        ),
    )
    store.begin(run)
    return run
