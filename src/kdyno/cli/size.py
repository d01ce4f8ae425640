"""`kdyno kernel size`"""

from __future__ import annotations

import argparse

from kdyno.cli.common import number_from, print_json, state_of


def configure(parser: argparse.ArgumentParser) -> None:
    what = "an image (its key or directory), a vmlinux or an object"
    parser.add_argument("before", metavar="A", help=what)
    parser.add_argument("after", metavar="B", nargs="?", help="another one: print how it differs from A")
    parser.add_argument(
        "--clones",
        action="store_true",
        help="list clones (f.constprop.0, f.isra.0, f.cold) separately from their functions",
    )
    parser.add_argument("--json", action="store_true", help="print all sections and symbols as JSON")
    parser.add_argument(
        "--top", type=number_from(1), metavar="N", default=20, help="number of symbols to print (default: %(default)s)"
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.understand.size.report import size_report

    report = size_report(args.before, args.after, state_of(args), clones_apart=args.clones)
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        from kdyno.base.terminal import console
        from kdyno.understand.size.terminal import render

        render(report, console(), args.top)
    return 0
