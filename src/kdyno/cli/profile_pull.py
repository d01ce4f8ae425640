"""`kdyno profile pull`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.terminal import line
from kdyno.cli.common import add_action, print_json, talk_of


def configure(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    pull = add_action(verbs, "pull", "fetch what kdyno-pgod kept on another machine, by ssh, and add it up")
    pull.add_argument("host", metavar="HOST", help="the machine, as for ssh")
    pull.add_argument(
        "-o", "--output", type=Path, metavar="DIR", required=True, help="a new directory for the counters"
    )
    pull.add_argument(
        "--boot", action="append", default=[], metavar="ID", help="only this boot's; may be given several times"
    )
    pull.add_argument("--directory", metavar="DIR", help="where its snapshots are (default: kdyno-pgod's own)")
    pull.add_argument("--program", default="kdyno-pgod", metavar="PATH", help="kdyno-pgod there (default: on its PATH)")
    pull.add_argument("--sudo", action="store_true", help="run it with `sudo -n` there: only root reads the snapshots")
    pull.add_argument("--json", action="store_true", help="what was pulled as JSON")


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
