"""Carries out a self-test: one long run of a kernel under two names, divided into experiments of a few blocks."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime

from kdyno.base.errors import UserError
from kdyno.base.lanes import LANES, LaneName
from kdyno.base.text import format_count
from kdyno.boot.registry import default_machine, open_machine
from kdyno.judge.verdicts.assemble import with_unlisted
from kdyno.judge.verdicts.selftest import Kind, SelfTest
from kdyno.judge.verdicts.values import observations
from kdyno.kernel.recipe import Recipe
from kdyno.runs.experiment.models import Experiment, too_many_boots
from kdyno.runs.forecast import LINK_SECONDS
from kdyno.runs.run import run_experiment
from kdyno.runs.session import Session
from kdyno.understand.selftest.judge import Design, judge_all

NAMES = ("A", "B")
AA_EXPERIMENTS = 200
AA_BLOCKS = 4
"""The kernels don't differ, so that few blocks are wrong as often as many."""
FEWEST_BLOCKS = 3
PAIRS = 20
"""The number of pairs of links, if neither the user nor the experiment sets it."""
MOST_PAIRS = 500


@dataclass(frozen=True)
class SelfTestRequest:
    """The requested self-test."""

    kind: Kind
    experiments: int
    blocks: int
    """The number of blocks of each experiment."""
    tests: tuple[str, ...] = ()
    """The tests; empty: all tests of the experiment."""


class Unfinished(UserError):
    message = "the self-test is unfinished: {lost} boots were lost; the first: {why}"
    hint = "run the same command to repeat them"


class NothingMeasured(UserError):
    message = "no boot of the self-test measured anything; see `kdyno show {run}`"
    hint = "check that `kdyno run` works with the same kernel"


class TooLong(UserError):
    message = "{experiments} of {blocks} are {work}: about {hours:,.0f} hours, by a guess"
    hint = "{most}"


class NothingIsLinked(UserError):
    message = "the link order cannot be varied: a machine of type `{type}` boots no images that are built here"
    hint = 'name an experiment whose machine boots kernels: `type = "qemu"`'


class OrderedAnyway(UserError):
    message = "{variant} has lto = {lto}: link-time optimisation orders functions itself"
    hint = "name an experiment whose baseline has no lto"


def own_experiment(lane: LaneName, kind: Kind = "aa") -> Experiment:
    """Return the default experiment: the kernel of the demo's baseline.

    It has no line tables if it is linked many times: they are four fifths of each image.
    """
    return Experiment(
        name="selftest",
        source="debian:linux-source-6.12",
        baseline="gcc-O2",
        variants={"gcc-O2": Recipe(toolchain="gcc", opt="O2", lines=kind == "aa")},
        machine=default_machine(lane=lane),
    )


def aa_experiment(experiment: Experiment, request: SelfTestRequest) -> Experiment:
    """Return the run of all A/A experiments: the baseline under two names, each boot with its own seed.

    With shared seeds the model lane would give the same count twice, and could never be wrong.
    """
    recipe = experiment.variants[experiment.baseline]
    return _under_two_names(
        experiment, request, {"variants": dict.fromkeys(NAMES, recipe), "layouts": 0, "seeds": "own"}
    )


def layouts_experiment(experiment: Experiment, request: SelfTestRequest) -> Experiment:
    """Return the run of all experiments with two link orders: the baseline under two names, linked in different orders.

    Block i boots layout i mod `experiments` of both, so that experiment k has the blocks of layout k. No two
    experiments share a link: they are independent, and the binomial interval of their rate holds. The links of A are
    those of the baseline in a run with layouts.
    """
    recipe = experiment.variants[experiment.baseline]
    other_recipe = recipe.model_copy(update={"layout_seed": (recipe.layout_seed or 0) ^ 1})
    variants = dict(zip(NAMES, (recipe, other_recipe), strict=True))
    return _under_two_names(experiment, request, {"variants": variants, "layouts": request.experiments})


def _under_two_names(experiment: Experiment, request: SelfTestRequest, changes: dict[str, object]) -> Experiment:
    return experiment.model_copy(
        update={
            "name": f"{experiment.name}-{request.kind}",
            "baseline": NAMES[0],
            "blocks": request.experiments * request.blocks,
            "auto": False,
            "workload": experiment.workload.select_tests(request.tests),
            "judge": experiment.judge.model_copy(update={"looks": 1}),
            "confirm": None,
            **changes,
        }
    )


def request_of(
    experiment: Experiment, kind: Kind, experiments: int | None, blocks: int | None, tests: tuple[str, ...]
) -> SelfTestRequest:
    """Return the request with default numbers for those that the user left out.

    With layouts these are as many pairs as the experiment has layouts, and its number of blocks: links differ, and
    more blocks show that more certainly.
    """
    if kind == "aa":
        return SelfTestRequest(kind, experiments or AA_EXPERIMENTS, blocks or AA_BLOCKS, tests)
    pairs = experiment.layouts if experiment.layouts > 1 else PAIRS
    return SelfTestRequest(kind, experiments or pairs, blocks or max(experiment.blocks, FEWEST_BLOCKS), tests)


def selftest(experiment: Experiment, request: SelfTestRequest, *, session: Session, again: bool) -> SelfTest:
    """Boot, judge every experiment, and keep the result. An interrupted self-test continues where it stopped.

    Raises TooLong, NothingIsLinked and OrderedAnyway before anything is built.
    """
    _require_feasible(experiment, request)
    run_of_all = aa_experiment(experiment, request) if request.kind == "aa" else layouts_experiment(experiment, request)
    finished_run = run_experiment(run_of_all, session, again=again)
    if finished_run.outcome.lost:
        raise Unfinished(lost=len(finished_run.outcome.lost), why=next(iter(finished_run.outcome.lost.values())))
    run, boots = session.store.run(finished_run.run_id), session.store.boots(finished_run.run_id)
    observed = [
        benchmark
        for benchmark in observations(boots, with_unlisted(session.store.benchmarks(run.id), boots), NAMES)
        if set(NAMES) <= benchmark.groups.keys()
    ]
    if not observed:
        raise NothingMeasured(run=run.id)
    design = Design(
        request.kind, request.experiments, request.blocks, experiment.blocks, run.margin, run.alpha, run.correction
    )
    family_wise, tested = judge_all(observed, NAMES, design)
    images = {image.key for variant in run.variants for image in variant.images}
    result = SelfTest(
        kind=request.kind,
        run=run.id,
        created=datetime.now(UTC),
        host=run.host,
        lane=run.lane,
        machine=run.machine,
        image=images.pop() if len(images) == 1 else None,
        experiments=request.experiments,
        blocks=request.blocks,
        planned=experiment.blocks,
        margin=run.margin,
        alpha=run.alpha,
        correction=run.correction,
        family_wise=family_wise,
        benchmarks=tested,
    )
    session.store.keep_selftest(run.id, result.created, result.model_dump(mode="json"))
    return result


def _require_feasible(experiment: Experiment, request: SelfTestRequest) -> None:
    """Raise TooLong for more boots than a run can have, or more links than MOST_PAIRS.

    Also raises NothingIsLinked and OrderedAnyway.
    """
    blocks = request.experiments * request.blocks
    links = 2 * request.experiments if request.kind == "layouts" else 0
    problem = too_many_boots(len(NAMES), blocks)
    if links > 2 * MOST_PAIRS:
        problem = f"use at most {MOST_PAIRS} pairs: they show a rate of 50 % to ±4.5 points, and 100 show it to ±10"
    if not problem and not links:
        return
    about = open_machine(experiment.machine).describe()
    if problem:
        seconds = links * LINK_SECONDS + len(NAMES) * blocks * LANES[about.lane].first_boot_seconds / about.parallel
        raise TooLong(
            experiments=format_count(request.experiments, "experiment"),
            blocks=format_count(request.blocks, "block"),
            work=" and ".join([*([f"{links:,} links"] if links else []), f"{len(NAMES) * blocks:,} boots"]),
            hours=seconds / 3600,
            most=problem,
        )
    if not about.needs_images:
        raise NothingIsLinked(type=experiment.machine.type)
    if (lto := experiment.variants[experiment.baseline].lto) != "none":
        raise OrderedAnyway(variant=experiment.baseline, lto=lto)
