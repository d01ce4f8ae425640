"""`kdyno profile pull`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.terminal import line
from kdyno.cli.common import add_action, print_json, talk_of


def configure(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    pull = add_action(verbs, "pull", "fetch the snapshots of kdyno-pgod from another machine by ssh, and sum them")
    pull.add_argument("host", metavar="HOST", help="the machine, as ssh names it")
    pull.add_argument(
        "-o", "--output", type=Path, metavar="DIR", required=True, help="a new directory for the counters"
    )
    pull.add_argument(
        "--boot",
        action="append",
        default=[],
        metavar="ID",
        help="only the snapshots of this boot; may be given several times",
    )
    pull.add_argument("--directory", metavar="DIR", help="the directory of the snapshots (default: that of kdyno-pgod)")
    pull.add_argument(
        "--program",
        default="kdyno-pgod",
        metavar="PATH",
        help="path of kdyno-pgod on the machine (default: on its PATH)",
    )
    pull.add_argument(
        "--sudo", action="store_true", help="run kdyno-pgod with `sudo -n`: only root can read the snapshots"
    )
    pull.add_argument("--json", action="store_true", help="print the result as JSON")


def pull(args: argparse.Namespace) -> None:
    from kdyno.profile.pull import pull as fetch
    from kdyno.profile.pull import summary_lines

    pulled = fetch(
        args.host,
        args.output,
        program=args.program,
        sudo=args.sudo,
        directory=args.directory,
        boots=args.boot,
        talk=talk_of(args),
    )
    if args.json:
        print_json(pulled.model_dump(mode="json"))
        return
    for text in summary_lines(pulled):
        line(text)
