"""`kdyno lab`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.terminal import line
from kdyno.cli.common import add_action, number_from, print_json, state_of, store_of, talk_of, words

DIFFERENT = 2
"""The exit code if a candidate is not equal to its definition, or not proven."""
DEFAULT_SOURCE = "debian:linux-source-6.12"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_time(add_action(actions, "time", "time the candidates of each family on this processor"))
    _add_sizes(add_action(actions, "sizes", "count the sizes that a kernel calls its routines with under a load"))
    _add_instructions(add_action(actions, "instructions", "time instructions that kernels use on this processor"))
    _add_prove(add_action(actions, "prove", "compare each candidate with its definition, up to stated bounds"))


def _add_time(parser: argparse.ArgumentParser) -> None:
    _add_families(parser)
    parser.add_argument(
        "--blocks",
        type=number_from(4, 1000),
        metavar="N",
        help="number of blocks, each with another link order: half choose, half judge (default 24)",
    )
    parser.add_argument("--seed", type=number_from(0), metavar="N", help="seed of the orders and sizes (default 1)")
    parser.add_argument(
        "--sizes",
        type=Path,
        metavar="FILE.csv",
        help="also time sizes as distributed in a file of `lab sizes -o`",
    )
    parser.add_argument("--heat-map", type=Path, metavar="FILE.svg", help="write the fastest by size and offset")
    parser.add_argument("--json", action="store_true", help="print all times as JSON")
    parser.set_defaults(do=_time)


def _add_prove(parser: argparse.ArgumentParser) -> None:
    _add_families(parser)
    parser.add_argument("--sample", action="store_true", help="smaller bounds: seconds instead of minutes")
    parser.add_argument("--seed", type=number_from(0), metavar="N", default=1, help="seed of the content (default 1)")
    parser.add_argument("--json", action="store_true", help="print all statements as JSON")
    parser.set_defaults(do=_prove)


def _add_sizes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("named", metavar="IMAGE|RUN", help="an image, or a run with its load")
    parser.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="TEST,...",
        help="load: tests, suites, workloads by name or file (default: that of the run; lmbench for an image)",
    )
    parser.add_argument("--variant", metavar="NAME", help="variant of a run (default: its baseline)")
    parser.add_argument(
        "--when",
        choices=("measured", "other", "all"),
        default="measured",
        help="the measured loops, the rest of the boot, or both (default: %(default)s)",
    )
    parser.add_argument("--seed", type=number_from(0), metavar="N", default=1, help="seed of the guest (default: 1)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.csv", help="write the counts for `lab time --sizes`")
    parser.add_argument("--plot", type=Path, metavar="FILE.svg", help="write bars of calls and bytes by size")
    parser.add_argument("--json", action="store_true", help="print all counts as JSON")
    parser.set_defaults(do=_sizes)


def _add_instructions(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--passes", type=number_from(1, 1000), metavar="N", help="number of passes; the least counts (default 5)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.toml", help="write the costs as TOML")
    parser.add_argument("--json", action="store_true", help="print the costs as JSON")
    parser.set_defaults(do=_instructions)


def _add_families(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", nargs="*", metavar="FAMILY", help="memcpy, strlen ... (default: all)")
    parser.add_argument("--source", metavar="SPEC", default=DEFAULT_SOURCE, help="kernel source (default: %(default)s)")


def act(args: argparse.Namespace) -> int:
    return int(args.do(args))


def _time(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.lab.heat_map import heat_map
    from kdyno.lab.lines import time_lines
    from kdyno.lab.routines import find_families
    from kdyno.lab.time_lab import time_families
    from kdyno.lab.timing import read_distributions

    families = find_families(args.family)
    if args.heat_map:
        require_writable(args.heat_map)
    given = {name: value for name in ("blocks", "seed") if (value := getattr(args, name)) is not None}
    distributions = read_distributions(args.sizes) if args.sizes else {}
    report = time_families(args.source, families, state_of(args), talk_of(args), distributions=distributions, **given)
    if args.heat_map:
        write_whole(args.heat_map, heat_map(report))
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for text in time_lines(report):
            line(text)
    return 0


def _prove(args: argparse.Namespace) -> int:
    from kdyno.lab.prove import proof_lines, prove_families
    from kdyno.lab.routines import find_families

    families = find_families(args.family)
    report = prove_families(args.source, families, state_of(args), talk_of(args), is_sample=args.sample, seed=args.seed)
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for text in proof_lines(report):
            line(text)
    return 0 if report.are_all_equal else DIFFERENT


def _sizes(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.lab.size_lines import size_lines, size_plot
    from kdyno.lab.sizes import count_calls, sizes_csv, subject_of
    from kdyno.runs.session import Session

    for path in filter(None, (args.output, args.plot)):
        require_writable(path)
    names = tuple(name for option in args.workload for name in words(option))
    when = None if args.when == "all" else args.when
    with store_of(args) as store:
        session = Session(state_of(args), store, talk_of(args))
        image, load = subject_of(args.named, args.variant, names, session)
        report = count_calls(image, load, seed=args.seed, session=session)
    if args.output:
        write_whole(args.output, sizes_csv(report, when))
    if args.plot:
        write_whole(args.plot, size_plot(report, when))
    if args.json:
        print_json(report.model_dump(mode="json", by_alias=True))
    else:
        for text in size_lines(report, when):
            line(text)
    return 0


def _instructions(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.lab.instructions import cost_lines, costs_toml, time_instructions

    if args.output:
        require_writable(args.output)
    report = time_instructions(talk_of(args), **({"passes": args.passes} if args.passes else {}))
    if args.output:
        write_whole(args.output, costs_toml(report))
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for text in cost_lines(report):
            line(text)
    return 0
