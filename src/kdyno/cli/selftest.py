"""`kdyno selftest`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.cli.common import number_from, print_json, state_of, store_of, talk_of
from kdyno.errors import UserError
from kdyno.lanes import LANES

if TYPE_CHECKING:
    from kdyno.store.store import Store
    from kdyno.verdicts.selftest import SelfTest

FALSE_TOO_OFTEN = 2


class NoSelfTest(UserError):
    message = "no self-test of this host is on record"
    hint = "`kdyno selftest --aa` carries one out; `--aa --lane wall` does in the wall lane"


class LaneTwice(UserError):
    message = "{experiment} says what lane it is in: --lane goes without an experiment"
    hint = "leave --lane out"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("experiment", nargs="?", help="whose baseline is booted; the demo's if none is named")
    parser.add_argument("--aa", action="store_true", help="carry out A/A experiments: one image under two names")
    parser.add_argument("--lane", choices=tuple(LANES), help="without an experiment: in which lane (model)")
    parser.add_argument("--experiments", type=number_from(20), default=200, metavar="N", help="A/A experiments (200)")
    parser.add_argument("--blocks", type=number_from(3, 1000), default=4, metavar="N", help="blocks of each (4)")
    parser.add_argument("--tests", default="", metavar="TEST,...", help="tests to run; the experiment's if left out")
    parser.add_argument("--again", action="store_true", help="carry it out once more although it was done")
    parser.add_argument("--json", action="store_true", help="print what was found as JSON")


def act(args: argparse.Namespace) -> int:
    with store_of(args) as store:
        found = [_carry_out(args, store)] if args.aa else _last(store)
    if args.json:
        print_json([each.model_dump(mode="json") for each in found])
    else:
        from kdyno.selftest.terminal import render
        from kdyno.terminal import console

        for each in found:
            render(each, console())
    wrong = any(each.family_wise.low > each.alpha for each in found)
    return FALSE_TOO_OFTEN if wrong else 0


def _carry_out(args: argparse.Namespace, store: Store) -> SelfTest:
    from kdyno.experiment.load import read_experiment
    from kdyno.selftest.carry_out import own_experiment, selftest

    if args.experiment and args.lane:
        raise LaneTwice(experiment=args.experiment)
    of = read_experiment(args.experiment) if args.experiment else own_experiment(args.lane or "model")
    tests = tuple(test for test in args.tests.split(",") if test)
    return selftest(
        of,
        args.experiments,
        args.blocks,
        tests,
        state=state_of(args),
        store=store,
        talk=talk_of(args),
        again=args.again,
    )


def _last(store: Store) -> list[SelfTest]:
    """The newest of each lane on this host. Raises NoSelfTest."""
    from kdyno.host import host_facts
    from kdyno.verdicts.selftest import last_of_host

    found = [each for lane in LANES if (each := last_of_host(store, host_facts(), lane))]
    if not found:
        raise NoSelfTest()
    return found
