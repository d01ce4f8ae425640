"""`kdyno runs`"""

from __future__ import annotations

import argparse
from dataclasses import asdict

from kdyno.base.terminal import line
from kdyno.cli.common import print_json, store_url_of


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the list as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.store.listing import list_runs

    runs = list_runs(*store_url_of(args, "read"))
    if args.json:
        print_json([asdict(run) | {"created": f"{run.created:%Y-%m-%dT%H:%M:%S.%fZ}"} for run in runs])
        return 0
    if not runs:
        line("no runs yet: `kdyno init` writes an experiment, `kdyno run quickstart.toml` runs it")
        return 0
    line(f"{'RUN':<12}  {'EXPERIMENT':<24} {'LANE':<6} {'BOOTS':>9}  {'FAILED':>6}  {'CREATED':<16}  STATUS")
    for run in runs:
        boots = f"{run.done}/{run.planned}"
        created = f"{run.created:%Y-%m-%d %H:%M}"
        line(f"{run.id:<12}  {run.name:<24} {run.lane:<6} {boots:>9}  {run.failed:>6}  {created:<16}  {run.status}")
    return 0
