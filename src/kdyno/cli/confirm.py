"""`kdyno confirm`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.base.terminal import line
from kdyno.base.text import clean, format_count, format_signed
from kdyno.cli import exit_codes
from kdyno.cli.common import add_run, number_from, print_json, run_of, state_of, store_of, talk_of
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kdyno.tune.confirm import ConfirmedEffect, ConfirmedWinner

NOT_CONFIRMED = 2
MEAN = "mean speed"


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("variant", metavar="VARIANT", help="the variant to measure again, beside the baseline")
    parser.add_argument(
        "-t",
        "--tests",
        metavar="TEST,...",
        default="",
        help="other tests of the same workload, which chose nothing (default: those of the run)",
    )
    parser.add_argument("--blocks", type=number_from(2), metavar="N", help="blocks (default: as many as the run had)")
    parser.add_argument(
        "--layouts", type=number_from(2), metavar="N", help="new link orders (default: as many as the run had, or 6)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.tune.confirm import ConfirmRequest, confirm_variant

    tests = tuple(test for test in args.tests.split(",") if test)
    request = ConfirmRequest(args.variant, tests, args.blocks, args.layouts)
    talk = talk_of(args)
    with store_of(args) as store:
        run = run_of(args, store, args.run)
        confirmed, outcome = confirm_variant(run, request, Session(state_of(args), store, talk))
    if args.json:
        print_json(confirmed.model_dump(mode="json"))
    else:
        for text in lines(confirmed):
            line(text)
    if outcome.lost:
        talk.warn("boots were lost: run the same command to try them again")
        return exit_codes.LOST
    return exit_codes.DONE if confirmed.is_confirmed else NOT_CONFIRMED


def lines(confirmed: ConfirmedWinner) -> Iterator[str]:
    """Yield the summary, and a row for each benchmark and for the mean."""
    yield _summary(confirmed)
    orders = f" and {format_count(confirmed.layouts, 'link order')}" if confirmed.layouts else ""
    yield (
        f"run {confirmed.confirmation[:12]}: {format_count(confirmed.blocks, 'block')}{orders} that run "
        f"{confirmed.run[:12]} did not have"
    )
    rows = [*confirmed.effects, *([confirmed.mean] if confirmed.mean else [])]
    width = max([len(row.benchmark) for row in rows] + [len(MEAN)])
    yield ""
    yield f"{'benchmark':<{width}} {'promised':>10} {'found':>10}  {'interval':<18} verdict"
    yield from (_row(row, width) for row in rows)


def _summary(confirmed: ConfirmedWinner) -> str:
    mean, name = confirmed.mean, f"{clean(confirmed.variant)} against {clean(confirmed.baseline)}"
    if mean is None or mean.found is None:
        return f"{name}: no mean over the benchmarks"
    found = f"{_percent(mean.found)} ({mean.verdict or 'no verdict'})"
    if mean.promised is None:
        return f"{name}: {found} on other benchmarks than those of the run"
    word = "confirmed" if confirmed.is_confirmed else "not confirmed"
    promised = f"{_percent(mean.promised)} ({mean.promised_verdict or 'no verdict'})"
    return f"{name}: {word}: {promised} promised, {found} found"


def _row(effect: ConfirmedEffect, width: int) -> str:
    interval = (
        f"{format_signed(effect.low)} to {format_signed(effect.high)} %"
        if effect.low is not None and effect.high is not None
        else ""
    )
    name = effect.benchmark or MEAN
    return (
        f"{name:<{width}} {_percent(effect.promised):>10} {_percent(effect.found):>10}  {interval:<18} "
        f"{effect.verdict or 'none'}"
    )


def _percent(effect: float | None) -> str:
    return "-" if effect is None else f"{format_signed(effect)} %"
