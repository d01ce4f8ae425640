"""`kdyno bisect`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.lanes import DEFAULT_LANE, LANES
from kdyno.base.terminal import line
from kdyno.cli import exit_codes
from kdyno.cli.common import fraction, number_from, print_json, state_of, store_of, talk_of, words
from kdyno.runs.session import Session
from kdyno.tune.bisect.settings import SearchSettings

NOT_FOUND = 2
DEFAULT = SearchSettings()


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "range",
        nargs="+",
        metavar="RANGE",
        help="commits GOOD..BAD of the repository here, or DIRECTORY#GOOD..BAD; or a stack of patches: files in their "
        "order, directories; or two recipes, plain opt=O3,cmdline=quiet; or packages, debian:linux-image-A..B",
    )
    parser.add_argument(
        "-t", "--tests", type=words, action="extend", default=[], metavar="TEST,...", help="tests, suites, workloads"
    )
    parser.add_argument(
        "--benchmark",
        type=words,
        action="extend",
        default=[],
        metavar="NAME,...",
        help="the benchmarks whose mean counts (default: all that the tests measure)",
    )
    parser.add_argument("--better", action="store_true", help="find what made it better instead of worse")
    parser.add_argument("--recipe", default="", metavar="KEY=VALUE,...", help="recipe of all kernels (opt=O3)")
    parser.add_argument("--source", default="", metavar="SOURCE", help="the source of patches and recipes")
    parser.add_argument("--config", metavar="CONFIG", help="base configuration: file:PATH, make:TARGET (dyno)")
    parser.add_argument("--machine", default="", metavar="TYPE,KEY=VALUE,...", help="machine, as of `kdyno ab`")
    parser.add_argument("--lane", choices=tuple(LANES), help=f"the lane: which clock measures ({DEFAULT_LANE.name})")
    parser.add_argument(
        "--margin",
        type=fraction,
        default=DEFAULT.margin,
        metavar="F",
        help="ends within this fraction are equal (%(default)s)",
    )
    parser.add_argument(
        "--probability",
        type=fraction,
        default=DEFAULT.probability,
        metavar="P",
        help="name a culprit at this probability (%(default)s)",
    )
    parser.add_argument(
        "--blocks",
        type=number_from(2, 1000),
        default=DEFAULT.blocks,
        metavar="N",
        help="first boots of each end (%(default)s)",
    )
    parser.add_argument(
        "--most-blocks",
        type=number_from(2, 1000),
        default=DEFAULT.most_blocks,
        metavar="N",
        help="most boots of a kernel (%(default)s)",
    )
    parser.add_argument(
        "--most-builds",
        type=number_from(2, 1000),
        default=DEFAULT.most_builds,
        metavar="N",
        help="most kernels to build (%(default)s)",
    )
    parser.add_argument(
        "--layouts",
        type=number_from(0, 1000),
        default=DEFAULT.layouts,
        metavar="N",
        help="most link orders of a kernel; 0: one image of each, also for the check (%(default)s)",
    )
    parser.add_argument(
        "--no-revert", action="store_true", help="don't measure the bad end without the culprit, which takes a build"
    )
    parser.add_argument("--again", action="store_true", help="begin anew; boots that are on record are used")
    parser.add_argument("--mail", type=Path, metavar="FILE", help="write a report for a mailing list")
    parser.add_argument(
        "--script", type=Path, metavar="FILE", help="write a script that repeats it with `git bisect run`"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.runs.experiment.ab import Options
    from kdyno.tune.bisect.bisection import bisect
    from kdyno.tune.bisect.order import BisectOrder
    from kdyno.tune.bisect.ranges import read_range
    from kdyno.tune.bisect.show import lines, mail, script

    for path in filter(None, (args.mail, args.script)):
        require_writable(path)
    order = BisectOrder(
        kernels=read_range(args.range, Path.cwd(), state_of(args)),
        options=Options(
            tests=tuple(args.tests), lane=args.lane, machine=args.machine, source=args.source, config=args.config
        ),
        recipe=args.recipe,
        benchmarks=tuple(args.benchmark),
        settings=SearchSettings(
            probability=args.probability,
            margin=args.margin,
            blocks=min(args.blocks, args.most_blocks),
            most_blocks=args.most_blocks,
            most_builds=args.most_builds,
            layouts=args.layouts,
            revert=not args.no_revert,
        ),
        better=args.better,
    )
    script_text = script(order) if args.script else ""
    talk = talk_of(args)
    with store_of(args) as store:
        result = bisect(order, Session(state_of(args), store, talk), again=args.again)
    if args.script:
        write_whole(args.script, script_text, mode=0o755)
        talk.say(f"script: {args.script}")
    if args.mail and not any(culprit.confirmed for culprit in result.culprits):
        talk.warn(f"no mail was written to {args.mail}: no culprit was confirmed")
    elif args.mail:
        write_whole(args.mail, mail(result))
        talk.say(f"mail: {args.mail}")
    if args.json:
        print_json(result.model_dump(mode="json"))
    else:
        for text in lines(result):
            line(text)
    return exit_codes.DONE if result.verdict == "found" and not result.candidates else NOT_FOUND
