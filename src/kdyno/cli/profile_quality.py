"""`kdyno profile merge`, `overlap` and `stale`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.cli.common import add_action, number_from, print_json, state_of, talk_of

MOST_WEIGHT = 1_000_000


def configure(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    merge = add_action(verbs, "merge", "merge PMU records of one vmlinux, or profiles of clang, into one")
    merge.add_argument("profiles", type=Path, nargs="+", metavar="FILE", help="PMU records, or profiles of clang")
    merge.add_argument(
        "--weights",
        type=_weights,
        metavar="N,...",
        help="the weight of each profile of clang (default: 1); records have no weights",
    )
    merge.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help="the merged profile")
    merge.add_argument("--json", action="store_true", help="print the summary as JSON")

    overlap = add_action(
        verbs, "overlap", "compare two profiles: their similarity, and how much of the code of B is covered by A"
    )
    overlap.add_argument("a", type=Path, metavar="A", help="PMU record, or profile of clang")
    overlap.add_argument("b", type=Path, metavar="B", help="another profile, of the same kind")
    _add_table(overlap)

    stale = add_action(verbs, "stale", "list the functions of a profile that another vmlinux lacks or has changed")
    stale.add_argument("profile", type=Path, metavar="FILE", help="PMU record, or profile of clang")
    stale.add_argument("vmlinux", type=Path, metavar="VMLINUX", help="the kernel to use the profile for")
    stale.add_argument(
        "--recorded", type=Path, metavar="VMLINUX", help="the vmlinux that ran (default: searched among kdyno's images)"
    )
    _add_table(stale)


def merge(args: argparse.Namespace) -> None:
    from kdyno.base.files import require_writable
    from kdyno.profile.merge_files import merge_files

    require_writable(args.output)
    merged = merge_files(args.profiles, args.weights, args.output)
    if args.json:
        print_json(merged.model_dump(mode="json"))
    else:
        talk_of(args).say(f"{args.output}: {merged.in_words()}")


def overlap(args: argparse.Namespace) -> None:
    from kdyno.profile.overlap import overlap as compare
    from kdyno.profile.show_quality import print_overlap

    result = compare(args.a, args.b)
    if args.json:
        print_json(result.model_copy(update={"functions": result.functions[: args.top]}).model_dump(mode="json"))
    else:
        print_overlap(result, top=args.top)


def stale(args: argparse.Namespace) -> None:
    from kdyno.profile.show_quality import print_stale
    from kdyno.profile.stale import stale as compare

    result = compare(args.profile, args.vmlinux, args.recorded, state_of(args))
    if args.json:
        print_json(result.model_copy(update={"stale": result.stale[: args.top]}).model_dump(mode="json"))
    else:
        print_stale(result, top=args.top)


def _add_table(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--top", type=number_from(1), metavar="N", help="rows of functions (default: 25; JSON: all)")
    parser.add_argument("--json", action="store_true", help="print everything as JSON")


def _weights(text: str) -> tuple[int, ...]:
    return tuple(map(number_from(1, MOST_WEIGHT), text.split(",")))
