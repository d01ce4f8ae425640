"""`kdyno march`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.terminal import data, line
from kdyno.cli.common import add_action, print_json, state_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cpuinfo", type=Path, metavar="FILE", help="/proc/cpuinfo of another machine (default: this machine's)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    verbs = parser.add_subparsers(metavar="ACTION", dest="action")

    families = add_action(verbs, "list", "list the ISA levels and CPU families, and which compilers support them")
    families.add_argument("--json", action="store_true", help="print the table as JSON")

    patch = add_action(verbs, "patch", "write a patch that adds the choice of CPU families to a kernel tree")
    patch.add_argument("--tree", type=Path, required=True, metavar="DIR", help="the kernel tree to patch")
    target = patch.add_mutually_exclusive_group()
    target.add_argument("--git", action="store_true", help="commit the patch to the tree with `git am`, without a file")
    target.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="write the patch to FILE instead of standard output"
    )


def act(args: argparse.Namespace) -> int:
    match args.action:
        case "list":
            return _list(args)
        case "patch":
            return _patch(args)
        case _:
            return _show(args)


def _show(args: argparse.Namespace) -> int:
    from kdyno.base.cpu import CPUINFO, read_cpu
    from kdyno.kernel.march.report import lines, look

    report = look(read_cpu(args.cpuinfo or CPUINFO), state_of(args), is_host=args.cpuinfo is None)
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for row in lines(report):
            line(row)
    return 0


def _list(args: argparse.Namespace) -> int:
    from kdyno.base.cpu_families import table

    if args.json:
        print_json([row.model_dump(mode="json", exclude_none=True) for row in table().values()])
        return 0
    line(f"{'name':<17} {'vendor':<8} {'what it is':<52} {'level':<5}  known by")
    for row in table().values():
        line(f"{row.name:<17} {row.vendor or '':<8} {row.title:<52} {row.level:<5}  {row.needed}")
    return 0


def _patch(args: argparse.Namespace) -> int:
    from kdyno.kernel.march.patch import commit, patch_of, write

    talk = talk_of(args)
    text = patch_of(args.tree)
    if args.git:
        talk.say(f"committed: {commit(args.tree, text)}")
    elif args.output:
        write(text, args.output)
        talk.say(f"wrote {args.output}; apply it with `git am` or `patch -p1`")
    else:
        data(text)
    return 0
