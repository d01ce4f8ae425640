"""`kdyno ab`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.lanes import COUNTED_LANE, DEFAULT_LANE, LANES, TIMED_LANE
from kdyno.base.terminal import data
from kdyno.cli.common import fraction, number_from, words
from kdyno.cli.run import add_run_options, carry_out

AUTO = "auto"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "base",
        metavar="BASE",
        help="the baseline: `plain`, a recipe (opt=O3,kconfig.PREEMPT=y,patches=fix.patch), a source (.#v6.12, "
        "git:DIR#REV, ./DIR), or a source and a recipe (.#HEAD,opt=O3)",
    )
    parser.add_argument(
        "others", nargs="+", metavar="OTHER", help="the kernels to compare with the baseline, in the same form"
    )
    parser.add_argument(
        "-t",
        "--tests",
        type=words,
        action="extend",
        default=[],
        metavar="TEST,...",
        help="tests, suites, workloads; on the machine uml: paths and groups of paths (docs/silicon.md)",
    )
    parser.add_argument("--blocks", type=_blocks, metavar="N|auto", help="boots of each kernel (12)")
    parser.add_argument("--layouts", type=number_from(2, 1000), metavar="N", help="link orders of each kernel")
    parser.add_argument(
        "--margin", type=fraction, metavar="F", help="effects within this fraction are equivalent (0.01)"
    )
    parser.add_argument(
        "--lane",
        choices=tuple(LANES),
        help=f"the lane: which clock measures ({DEFAULT_LANE.name}). On the machine uml: {TIMED_LANE.name}, cycles of "
        f"this processor (its default), or {COUNTED_LANE.name}, under qemu-x86_64",
    )
    parser.add_argument(
        "--machine", default="", metavar="TYPE,KEY=VALUE,...", help="[machine] of an experiment, in the same short form"
    )
    parser.add_argument(
        "--source",
        default="",
        metavar="SOURCE",
        help="source of recipes without one (default: the first named, else the kernel tree here, else the demo's)",
    )
    parser.add_argument(
        "--config",
        metavar="CONFIG",
        help="base configuration: file:PATH, make:TARGET (dyno). On the machine uml: one for ARCH=um (paths)",
    )
    parser.add_argument("--toml", action="store_true", help="only print the equivalent experiment file")
    add_run_options(parser)


def act(args: argparse.Namespace) -> int:
    from kdyno.runs.experiment.ab import Options, experiment_for

    options = Options(
        tests=tuple(args.tests),
        blocks=args.blocks,
        layouts=args.layouts,
        margin=args.margin,
        lane=args.lane,
        machine=args.machine,
        source=args.source,
        config=args.config,
    )
    text, experiment = experiment_for([args.base, *args.others], options, Path.cwd())
    if not args.toml:
        return carry_out(experiment, args)
    data(text)
    return 0


def _blocks(text: str) -> int | str:
    return text if text == AUTO else number_from(1, 10_000)(text)
