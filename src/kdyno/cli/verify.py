"""`kdyno verify`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base import terminal
from kdyno.cli import exit_codes
from kdyno.cli.common import print_json, state_of, store_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "package", type=Path, nargs="+", metavar="PACKAGE", help="the package of the kernel, and that of its headers"
    )
    parser.add_argument("--run", metavar="RUN", help="the run that judged the kernel (default: the one on the card)")
    parser.add_argument("--ccache", action="store_true", help="take from ccache what it has, instead of compiling it")
    parser.add_argument("--soak", type=Path, metavar="FILE", help="the record of a soak that the card names")
    parser.add_argument("--json", action="store_true", help="print what was compared as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.session import Session
    from kdyno.ship.terminal import verification_lines
    from kdyno.ship.verify import verify

    with store_of(args, "read") as store:
        session = Session(state_of(args), store, talk_of(args))
        done = verify(args.package, args.run, args.soak, session, uses_ccache=args.ccache)
    if args.json:
        print_json(done.model_dump(mode="json"))
    else:
        for line in verification_lines(done):
            terminal.line(line)
    return exit_codes.DONE if done.is_same else exit_codes.REGRESSION
