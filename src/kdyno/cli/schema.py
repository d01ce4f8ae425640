"""`kdyno schema`"""

from __future__ import annotations

import argparse

from kdyno.cli.common import print_json

NAMES = ("experiment", "explanation", "image", "job", "march", "record", "report")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", choices=NAMES, help="the format")


def act(args: argparse.Namespace) -> int:
    from kdyno.schemas import schema

    print_json(schema(args.name))
    return 0
