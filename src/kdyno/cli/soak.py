"""`kdyno soak`"""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base import terminal
from kdyno.cli.common import number_from, print_json, state_of, talk_of
from kdyno.runs.soak.variants import SOAK_VARIANTS

if TYPE_CHECKING:
    from kdyno.runs.soak.record import SoakLoadOutcome, SoakRecord

MOST_HOURS = 30 * 24


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("image", help="key of an image that kdyno built, or the beginning of it")
    parser.add_argument("--hours", type=_hours, default=1.0, metavar="H", help="duration, such as 0.25 (default: 1)")
    parser.add_argument(
        "--use",
        action="append",
        default=[],
        metavar="LOAD",
        help="a workload, followed by NAME=VALUE of its parameters; can be repeated (default: twelve of kdyno's)",
    )
    parser.add_argument(
        "--with",
        dest="variants",
        action="append",
        default=[],
        choices=SOAK_VARIANTS,
        help="soak a sibling kernel with KUnit tests, with checks of memory errors or of locks; can be repeated",
    )
    parser.add_argument("--cpus", type=number_from(1, 64), metavar="N", default=2, help="CPUs (default: 2)")
    parser.add_argument(
        "--memory", type=number_from(64, 1 << 20), metavar="MB", help="guest memory (default: as the loads require)"
    )
    parser.add_argument("--append", default="", metavar="WORDS", help="parameters for the kernel command line")
    parser.add_argument("--seed", type=number_from(0), default=1, metavar="N", help="seed of the guest (default: 1)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="also write the record to FILE")
    parser.add_argument("--json", action="store_true", help="print the record")
    parser.epilog = "The exit status is 2 if the kernel failed, and 3 if the soak was lost. See docs/soak.md."


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.runs.sibling import sibling_image
    from kdyno.runs.soak.carry_out import SoakOrder, carry_out, text_of
    from kdyno.runs.soak.loads import loads_of
    from kdyno.runs.subject import image_named

    state, talk = state_of(args), talk_of(args)
    if args.output:
        require_writable(args.output)
    loads = loads_of(args.use)
    named = image_named(args.image, state)
    variants = tuple(name for name in SOAK_VARIANTS if name in args.variants)
    order = SoakOrder(
        image=sibling_image(named, variants, state, talk) if variants else named,
        loads=loads,
        hours=args.hours,
        cpus=args.cpus,
        memory_mb=args.memory,
        seed=args.seed,
        words=tuple(args.append.split()),
        soak_variant=variants,
        variant_of=named.record.key if variants else None,
    )
    record, path = carry_out(order, state, talk)
    if args.output:
        write_whole(args.output, text_of(record))
    if args.json:
        print_json(record.model_dump(mode="json"))
    else:
        _print(record)
    talk.say(f"record: {path}")
    if record.boot == "lost: interrupted":
        return 130
    return {"passed": 0, "failed": 2, "unfinished": 3}[record.verdict]


def _hours(text: str) -> float:
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 < hours <= MOST_HOURS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of hours above 0 and up to {MOST_HOURS}")
    return hours


def _print(record: SoakRecord) -> None:
    kernel, facts = record.kernel, record.machine.facts
    terminal.line(f"{kernel.image[:12]}: linux {kernel.release}, {kernel.compiler}")
    cpus = f"{record.machine.cpus_online or '?'} of {facts['cpus']} CPUs"
    terminal.line(f"{facts['accel']}, {facts['cpu']}, {cpus}, {facts['memory_mb']:,} MB")
    terminal.line(f"lived {record.hours_lived:g} h of {record.hours_asked:g} h; boot {record.boot}")
    terminal.line()
    width = max(len(load.load) for load in record.loads)
    terminal.line(f"{'load':<{width}} {'rounds':>8} {'failed':>7} {'mean':>10} {'longest':>10}")
    for load in record.loads:
        terminal.line(_row(load, width))
    terminal.line()
    if record.memory.before and record.memory.after:
        before, after = record.memory.before, record.memory.after
        for slope in record.memory.slopes:
            ends = f"{before.mb.get(slope.field, 0):.1f} -> {after.mb.get(slope.field, 0):.1f} MB at rest"
            terminal.line(f"{slope.field:<12} {ends:<30} {slope.in_words()}")
    else:
        for slope in record.memory.slopes:
            terminal.line(f"{slope.field:<12} {slope.in_words()}")
    if record.kunit:
        kunit = record.kunit
        results = f"{kunit.suites} suites, {kunit.passed} passed, {kunit.failed} failed, {kunit.skipped} skipped"
        terminal.line(f"KUnit: {results} {kunit.fault}".rstrip())
    if not record.console:
        terminal.line("console: no findings")
    for finding in record.console:
        times = f" ({finding.times:,} times)" if finding.times > 1 else ""
        terminal.line(f"console: {finding.reason}: {finding.said}{times}")
    terminal.line()
    terminal.line(record.verdict)
    for reason in record.reasons:
        terminal.line(f"  {reason}")


def _row(load: SoakLoadOutcome, width: int) -> str:
    mean = "" if load.mean_seconds is None else f"{load.mean_seconds:.2f} s"
    longest = "" if load.longest_seconds is None else f"{load.longest_seconds:.2f} s"
    note = {"left-out": "  left out", "lost": "  lost", "running": "  still ran", "over": ""}[load.progress]
    return f"{load.load:<{width}} {load.rounds:>8,} {load.failures:>7,} {mean:>10} {longest:>10}{note}"
