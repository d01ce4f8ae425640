"""`kdyno worker`"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from kdyno.base.extras import require_extra
from kdyno.cli.common import number_from, state_of, talk_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the directory of the fleet, or a copy of it")
    parser.add_argument(
        "--boots",
        type=number_from(0, 1024),
        metavar="N",
        help="boots of the model lane at a time (default: one for each CPU)",
    )
    parser.add_argument(
        "--builds",
        type=number_from(0, 64),
        metavar="N",
        help="kernels that are built at a time (default: one, and none with --wall, since builds disturb boots)",
    )
    parser.add_argument("--wall", action="store_true", help="also boot for the wall lane, one boot at a time")
    parser.add_argument(
        "--name", metavar="NAME", help="the worker's name, if the host has several (default: the host's)"
    )
    parser.add_argument("--host", metavar="NAME", help="the host's name on record (default: its own)")
    parser.add_argument(
        "--listen", default="", metavar="ADDRESS", help="the address of this host for the scheduler (default: chosen)"
    )


def act(args: argparse.Namespace) -> int:
    require_extra("fleet")
    from kdyno.fleet.fleet_file import read_fleet
    from kdyno.fleet.offer import host_name
    from kdyno.fleet.queue.model import Kind
    from kdyno.fleet.serve import serve_worker

    host = args.host or host_name()
    slots: dict[Kind, int] = {
        "boot-model": (os.cpu_count() or 1) if args.boots is None else args.boots,
        "boot-wall": int(args.wall),
        "build": int(not args.wall) if args.builds is None else args.builds,
    }
    serve_worker(
        read_fleet(args.directory),
        state_of(args),
        talk_of(args),
        name=args.name or host,
        host=host,
        slots=slots,
        listen=args.listen,
    )
    return 0
