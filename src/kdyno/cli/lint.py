"""`kdyno kernel lint`"""

from __future__ import annotations

import argparse
import itertools
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.terminal import line, tell
from kdyno.base.text import format_count, number
from kdyno.cli.common import print_json, state_of, talk_of

if TYPE_CHECKING:
    from kdyno.understand.lint.model import LintFinding, LintReport

BAD = 2
UNREAD = 1


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "what",
        nargs="+",
        metavar="IMAGE|FILE|DIR",
        help="key of an image, a vmlinux, objects, or a directory of objects",
    )
    parser.add_argument("--only", metavar="LINT,...", help="run only these lints")
    parser.add_argument("--source", type=Path, metavar="TREE", help="the kernel's source, for always-inline-emitted")
    costs = parser.add_mutually_exclusive_group()
    costs.add_argument("--family", metavar="NAME", help="CPU family, for costly-instruction")
    costs.add_argument(
        "--costs",
        type=Path,
        metavar="FILE",
        help="costs of a processor, for costly-instruction: of `kdyno lab instructions -o FILE`",
    )
    parser.add_argument(
        "--profile", type=Path, metavar="FILE", help="PMU record: order costly instructions by what they cost there"
    )
    parser.add_argument(
        "--symbols",
        type=Path,
        metavar="FILE",
        help="System.map: the symbols of the kernel, and their addresses",
    )
    parser.add_argument("--sarif", type=Path, metavar="FILE", help="write the findings as SARIF 2.1.0")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--fail-on-finding", action="store_true", help="exit with 2 if there is an error or a warning")
    parser.epilog = "Findings have lines where the kernel has line tables: `lines = true` in its recipe."


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.understand.lint.run import LintOptions, lint
    from kdyno.understand.lint.sarif import sarif
    from kdyno.understand.lint.targets import find_targets

    if args.sarif:
        require_writable(args.sarif)
    only = tuple(name.strip() for name in args.only.split(",")) if args.only else ()
    options = LintOptions(only=only, source=args.source, family=args.family, costs=args.costs, profile=args.profile)
    with tempfile.TemporaryDirectory(prefix="kdyno-") as scratch:
        talk = talk_of(args)
        with talk.working("checking kernels") as advance:
            targets = find_targets(args.what, args.symbols, Path(scratch), state_of(args))
            files = itertools.count(1)
            report = lint(targets, options, lambda name: advance(next(files), len(targets.files), name))
    if args.sarif:
        write_whole(args.sarif, json.dumps(sarif(report), indent=2) + "\n")
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        _print(report)
    if report.not_read:
        return UNREAD
    return BAD if args.fail_on_finding and report.is_bad else 0


def _print(report: LintReport) -> None:
    for finding in report.findings:
        line(f"{_place(finding)}: {finding.level}: {finding.message} [{finding.lint}]")
        line(f"    {finding.function} in {finding.file}, {finding.section} {finding.address}: {finding.instruction}")
    for file in report.not_read:
        tell(f"kdyno: not checked: {file.refused}: {file.why}")
    for bare in report.without_functions:
        why = "no symbols, so functions aren't known; add --symbols System.map"
        tell(f"kdyno: {bare.without_functions}: {why}. Not run: {', '.join(bare.lints)}")
    for library in report.left_out:
        what = f"{format_count(library.functions, 'function')} of the C library, which are not the kernel's"
        tell(f"kdyno: {library.with_library}: not checked: {what}")
    for name, option in report.not_run.items():
        tell(f"kdyno: {name} was not run: it requires {option}")
    if report.findings and all(finding.line is None for finding in report.findings):
        tell("kdyno: findings have no lines: the files have no line tables; set `lines = true` in the recipe")
    if report.costs_of:
        tell(f"kdyno: costs of instructions: lane wall, cycles of the core, measured on {report.costs_of}")
    if report.cycles is not None:
        saved = f"{number(report.cycles)} cycles per million instructions of the load"
        line(f"better sequences in the functions above would save at most {saved}")
    counts = Counter(finding.level for finding in report.findings)
    levels = (format_count(counts[level], level) for level in ("error", "warning", "note"))
    line(f"{format_count(report.files, 'file')}: {', '.join(levels)}")


def _place(finding: LintFinding) -> str:
    return f"{finding.source}:{finding.line}" if finding.source else finding.file
