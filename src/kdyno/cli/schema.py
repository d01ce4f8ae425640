"""`kdyno schema`"""

from __future__ import annotations

import argparse

from kdyno.cli.common import print_json
from kdyno.cli.schemas import FORMATS, schema


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=tuple(FORMATS), metavar="NAME", help="one of the formats below")
    parser.epilog = "\n".join(f"{name:<20} {row.what}" for name, row in FORMATS.items())
    parser.formatter_class = argparse.RawDescriptionHelpFormatter


def act(args: argparse.Namespace) -> int:
    print_json(schema(args.name))
    return 0
