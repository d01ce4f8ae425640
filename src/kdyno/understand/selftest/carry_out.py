"""Carrying a self-test out: one long run of a kernel under two names, cut into experiments of a few blocks."""

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
"""Nothing differs, so few blocks are as often wrong as many."""
FEWEST_BLOCKS = 3
PAIRS = 20
"""Pairs of links, where neither the user nor the experiment says how many."""
MOST_PAIRS = 500


@dataclass(frozen=True)
class SelfTestRequest:
    """What is to be carried out."""

    kind: Kind
    experiments: int
    blocks: int
    """Of each experiment."""
    tests: tuple[str, ...] = ()
    """Those to run; all of the experiment's if there are none."""


class Unfinished(UserError):
    message = "the self-test is unfinished: {lost} boots were lost; the first: {why}"
    hint = "the same command does them again"


class NothingMeasured(UserError):
    message = "no boot of the self-test measured anything; see `kdyno show {run}`"
    hint = "does `kdyno run` work with the same kernel?"


class TooLong(UserError):
    message = "{experiments} of {blocks} are {work}: about {hours:,.0f} hours, by a guess"
    hint = "{most}"


class NothingIsLinked(UserError):
    message = "there is no link order to vary: a machine of type `{type}` boots no images that are built here"
    hint = 'name an experiment whose machine boots kernels: `type = "qemu"`'


class OrderedAnyway(UserError):
    message = "{variant} has lto = {lto}: link-time optimisation orders functions itself"
    hint = "name an experiment whose baseline has no lto"


def own_experiment(lane: LaneName, kind: Kind = "aa") -> Experiment:
    """What is tested if no experiment is named: the kernel that is the demo's baseline.

    Without line tables where it is linked many times: they are four fifths of each image.
    """
    return Experiment(
        name="selftest",
        source="debian:linux-source-6.12",
        baseline="gcc-O2",
        variants={"gcc-O2": Recipe(toolchain="gcc", opt="O2", lines=kind == "aa")},
        machine=default_machine(lane=lane),
    )


def aa_experiment(of: Experiment, request: SelfTestRequest) -> Experiment:
    """The run that holds all A/A experiments: the baseline under two names, each boot with a seed of its own.

    With shared seeds the model lane gives the same count twice, and could never be wrong.
    """
    recipe = of.variants[of.baseline]
    return _both(of, request, {"variants": dict.fromkeys(NAMES, recipe), "layouts": 0, "seeds": "own"})


def layouts_experiment(of: Experiment, request: SelfTestRequest) -> Experiment:
    """The run that holds all experiments with two link orders: the baseline under two names, linked in other orders.

    Block i boots layout i mod `experiments` of both, so that experiment k has the blocks of layout k. No two
    experiments share a link: they are independent, and the binomial interval of their rate holds. A's links are those
    that the baseline has in a run with layouts.
    """
    recipe = of.variants[of.baseline]
    other = recipe.model_copy(update={"layout_seed": (recipe.layout_seed or 0) ^ 1})
    variants = dict(zip(NAMES, (recipe, other), strict=True))
    return _both(of, request, {"variants": variants, "layouts": request.experiments})


def _both(of: Experiment, request: SelfTestRequest, own: dict[str, object]) -> Experiment:
    return of.model_copy(
        update={
            "name": f"{of.name}-{request.kind}",
            "baseline": NAMES[0],
            "blocks": request.experiments * request.blocks,
            "auto": False,
            "workload": of.workload.select_tests(request.tests),
            "judge": of.judge.model_copy(update={"looks": 1}),
            **own,
        }
    )


def request_of(
    of: Experiment, kind: Kind, experiments: int | None, blocks: int | None, tests: tuple[str, ...]
) -> SelfTestRequest:
    """What is carried out where the user leaves numbers out.

    With layouts that is as many pairs as the experiment has layouts, and its own number of blocks: links differ, and
    the more blocks there are, the more surely that is seen.
    """
    if kind == "aa":
        return SelfTestRequest(kind, experiments or AA_EXPERIMENTS, blocks or AA_BLOCKS, tests)
    pairs = of.layouts if of.layouts > 1 else PAIRS
    return SelfTestRequest(kind, experiments or pairs, blocks or max(of.blocks, FEWEST_BLOCKS), tests)


def selftest(of: Experiment, request: SelfTestRequest, *, session: Session, again: bool) -> SelfTest:
    """Boot, judge every experiment, and keep what came out. An interrupted self-test goes on where it stopped.

    Raises TooLong, NothingIsLinked and OrderedAnyway before anything is built.
    """
    _require_feasible(of, request)
    experiment = aa_experiment(of, request) if request.kind == "aa" else layouts_experiment(of, request)
    done = run_experiment(experiment, session, again=again)
    if done.outcome.lost:
        raise Unfinished(lost=len(done.outcome.lost), why=next(iter(done.outcome.lost.values())))
    run, boots = session.store.run(done.run_id), session.store.boots(done.run_id)
    observed = [
        benchmark
        for benchmark in observations(boots, with_unlisted(session.store.benchmarks(run.id), boots), NAMES)
        if set(NAMES) <= benchmark.groups.keys()
    ]
    if not observed:
        raise NothingMeasured(run=run.id)
    design = Design(request.kind, request.experiments, request.blocks, of.blocks, run.margin, run.alpha, run.correction)
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
        planned=of.blocks,
        margin=run.margin,
        alpha=run.alpha,
        correction=run.correction,
        family_wise=family_wise,
        benchmarks=tested,
    )
    session.store.keep_selftest(run.id, result.created, result.model_dump(mode="json"))
    return result


def _require_feasible(of: Experiment, request: SelfTestRequest) -> None:
    """Raise TooLong for more boots than a run can have, or more links than anybody waits for.

    Also raises NothingIsLinked and OrderedAnyway.
    """
    blocks = request.experiments * request.blocks
    links = 2 * request.experiments if request.kind == "layouts" else 0
    why = too_many_boots(len(NAMES), blocks)
    if links > 2 * MOST_PAIRS:
        why = f"take at most {MOST_PAIRS} pairs: they tell a rate of 50 % to ±4.5 points, and 100 tell it to ±10"
    if not why and not links:
        return
    about = open_machine(of.machine).describe()
    if why:
        seconds = links * LINK_SECONDS + len(NAMES) * blocks * LANES[about.lane].first_boot_seconds / about.parallel
        raise TooLong(
            experiments=format_count(request.experiments, "experiment"),
            blocks=format_count(request.blocks, "block"),
            work=" and ".join([*([f"{links:,} links"] if links else []), f"{len(NAMES) * blocks:,} boots"]),
            hours=seconds / 3600,
            most=why,
        )
    if not about.needs_images:
        raise NothingIsLinked(type=of.machine.type)
    if (lto := of.variants[of.baseline].lto) != "none":
        raise OrderedAnyway(variant=of.baseline, lto=lto)
