"""`kdyno kernel`"""

from __future__ import annotations

import argparse

from kdyno.cli import lint, size
from kdyno.cli.common import add_common

PARTS = {
    "lint": (lint, "check kernels and objects for faults of their compilers"),
    "size": (size, "print the sizes of a kernel's parts, or how they differ between two kernels"),
}


def configure(parser: argparse.ArgumentParser) -> None:
    parts = parser.add_subparsers(metavar="WHAT", required=True)
    for name, (module, summary) in PARTS.items():
        part = parts.add_parser(name, help=summary, description=f"{summary[0].upper()}{summary[1:]}.")
        module.configure(part)
        add_common(part)
        part.set_defaults(do=module.act)


def act(args: argparse.Namespace) -> int:
    return int(args.do(args))
