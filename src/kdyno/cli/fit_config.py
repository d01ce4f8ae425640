"""`kdyno fit-config`"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from kdyno.base.terminal import line
from kdyno.cli.common import number_from, print_json, state_of, store_of, talk_of
from kdyno.runs.session import Session

NOTHING_OFF = 2


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "load",
        nargs="+",
        metavar="WORKLOAD",
        help="workloads by name or file (./NAME.toml), tests, suites such as lmbench",
    )
    parser.add_argument(
        "--source", default="debian:linux-source-6.12", metavar="SOURCE", help="kernel source (default: %(default)s)"
    )
    parser.add_argument(
        "--config",
        default="dyno",
        metavar="BASE",
        help="configuration to start from, as in an experiment (default: dyno)",
    )
    parser.add_argument(
        "--fragment",
        action="append",
        default=[],
        metavar="FILE",
        help="a Kconfig fragment on top of it; can be repeated",
    )
    parser.add_argument(
        "--toolchain", type=_compiler, default="gcc", metavar="NAME", help="compiler: gcc, clang-19 (default: gcc)"
    )
    parser.add_argument(
        "--keep",
        action="append",
        default=[],
        metavar="SYMBOL",
        help="a symbol that stays, `USB_*` for several; can be repeated",
    )
    parser.add_argument(
        "--boots",
        type=number_from(1, 20),
        default=2,
        metavar="N",
        help="boots of each kernel, with seeds 1 to N (default: 2)",
    )
    parser.add_argument(
        "--kernels",
        type=number_from(1, 1000),
        default=24,
        metavar="N",
        help="kernels to build at most, beside the whole one (default: %(default)s)",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("fitted.config"),
        help="write the fragment there (default: %(default)s)",
    )
    parser.add_argument("--json", action="store_true", help="every symbol with its reason, as JSON")
    parser.add_argument(
        "--top", type=number_from(1), metavar="N", default=20, help="symbols that are listed (default: %(default)s)"
    )
    parser.epilog = "The fragment goes into `fragments` of a variant, after those that were given here."


def _compiler(text: str) -> str:
    if not re.fullmatch(r"(gcc|clang)(-[0-9]{1,4})?", text):
        raise argparse.ArgumentTypeError(f"{text!r} is neither gcc nor clang, such as gcc-12")
    return text


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.tune.fit.bench import FitRequest
    from kdyno.tune.fit.search import fit
    from kdyno.tune.fit.show import fragment_text, lines

    require_writable(args.output)
    state, talk = state_of(args), talk_of(args)
    request = FitRequest(
        load=tuple(args.load),
        source=args.source,
        config=args.config,
        toolchain=args.toolchain,
        fragments=tuple(args.fragment),
        keep=tuple(args.keep),
        seeds=tuple(range(1, args.boots + 1)),
        kernels=args.kernels,
    )
    with store_of(args) as store:
        fitted = fit(request, Session(state, store, talk))
    if fitted.off:
        write_whole(args.output, fragment_text(fitted))
        fitted = fitted.model_copy(update={"fragment": str(args.output)})
        talk.say(f"fragment: {args.output}")
    if args.json:
        print_json(fitted.model_dump(mode="json"))
    else:
        for text in lines(fitted, args.top):
            line(text)
    return 0 if fitted.off else NOTHING_OFF
