"""`kdyno tune SPACE.toml`: searches a space of recipes, and confirms the best one."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.talk import Talk
from kdyno.base.text import clean, format_count, format_list, format_signed
from kdyno.runs.experiment.plan import derived_seed
from kdyno.runs.experiment.space import RungSpec
from kdyno.runs.forecast import boot_time, forecast_builds
from kdyno.runs.outlook import span
from kdyno.runs.prepare import Prepared, prepare
from kdyno.runs.session import Session
from kdyno.tune.confirm import ConfirmedWinner, ConfirmRequest, confirm_variant
from kdyno.tune.space.bench import SpaceBench, baseline_alone, experiment_on, rungs_of
from kdyno.tune.space.importance import knob_importance
from kdyno.tune.space.model import FailedRecipe, SearchResult, TriedRecipe
from kdyno.tune.space.outcome import TrialOutcome
from kdyno.tune.space.read import SpaceFile, read_space
from kdyno.tune.space.record import SearchRecordFile, search_id
from kdyno.tune.space.samplers import PROPOSERS
from kdyno.tune.space.search import SearchState, Step, is_comparable, pareto_front
from kdyno.tune.space.space import Point

BUILD_SECONDS = 600.0
"""The time of a build where nothing else is known: a guess."""
NOTHING_BETTER = "no recipe was better than the baseline in the search: nothing is confirmed"


class NothingBuiltForObjective(UserError):
    message = "[search] objectives names {objectives}, but a machine of type `{type}` boots no kernel that is built"
    hint = 'take objectives = ["speed"], or a machine that boots kernels'


@dataclass(frozen=True)
class SearchForecast:
    """What a search would do at most."""

    recipes: int
    builds: int
    seconds: float
    build_seconds: float
    boot_seconds: float


@dataclass
class SpaceSearch:
    """One search: its space, its record, and what measures recipes."""

    file: SpaceFile
    rungs: tuple[RungSpec, ...]
    record: SearchRecordFile
    state: SearchState
    session: Session
    seed: int
    prepared: Prepared
    """The baseline on the first rung."""

    @property
    def talk(self) -> Talk:
        return self.session.talk


def open_search(path: Path, session: Session) -> SpaceSearch:
    """Read a space and the record of its search. Nothing is built. Raises what reading the space raises."""
    file = read_space(path)
    rungs = rungs_of(file.experiment, file.search.rungs)
    prepared = prepare(baseline_alone(file, rungs[0]), session.state, Talk(quiet=True))
    for rung in rungs[1:]:
        if not is_comparable(rung, rungs[0]):
            prepare(baseline_alone(file, rung), session.state, Talk(quiet=True))
    if not prepared.about.needs_images and (unbuilt := [name for name in file.search.objectives if name != "speed"]):
        raise NothingBuiltForObjective(objectives=format_list(unbuilt), type=prepared.settings.type)
    images = [plan.key for plans in prepared.plans.values() for plan in plans]
    name = search_id(file.experiment, rungs, images)
    record = SearchRecordFile(session.state.searches / f"{name}.json", file.experiment.name)
    record.resume(session.store)
    seed = derived_seed(file.experiment.seed, "search")
    state = SearchState(file.space, file.search, rungs, record.record.trials)
    return SpaceSearch(file, rungs, record, state, session, seed, prepared)


def forecast_search(search: SpaceSearch) -> SearchForecast:
    """Forecast the rest of a search: its recipes, its builds, and their time. May ask Kconfig, and builds nothing."""
    file, session, prepared = search.file, search.session, search.prepared
    builds = forecast_builds(prepared.plans, session.state)
    guess = max((build.seconds or 0.0 for build in builds), default=0.0)
    recorded = [trial.build_seconds for trial in search.record.record.trials if trial.build_seconds]
    build = max(recorded, default=0.0) or guess or (BUILD_SECONDS if prepared.plans else 0.0)
    about = prepared.about
    boot, *_ = boot_time(
        about.lane, about.pmu.events if about.pmu else None, prepared.experiment.workload, session.store
    )
    trial = 2 * search.rungs[0].blocks * boot / about.parallel
    left = max(0, min(file.search.recipes - 1, len(file.space.points) - 1) - len(search.state.by_rung[0]))
    objects = {file.space.objects_of(point) for point in file.space.points}
    most = len(objects) - 1 if file.search.builds is None else min(file.search.builds, len(objects) - 1)
    remaining = max(0, min(most - search.state.built().builds, left))
    seconds = remaining * build + left * trial
    if file.search.hours is not None:
        seconds = min(seconds, max(0.0, 3600 * file.search.hours - search.state.seconds))
    return SearchForecast(left, remaining, seconds, build, trial)


def ahead_lines(search: SpaceSearch, ahead: SearchForecast) -> list[str]:
    """Return what a search will do, in words."""
    space = search.file.space
    count = f"{len(space.points):,} recipes" if space.is_listed else f"{space.product:,} combinations"
    conditions = sum(bool(knob.when) for knob in space.knobs)
    limits = [format_count(conditions, "condition")] if conditions else []
    limits += [f"{len(space.forbid):,} forbidden"] if space.forbid else []
    knobs = format_count(len(space.knobs), "knob")
    done = len(search.state.by_rung[0])
    recorded = f", {done:,} on record" if done else ""
    lines = [
        f"space: {count} of {knobs}{', ' + ', '.join(limits) if limits else ''}",
        f"to do: try at most {format_count(ahead.recipes, 'recipe')}{recorded}, build at most "
        f"{format_count(ahead.builds, 'kernel')}, on {format_count(len(search.rungs), 'rung')} of "
        f"{', '.join(str(rung.blocks) for rung in search.rungs)} blocks",
        f"time: at most {span(ahead.seconds)} and the confirmation, a guess",
    ]
    return lines + [f"left out for its risk: {choice}" for choice in space.left_out]


def carry_out(
    search: SpaceSearch, path: Path, *, confirm: bool, clock: Callable[[], float] = time.monotonic
) -> SearchResult:
    """Search, and confirm the best recipe. The same call continues where it was interrupted. Raises KdynoError."""
    file, session = search.file, search.session
    bench = SpaceBench(file, session, search.rungs, clock=clock, images_by_age=_built_images(search))
    with session.state.hold_shared():
        config = bench.measure_baseline()
    # Kconfig's own values are known now: they are the baseline's choices of symbols that its recipe leaves alone.
    file = bench.file = search.file = read_space(path, config)
    state = search.state = SearchState(file.space, file.search, search.rungs, search.record.record.trials)
    ahead = forecast_search(search)
    for line in ahead_lines(search, ahead):
        session.talk.say(line)
    propose = PROPOSERS[file.search.sampler]
    number = 0
    while (
        step := state.next_step(propose, state.costs(ahead.build_seconds, ahead.boot_seconds), search.seed)
    ) is not None:
        number += 1
        outcome = bench.measure(step.point, step.rung)
        search.record.add(outcome)
        state.add(outcome)
        session.talk.say(_trial_line(search, step, outcome))
    return _conclude(search, confirm=confirm)


def _built_images(search: SpaceSearch) -> list[str]:
    """Return the keys of the images that earlier commands built for this search, the oldest first."""
    store = search.session.store
    keys = [
        image.key
        for trial in search.record.record.trials
        if trial.run is not None and trial.build_seconds
        for variant in store.run(trial.run).variants
        if variant.name != search.file.experiment.baseline
        for image in variant.images
    ]
    return list(dict.fromkeys(keys))


def _trial_line(search: SpaceSearch, step: Step, outcome: TrialOutcome) -> str:
    """Return one line for a trial: the recipe, its gain, and how much of the budget remains."""
    title = clean(search.file.space.title(step.point))
    rung = f" (rung {step.rung + 1})" if len(search.rungs) > 1 else ""
    if outcome.failed:
        result = f"left out at the {outcome.failed}: {clean(outcome.reason)}"
    else:
        speed = outcome.measured["speed"]
        result = f"{format_signed(speed.gain)} % speed"
    left = _time_left(search)
    return f"{len(search.state.by_rung[0]):,} of {search.file.search.recipes - 1:,}: {title}{rung}: {result}{left}"


def _time_left(search: SpaceSearch) -> str:
    """Return the time that remains by the trials so far; empty before there are any."""
    trials = [trial for trials in search.state.by_rung for trial in trials.values() if trial.seconds]
    done, most = len(search.state.by_rung[0]), min(search.file.search.recipes, len(search.file.space.points)) - 1
    if not trials or done >= most:
        return ""
    seconds = sum(trial.seconds for trial in trials) / done * (most - done)
    if search.file.search.hours is not None:
        seconds = min(seconds, max(0.0, 3600 * search.file.search.hours - search.state.seconds))
    return f"; {span(seconds)} left at most" if seconds else ""


def _conclude(search: SpaceSearch, *, confirm: bool) -> SearchResult:
    """Confirm the best recipe, and return the whole outcome."""
    best = search.state.best()
    result = result_of(search, best)
    if best is None:
        return result.model_copy(update={"claim": NOTHING_BETTER})
    if not confirm:
        title = clean(search.file.space.title(best.point))
        return result.model_copy(update={"claim": f"{title} was the best in the search; it was not confirmed"})
    run_id = search.state.by_rung[best.rung][best.point].run
    assert run_id is not None
    search.talk.say(f"confirming {clean(search.file.space.title(best.point))} on fresh seeds and link orders")
    run, name = search.session.store.run(run_id), search.file.name(best.point)
    confirmed, _ = confirm_variant(run, ConfirmRequest(name, blocks=search.file.experiment.blocks), search.session)
    held_out: ConfirmedWinner | None = None
    if search.file.search.held_out:
        search.talk.say(f"confirming it on {format_count(len(search.file.search.held_out), 'test')} held out")
        request = ConfirmRequest(name, search.file.search.held_out, search.file.experiment.blocks)
        held_out, _ = confirm_variant(run, request, search.session)
    return result.model_copy(
        update={"confirmed": confirmed, "held_out": held_out, "claim": claim(search, best.point, confirmed, held_out)}
    )


def claim(search: SpaceSearch, best: Point, confirmed: ConfirmedWinner, held_out: ConfirmedWinner | None) -> str:
    """Return the last sentence of the command."""
    name = clean(search.file.space.title(best))
    risks = search.file.space.risks(best)
    traded = f"; it trades {', '.join(risks)}" if risks else ""
    first = search.file.search.objectives[0]
    if first != "speed":
        smaller = math.expm1(-search.state.newest[best].measured[first].value)
        thing = {"text": "text", "build": "time of a build"}[first]
        verdict = confirmed.mean.verdict if confirmed.mean and confirmed.mean.verdict else "undecided"
        return (
            f"{name} has the smallest {thing}: {format_signed(smaller)} %; its speed on fresh seeds and link orders is "
            f"{format_signed(_found(confirmed))} %, {verdict}{traded}"
        )
    if not confirmed.is_better:
        return f"no recipe beats the baseline beyond noise: {name} was the best in the search, and was not confirmed"
    found = f"{format_signed(_found(confirmed))} % speed"
    if held_out is None:
        return f"{name} beats the baseline: {found} on fresh seeds and link orders{traded}"
    other = f"{format_signed(_found(held_out))} %"
    if held_out.is_better:
        return f"{name} beats the baseline: {found} on fresh seeds and link orders, {other} on tests held out{traded}"
    return f"{name} beats the baseline on the tests of the search alone: {found}, and {other} on tests held out{traded}"


def _found(confirmed: ConfirmedWinner) -> float:
    return confirmed.mean.found if confirmed.mean and confirmed.mean.found is not None else 0.0


def result_of(search: SpaceSearch, best: Step | None) -> SearchResult:
    """Return the outcome of the trials so far."""
    file, state = search.file, search.state
    newest = state.newest
    ok = {point: trial for point, trial in newest.items() if trial.is_ok}
    objectives = file.search.objectives
    front = _front(search, ok)
    clocks = {rung: _clock(search, rung) for rung in range(len(search.rungs))}
    has_clocks = len(set(clocks.values())) > 1
    recipes = [
        TriedRecipe(
            name=file.space.title(point),
            values=trial.values,
            rung=trial.rung + 1,
            measured=trial.measured,
            clock=clocks[trial.rung] if has_clocks else "",
            is_on_front=point in front,
            risks=tuple(file.space.risks(point)),
        )
        for point, trial in ok.items()
    ]
    return SearchResult(
        name=file.experiment.name,
        space=len(file.space.points) if file.space.is_listed else file.space.product,
        is_exact=file.space.is_listed,
        lane=experiment_on(file.experiment, search.rungs[-1]).machine.lane,
        sampler=file.search.sampler,
        objectives=objectives,
        recipes=tuple(
            sorted(recipes, key=lambda one: (-one.rung if has_clocks else 0, -one.measured[objectives[0]].value))
        ),
        failures=tuple(
            FailedRecipe(name=file.space.title(point), stage=trial.failed, reason=trial.reason)
            for point, trial in newest.items()
            if trial.failed
        ),
        left_out=file.space.left_out,
        builds=state.built().builds,
        seconds=state.seconds,
        winner=file.space.title(best.point) if best else "",
        knobs=knob_importance(
            file.space,
            {p: t for p, t in state.tried.items() if t.is_ok},
            best.point if best else None,
            objectives[0],
            search.seed,
        ),
    )


def _clock(search: SpaceSearch, rung: int) -> str:
    """Return the lane of a rung, and its tests where it has some of its own."""
    spec = search.rungs[rung]
    lane = experiment_on(search.file.experiment, spec).machine.lane
    return f"{lane}: {format_list(spec.tests)}" if spec.tests else lane


def _front(search: SpaceSearch, measured: Mapping[Point, TrialOutcome]) -> set[Point]:
    """Return the Pareto front of the recipes that were measured alike: as those on the highest rung were."""
    if not measured:
        return set()
    highest = search.rungs[max(trial.rung for trial in measured.values())]
    alike = {point: trial for point, trial in measured.items() if is_comparable(search.rungs[trial.rung], highest)}
    has_text = any("text" in trial.measured for trial in alike.values())
    objectives = search.file.search.objectives
    compared = tuple(dict.fromkeys([*objectives, "text"])) if has_text else objectives
    values = {
        point: [trial.measured[name].value for name in compared]
        for point, trial in alike.items()
        if set(compared) <= set(trial.measured)
    }
    baseline = search.file.space.baseline
    return set(pareto_front({baseline: [0.0] * len(compared), **values})) - {baseline}
