"""`kdyno selftest`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.base.errors import UserError
from kdyno.base.lanes import DEFAULT_LANE, GUEST_LANES, LANES, PMU_CLOCKS
from kdyno.cli.common import number_from, print_json, state_of, store_of, talk_of
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from kdyno.judge.verdicts.selftest import Kind, SelfTest
    from kdyno.store.store import Store

FALSE_TOO_OFTEN = 2
AS_EXPERIMENT = 0
"""The value of --layouts without N: the number of layouts of the experiment."""


class NoSelfTest(UserError):
    message = "no self-test of this host is on record"
    hint = "run `kdyno selftest --aa`, or `kdyno selftest --aa --lane wall` for the wall lane"


class LaneTwice(UserError):
    message = "--lane cannot be combined with {experiment}, which sets its own lane"
    hint = "remove --lane"


class NumberTwice(UserError):
    message = "--experiments requires --aa: with --layouts, each pair of layouts is one experiment"
    hint = "use `--layouts {experiments}`"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", help="experiment whose baseline is booted (default: the demo)")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--aa", action="store_true", help="run A/A experiments: one image under two names")
    kinds.add_argument(
        "--layouts",
        nargs="?",
        type=_pairs,
        const=AS_EXPERIMENT,
        metavar="N",
        help="run N experiments with one kernel in two link orders: 2 N links, 10 s each (as many as the "
        "experiment has layouts, or 20)",
    )
    parser.add_argument("--lane", choices=GUEST_LANES, help=f"lane, without an experiment ({DEFAULT_LANE.name})")
    parser.add_argument("--experiments", type=number_from(20), metavar="N", help="number of A/A experiments (200)")
    parser.add_argument(
        "--blocks",
        type=number_from(3, 1000),
        metavar="N",
        help="blocks of each experiment (4; with --layouts: as many as the experiment has)",
    )
    parser.add_argument(
        "--tests", default="", metavar="TEST,...", help="tests to run (default: those of the experiment)"
    )
    parser.add_argument("--again", action="store_true", help="run it again although it is complete")
    parser.add_argument("--json", action="store_true", help="print the results as JSON")


def act(args: argparse.Namespace) -> int:
    is_asked = args.aa or args.layouts is not None
    with store_of(args, "make" if is_asked else "read") as store:
        results = [_carry_out(args, store)] if is_asked else _last(store)
    if args.json:
        print_json([result.model_dump(mode="json") for result in results])
    else:
        from kdyno.base.terminal import console
        from kdyno.understand.selftest.terminal import render

        for result in results:
            render(result, console())
    wrong = any(result.kind == "aa" and result.family_wise.low > result.alpha for result in results)
    return FALSE_TOO_OFTEN if wrong else 0


def _pairs(text: str) -> int:
    """Parse a number of pairs. An experiment file must come before --layouts, which takes the next word."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a number; put the experiment before --layouts")
    return number_from(2)(text)


def _carry_out(args: argparse.Namespace, store: Store) -> SelfTest:
    from kdyno.runs.experiment.resolve import read_experiment
    from kdyno.understand.selftest.carry_out import own_experiment, request_of, selftest

    if args.experiment and args.lane:
        raise LaneTwice(experiment=args.experiment)
    if args.experiments and not args.aa:
        raise NumberTwice(experiments=args.experiments)
    kind: Kind = "aa" if args.aa else "layouts"
    experiment = (
        read_experiment(args.experiment) if args.experiment else own_experiment(args.lane or DEFAULT_LANE.name, kind)
    )
    tests = tuple(test for test in args.tests.split(",") if test)
    request = request_of(experiment, kind, args.experiments if args.aa else args.layouts or None, args.blocks, tests)
    return selftest(experiment, request, session=Session(state_of(args), store, talk_of(args)), again=args.again)


def _last(store: Store) -> list[SelfTest]:
    """Return the newest self-test of this host for each lane, kind and, with layouts, clock. Raises NoSelfTest."""
    from kdyno.base.host import host_facts
    from kdyno.judge.verdicts.selftest import last_of_host

    host = host_facts()
    kinds: list[tuple[Kind, str | None]] = [("aa", None), *(("layouts", clock) for clock in (None, *PMU_CLOCKS))]
    results = [
        result for lane in LANES for kind, clock in kinds if (result := last_of_host(store, host, lane, kind, clock))
    ]
    if not results:
        raise NoSelfTest()
    return results
