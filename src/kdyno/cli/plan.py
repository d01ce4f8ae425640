"""`kdyno plan`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.talk import Talk
from kdyno.base.terminal import line
from kdyno.cli.common import print_json, state_of, store_of, talk_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdyno.base.state import State
    from kdyno.runs.experiment.models import Experiment
    from kdyno.runs.forecast import ConfirmationForecast, Forecast
    from kdyno.store.store import Store

BLOCKS_SHOWN = 4


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", type=Path, help="experiment file")
    parser.add_argument("--json", action="store_true", help="print the plan as JSON, with every boot")


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.experiment.resolve import load_experiment
    from kdyno.runs.forecast import forecast
    from kdyno.runs.outlook import total_time
    from kdyno.runs.prepare import prepare
    from kdyno.runs.run_plan import plan_run

    state, talk = state_of(args), talk_of(args)
    whole = experiment = load_experiment(args.experiment)
    if experiment.auto:
        from kdyno.runs.pilot import COMES_FIRST, pilot_of

        experiment = pilot_of(experiment)
        talk.say(COMES_FIRST)
    prepared = prepare(experiment, state, talk, may_be_unreachable=True)
    if not prepared.requirement:
        prepared.require_cpu()
    with store_of(args, "look") as store:
        ahead = forecast(prepared, plan_run(prepared), state, store)
        if whole.confirm:
            ahead = ahead.model_copy(update={"confirmation": _confirmation(whole, ahead, state, store)})
    if args.json:
        print_json(ahead.model_dump(mode="json"))
        return 0
    about = prepared.about
    run = ahead.run or "not known yet"
    line(f"experiment {experiment.name}, run {run}, lane {about.lane}, baseline {experiment.baseline}")
    line()
    _print_images(ahead)
    _print_given(about.shared, experiment)
    _print_boots(ahead, experiment)
    line()
    line(f"time: {total_time(ahead)}")
    if ahead.requirement:
        line(f"needs: {ahead.requirement}")
    if ahead.confirmation:
        _print_confirmation(ahead.confirmation)
    return 0


def _confirmation(experiment: Experiment, before: Forecast, state: State, store: Store) -> ConfirmationForecast:
    """Forecast the run on this processor that comes after the verdicts, without what is made before."""
    from kdyno.runs.forecast import ConfirmationForecast, forecast
    from kdyno.runs.prepare import prepare
    from kdyno.runs.run_plan import plan_run
    from kdyno.runs.silicon_kernels import plan_on_silicon

    plan = plan_on_silicon(experiment, state)
    if plan.experiment is None:
        return ConfirmationForecast(ahead=None, left_out=dict(plan.left_out))
    prepared = prepare(plan.experiment, state, Talk(quiet=True))
    ahead = forecast(prepared, plan_run(prepared), state, store).after(before)
    return ConfirmationForecast(ahead=ahead, left_out=dict(plan.left_out))


def _print_confirmation(confirmation: ConfirmationForecast) -> None:
    from kdyno.base.text import format_count
    from kdyno.runs.outlook import total_time

    line()
    line("then, on this processor: the same recipes as kernels that are processes")
    for name, reason in confirmation.left_out.items():
        line(f"  {name} can't be had there: {reason}")
    if ahead := confirmation.ahead:
        line()
        _print_images(ahead)
        line()
        line(f"boots: {format_count(len(ahead.boots), 'boot')} to do, {ahead.boots_done} on record, run {ahead.run}")
        line(f"time: {total_time(ahead)}")


def _print_images(ahead: Forecast) -> None:
    """Print the images of a run, and what is trained before them."""
    from kdyno.base.text import format_count
    from kdyno.measure.paths.table import list_loads
    from kdyno.runs.outlook import span

    line("images")
    origins = {(build.kernel, build.config) for build in ahead.builds}
    width = max(24, max((len(build.variant) for build in ahead.builds), default=0))
    bases = {""}
    for build in ahead.builds:
        took = f", {span(build.seconds)}" if build.seconds else ""
        line(f"  {build.variant:<{width}} {build.key[:12]}  {build.decision}{took}: {build.why}")
        if build.decision == "build" or build.seconds_from not in bases:
            line(f"  {'':<{width}} {'':<12}  {build.seconds_from}")
            bases.add(build.seconds_from)
        if len(origins) > 1:
            line(f"  {'':<{width}} {'':<12}  linux {build.kernel}, configuration {build.config}")
    if ahead.trainings:
        line()
        line("training, before the images that use its profiles")
    for training in ahead.trainings:
        boots = f"{format_count(training.boots, 'boot')}, {training.left} to do" if training.left else "boots on record"
        loads = list_loads(training.tests)
        line(f"  {training.use:<{width}} {training.image[:12]}  {training.variant}: {loads}; {boots}")


def _print_given(shared: Sequence[Path], experiment: Experiment) -> None:
    """Print which files of this host guests and kernels receive, besides the sources."""
    from kdyno.kernel.own_patches import given_files

    users: dict[str, list[str]] = {}
    for name, recipe in experiment.variants.items():
        base = recipe.config or experiment.config
        bases = [base.removeprefix("file:")] if "/" in base else []
        for path in (*given_files(recipe.patches), *recipe.fragments, *bases):
            users.setdefault(path, []).append(name)
    if not (shared or users):
        return
    line()
    line("files given from this host")
    for directory in shared:
        line(f"  {directory}: to every guest, all files that this user can read")
    for path, names in users.items():
        line(f"  {path}: to the kernel of {', '.join(names)}")


def _print_boots(ahead: Forecast, experiment: Experiment) -> None:
    from kdyno.judge.stats.sequential import look_ends

    blocks = experiment.blocks
    line()
    line(f"boots: {len(ahead.boots)} to do, {ahead.boots_done} on record, {ahead.side_by_side} side by side")
    line(f"  {blocks} blocks, each with every variant once, in random order, under one seed: drift affects all")
    line("  variants equally, and every comparison is made within a block")
    if experiment.seeds == "own":
        line("  each boot has its own seed")
    if experiment.layouts:
        line(f"  the blocks take {experiment.layouts} layouts of each variant in turn")
    if experiment.judge.looks > 1:
        ends = ", ".join(map(str, look_ends(blocks, experiment.judge.looks)))
        line(f"  judged after {ends} blocks; the run ends when every comparison is decided")
    for block in sorted({boot.block for boot in ahead.boots})[:BLOCKS_SHOWN]:
        order = [boot for boot in ahead.boots if boot.block == block]
        line(f"  block {block:<3} seed {order[0].seed:<11} {', '.join(boot.variant for boot in order)}")
    if blocks > BLOCKS_SHOWN and ahead.boots:
        line("  ...")
    line(f"  about {ahead.boot_seconds:.1f} s each ({ahead.boot_seconds_from})")
