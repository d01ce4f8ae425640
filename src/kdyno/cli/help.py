"""`kdyno help`"""

from __future__ import annotations

import argparse

from kdyno.base.terminal import line, lines
from kdyno.cli.topics import TOPICS, topic_lines
from kdyno.cli.verbs import VERBS, overview


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "topic",
        nargs="?",
        choices=(*TOPICS, *VERBS),
        metavar="TOPIC",
        help=f"a verb, or {', '.join(TOPICS)} (default: list all verbs and topics)",
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.cli.main import make_parser

    if args.topic in VERBS:
        make_parser({args.topic}).parse_args([args.topic, "--help"])
    elif args.topic:
        lines("\n".join(topic_lines(args.topic)))
    else:
        lines(overview())
        line()
        line("Topics: `kdyno help TOPIC`")
        for topic, (summary, _) in TOPICS.items():
            line(f"  {topic:<14}{summary}")
    return 0
