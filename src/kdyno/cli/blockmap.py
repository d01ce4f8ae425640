"""`kdyno blockmap`"""

from __future__ import annotations

import argparse

from kdyno.base import terminal
from kdyno.cli.common import print_json, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("file", metavar="FILE", help="a file that contains a file system, or will contain one")
    parser.add_argument(
        "--activate", metavar="NAME", help="as root: create the mapping /dev/mapper/NAME, and make the file immutable"
    )
    parser.add_argument("--json", action="store_true", help="the extents and the table as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.boot.blockmap.activate import activate
    from kdyno.boot.blockmap.look import block_map

    answer = block_map(args.file) if args.activate is None else activate(args.file, args.activate)
    if args.json:
        print_json(answer.model_dump(mode="json"))
    else:
        terminal.data("".join(f"{line}\n" for line in answer.table))
    talk = talk_of(args)
    for note in answer.notes:
        talk.warn(f"note: {note}")
    if answer.mapping:
        talk.warn(f"the mapping {answer.mapping} exists; to remove it: {'; '.join(answer.undo)}")
    return 0
