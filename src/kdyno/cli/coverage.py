"""`kdyno coverage`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.cli.common import number_from, print_json, state_of, store_of, talk_of
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kdyno.base.state import State
    from kdyno.store.url import Access
    from kdyno.understand.coverage.measure import ExecutedCode, RecordSelection
    from kdyno.understand.coverage.subject import RecordedBoot

CONTEXTS = ("task", "exception", "interrupt")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "named", nargs="+", metavar="IMAGE|RUN|RECORD", help="an image to boot, a run, or a PMU record; two for --diff"
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument(
        "--diff", action="store_true", help="what the first executes and the second doesn't, and the reverse"
    )
    what.add_argument(
        "--unused",
        action="store_true",
        help="functions, files and configuration symbols that are never executed, the boot included, by size",
    )
    parser.add_argument("--html", type=Path, metavar="DIR", help="write the source with counts, a page for each file")
    parser.add_argument(
        "--lcov", type=Path, metavar="FILE", help="write a tracefile: genhtml, editors and CI services read it"
    )
    parser.add_argument("--json", action="store_true", help="directories, files and functions as JSON")
    parser.add_argument(
        "--workload",
        action="append",
        default=[],
        metavar="TEST,...",
        help="what an image executes: tests, suites, workloads by name or file (default: lmbench, which is 19 tests); "
        "--diff: once for each",
    )
    parser.add_argument("--boot", action="store_true", help="count what ran outside of the benchmarks' loops, too")
    parser.add_argument(
        "--region",
        action="append",
        default=[],
        metavar="NAME|N",
        help="only this benchmark (lat_syscall.null), test (lat_syscall) or index; may be given several times",
    )
    parser.add_argument(
        "--context", action="append", choices=CONTEXTS, help="default: all three; may be given several times"
    )
    parser.add_argument(
        "--variant",
        action="append",
        default=[],
        metavar="NAME",
        help="of a run (default: its baseline; --diff: once for each)",
    )
    parser.add_argument("--vmlinux", type=Path, metavar="FILE", help="the vmlinux of a record, if it isn't kdyno's own")
    parser.add_argument("--source", type=Path, metavar="DIR", help="the source tree (default: the image's)")
    parser.add_argument(
        "--seed", type=number_from(0), default=1, metavar="N", help="seed of an image's boot (default: 1)"
    )
    parser.add_argument(
        "--top", type=number_from(1), metavar="N", default=25, help="rows of each table (default: %(default)s)"
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable

    if args.lcov:
        require_writable(args.lcov)
    if len(args.named) != 1 + args.diff:
        from kdyno.understand.coverage.subject import WrongNumber

        raise WrongNumber(number=len(args.named), wanted="two" if args.diff else "one")
    subjects = _subjects(args)
    if args.unused:
        return _unused(args, subjects[0])
    measured = [_measured(subject, _wanted(args)) for subject in subjects]
    if args.diff:
        return _diff(args, subjects, measured)
    _written(args, subjects[0], measured[0])
    if args.json:
        print_json(measured[0].report.model_dump(mode="json"))
    else:
        from kdyno.base.terminal import console
        from kdyno.report.coverage_terminal import print_coverage

        print_coverage(measured[0].report, console(), args.top)
    return 0


def _subjects(args: argparse.Namespace) -> list[RecordedBoot]:
    from kdyno.understand.coverage.subject import SubjectRequest, find_subject

    state, talk = state_of(args), talk_of(args)
    with store_of(args, _access(args.named, state)) as store:
        return [
            find_subject(
                SubjectRequest(
                    named,
                    workload=tuple(filter(None, (_of(place, args.workload) or "").split(","))),
                    variant=_of(place, args.variant),
                    vmlinux=args.vmlinux,
                    seed=args.seed,
                ),
                session=Session(state, store, talk),
            )
            for place, named in enumerate(args.named)
        ]


def _access(named: Sequence[str], state: State) -> Access:
    """An image is booted, and the boot recorded; a run has to be there, and a record needs no store."""
    from kdyno.understand.coverage.subject import kind_of

    kinds = {kind_of(one, state) for one in named}
    if "run" in kinds:
        return "change" if "image" in kinds else "read"
    return "make" if "image" in kinds else "look"


def _of(place: int, given: list[str]) -> str | None:
    """What was given for the first or the second; what was given once is for both."""
    return given[min(place, len(given) - 1)] if given else None


def _wanted(args: argparse.Namespace) -> RecordSelection:
    from kdyno.understand.coverage.measure import RecordSelection

    return RecordSelection(tuple(args.region), tuple(args.context or CONTEXTS), args.boot or args.unused)


def _measured(subject: RecordedBoot, wanted: RecordSelection) -> ExecutedCode:
    from kdyno.understand.coverage.measure import measure

    return measure(subject.record, subject.vmlinux, wanted, subject.label)


def _written(args: argparse.Namespace, subject: RecordedBoot, measured: ExecutedCode) -> None:
    """The files that were asked for."""
    if not (args.html or args.lcov):
        return
    from kdyno.understand.coverage.sources import find_tree

    tree, talk = find_tree(subject.image, args.source, state_of(args)), talk_of(args)
    if args.lcov:
        from kdyno.base.files import write_whole
        from kdyno.understand.coverage.lcov import tracefile

        write_whole(args.lcov, tracefile(measured, tree.root))
        talk.say(f"tracefile: {args.lcov}")
    if args.html:
        from kdyno.report.coverage_html import write_pages

        number = write_pages(measured, tree, args.html)
        talk.say(f"{number:,} pages: {args.html / 'index.html'}")


def _unused(args: argparse.Namespace, subject: RecordedBoot) -> int:
    from kdyno.base.terminal import console
    from kdyno.report.coverage_terminal import print_unused
    from kdyno.understand.coverage.sources import find_tree
    from kdyno.understand.coverage.unused import unused

    tree = find_tree(subject.image, args.source, state_of(args))
    measured = _measured(subject, _wanted(args))
    _written(args, subject, measured)
    config = subject.vmlinux.with_name("config")
    text = config.read_text(encoding="utf-8", errors="replace") if subject.image else None
    unexecuted = unused(measured.report, tree.root, text)
    if args.json:
        print_json(unexecuted.model_dump(mode="json"))
    else:
        print_unused(unexecuted, console(), args.top)
    return 0


def _diff(args: argparse.Namespace, subjects: list[RecordedBoot], measured: list[ExecutedCode]) -> int:
    from kdyno.base.terminal import console
    from kdyno.report.coverage_terminal import print_difference
    from kdyno.understand.coverage.diff import difference, require_one_source
    from kdyno.understand.coverage.sources import find_tree

    require_one_source(subjects[0].image, subjects[1].image)
    differences = difference(measured[0], measured[1])
    if args.html:
        from kdyno.report.coverage_diff import write_diff_pages

        tree = find_tree(subjects[0].image, args.source, state_of(args))
        number = write_diff_pages(differences, tree, args.html)
        talk_of(args).say(f"{number:,} pages: {args.html / 'index.html'}")
    if args.json:
        print_json(differences.report.model_dump(mode="json"))
    else:
        print_difference(differences.report, console(), args.top)
    return 0
