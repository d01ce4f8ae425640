"""`kdyno ship`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base import terminal
from kdyno.cli.common import add_run, number_from, print_json, run_of, state_of, store_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("variant", metavar="VARIANT", help="the variant of the run to ship")
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--deb",
        action="store_const",
        dest="kind",
        const="deb",
        default="deb",
        help="write Debian packages: the default",
    )
    kind.add_argument("--rpm", action="store_const", dest="kind", const="rpm", help="write RPM packages")
    kind.add_argument("--pacman", action="store_const", dest="kind", const="pacman", help="write packages for pacman")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="DIR", default=Path(), help="directory of the packages (default: here)"
    )
    parser.add_argument(
        "--layout", type=number_from(0), metavar="N", default=0, help="which link order of the run (default: 0)"
    )
    parser.add_argument("--soak", type=Path, metavar="FILE", help="put the record of a soak of the image on the card")
    parser.add_argument("--sign", type=Path, metavar="KEY", help="sign the packages with a secret key of minisign")
    parser.add_argument(
        "--sign-kernel",
        type=Path,
        nargs=2,
        metavar=("KEY", "CERT"),
        help="sign the kernel for Secure Boot with your own key and certificate, both in PEM",
    )
    parser.add_argument("--no-ccache", action="store_true", help="compile everything, also what ccache has")
    parser.add_argument("--dry-run", action="store_true", help="check everything, print what would be done, and end")
    parser.add_argument("--json", action="store_true", help="print packages, card and findings as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.session import Session
    from kdyno.ship.secure_boot import SecureBootKey
    from kdyno.ship.ship import ShipOrder, look_ahead, ship
    from kdyno.ship.terminal import ahead_lines, shipped_lines

    with store_of(args) as store:
        order = ShipOrder(
            run=run_of(args, store, args.run),
            variant=args.variant,
            layout=args.layout,
            kind=args.kind,
            output=args.output,
            soak=args.soak,
            key=args.sign,
            secure_boot=SecureBootKey(*args.sign_kernel) if args.sign_kernel else None,
            uses_ccache=not args.no_ccache,
        )
        session = Session(state_of(args), store, talk_of(args))
        if args.dry_run:
            ahead = look_ahead(order, session)
            _print(args, ahead.model_dump(mode="json"), ahead_lines(ahead))
        else:
            shipped = ship(order, session)
            _print(args, shipped.model_dump(mode="json"), shipped_lines(shipped))
    return 0


def _print(args: argparse.Namespace, data: object, lines: list[str]) -> None:
    if args.json:
        print_json(data)
    else:
        for line in lines:
            terminal.line(line)
