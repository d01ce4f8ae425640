"""`kdyno selftest`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.base.errors import UserError
from kdyno.base.lanes import DEFAULT_LANE, LANES, PMU_CLOCKS
from kdyno.cli.common import number_from, print_json, state_of, store_of, talk_of
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from kdyno.judge.verdicts.selftest import Kind, SelfTest
    from kdyno.store.store import Store

FALSE_TOO_OFTEN = 2
AS_EXPERIMENT = 0
"""Pairs of layouts: as the experiment has it."""


class NoSelfTest(UserError):
    message = "no self-test of this host is on record"
    hint = "`kdyno selftest --aa` carries one out; `--aa --lane wall` does in the wall lane"


class LaneTwice(UserError):
    message = "{experiment} says what lane it is in: --lane goes without an experiment"
    hint = "leave --lane out"


class NumberTwice(UserError):
    message = "--experiments goes with --aa: each pair of layouts is one experiment"
    hint = "say `--layouts {experiments}`"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", help="whose baseline is booted; the demo's if none is named")
    kinds = parser.add_mutually_exclusive_group()
    kinds.add_argument("--aa", action="store_true", help="carry out A/A experiments: one image under two names")
    kinds.add_argument(
        "--layouts",
        nargs="?",
        type=_pairs,
        const=AS_EXPERIMENT,
        metavar="N",
        help="carry out N experiments with one kernel in two link orders: 2 N links, 10 s each (as many as the "
        "experiment has layouts, or 20)",
    )
    parser.add_argument(
        "--lane", choices=tuple(LANES), help=f"without an experiment: in which lane ({DEFAULT_LANE.name})"
    )
    parser.add_argument("--experiments", type=number_from(20), metavar="N", help="A/A experiments (200)")
    parser.add_argument(
        "--blocks",
        type=number_from(3, 1000),
        metavar="N",
        help="blocks of each (4; with --layouts as many as the experiment has)",
    )
    parser.add_argument("--tests", default="", metavar="TEST,...", help="tests to run; the experiment's if left out")
    parser.add_argument("--again", action="store_true", help="carry it out once more although it was done")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


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
    """A number of pairs. What follows --layouts is taken for one: an experiment's file comes before it."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is no number; an experiment is named before --layouts")
    return number_from(2)(text)


def _carry_out(args: argparse.Namespace, store: Store) -> SelfTest:
    from kdyno.runs.experiment.resolve import read_experiment
    from kdyno.understand.selftest.carry_out import own_experiment, request_of, selftest

    if args.experiment and args.lane:
        raise LaneTwice(experiment=args.experiment)
    if args.experiments and not args.aa:
        raise NumberTwice(experiments=args.experiments)
    kind: Kind = "aa" if args.aa else "layouts"
    of = read_experiment(args.experiment) if args.experiment else own_experiment(args.lane or DEFAULT_LANE.name, kind)
    tests = tuple(test for test in args.tests.split(",") if test)
    asked = request_of(of, kind, args.experiments if args.aa else args.layouts or None, args.blocks, tests)
    return selftest(of, asked, session=Session(state_of(args), store, talk_of(args)), again=args.again)


def _last(store: Store) -> list[SelfTest]:
    """The newest of each lane on this host, of each kind, and with layouts of each clock. Raises NoSelfTest."""
    from kdyno.base.host import host_facts
    from kdyno.judge.verdicts.selftest import last_of_host

    host = host_facts()
    wanted: list[tuple[Kind, str | None]] = [("aa", None), *(("layouts", clock) for clock in (None, *PMU_CLOCKS))]
    results = [
        result for lane in LANES for kind, clock in wanted if (result := last_of_host(store, host, lane, kind, clock))
    ]
    if not results:
        raise NoSelfTest()
    return results
