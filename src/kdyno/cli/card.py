"""`kdyno card`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base import terminal
from kdyno.cli.common import print_json


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel", metavar="KERNEL", help="a vmlinuz, a package, or `running` for the kernel that runs here"
    )
    parser.add_argument("--card", type=Path, metavar="FILE", help="the card, if it isn't where its package puts it")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print the card as JSON")
    form.add_argument("--in-toto", action="store_true", help="print an in-toto statement with SLSA provenance")
    form.add_argument("--cyclonedx", action="store_true", help="print a list of components in CycloneDX's JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.ship.attestation import components, statement
    from kdyno.ship.find_card import find_card
    from kdyno.ship.terminal import card_lines

    found = find_card(args.kernel, args.card)
    if args.json:
        print_json(found.card.model_dump(mode="json"))
    elif args.in_toto:
        print_json(statement(found.card))
    elif args.cyclonedx:
        print_json(components(found.card))
    else:
        for line in card_lines(found):
            terminal.line(line)
    return 0
