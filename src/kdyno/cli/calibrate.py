"""`kdyno calibrate`"""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.cli.common import number_from, print_json, talk_of
from kdyno.terminal import line

if TYPE_CHECKING:
    from kdyno.cycles.calibrate import Calibration
    from kdyno.cycles.evaluate import Quality

NOISY = 0.1
"""Median spread between passes above which the host is called noisy."""
WORST = 8


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--family", default="auto", metavar="NAME", help="CPU family of this host, or file:PATH (default: auto)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.toml", help="write the calibrated family")
    parser.add_argument(
        "--times", type=number_from(1, 10_000), default=50, metavar="N", help="runs of a program in a pass (default 50)"
    )
    parser.add_argument(
        "--passes", type=number_from(2, 1000), default=2, metavar="N", help="more help on a noisy host (default 2)"
    )
    parser.add_argument("--date", metavar="DATE", help="a date to write into the file (default: none)")
    parser.add_argument("--json", action="store_true", help="weights, programs and quality as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.cycles.calibrate import CalibrationReport, as_toml, calibrate, calibrated
    from kdyno.cycles.family import load_family
    from kdyno.cycles.host import family_of
    from kdyno.cycles.measure import measure
    from kdyno.files import require_writable, write_whole
    from kdyno.host import host_facts
    from kdyno.march.cpu import read_cpu

    family = family_of(read_cpu()) if args.family == "auto" else load_family(args.family)
    if args.output:
        require_writable(args.output)
    talk = talk_of(args)
    measured = measure(family, times=args.times, passes=args.passes, talk=talk)
    calibration = calibrate(measured, family)
    if args.json:
        print_json(CalibrationReport.of(calibration).model_dump(mode="json"))
    else:
        for row in lines(calibration):
            line(row)
    if args.output:
        stem = args.output.stem
        name = stem if re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,59}", stem) else family.name
        made = calibrated(calibration, name, str(host_facts().get("cpu", "unknown")), args.date)
        write_whole(args.output, as_toml(made))
        talk.say(f'wrote {args.output}; use it as family = "file:{args.output}"')
    return 0


def lines(calibration: Calibration) -> list[str]:
    """The outcome as text."""
    return [
        *_weights(calibration),
        "",
        *_programs(calibration),
        "",
        *_spread(calibration),
        *_quality(calibration),
        "",
        *_worst(calibration),
    ]


def _weights(calibration: Calibration) -> list[str]:
    before = calibration.family.model.weights
    rows = [f"weights of {calibration.family.name}, in cycles   fitted    before"]
    for event, weight in calibration.weights.items():
        kept = "  kept: no program shows it" if event in calibration.kept else ""
        rows.append(f"  {event:<26} {weight:>9.3f} {before[event]:>9.3f}{kept}")
    return rows


def _programs(calibration: Calibration) -> list[str]:
    rows = [f"{'program':<23} {'kind':<10} {'role':<8} {'native':>11} {'modelled':>11} {'error':>8} {'spread':>7}"]
    for program, spread in zip(calibration.judged, calibration.spread, strict=True):
        rows.append(
            f"{program.program:<23} {program.kind:<10} {program.role:<8} "
            f"{program.native:>11,.0f} {program.modelled:>11,.0f} "
            f"{_percent(program.error, '+'):>8} {_percent(spread):>7}"
        )
    return rows


def _spread(calibration: Calibration) -> list[str]:
    spread = sorted(calibration.spread)
    median = spread[len(spread) // 2]
    rows = [f"native passes differ by {_percent(median)} (median), at most {_percent(spread[-1])}"]
    if median > NOISY:
        rows.append("this host is noisy: more passes (--passes) make better minima")
    return rows


def _quality(calibration: Calibration) -> list[str]:
    rows = (
        ("held-out", calibration.held_out),
        ("held-out, weights as before", calibration.before),
        ("fitted to", calibration.fitted),
    )
    return [f"{title}: {_summary(quality)}" for title, quality in rows]


def _summary(quality: Quality) -> str:
    return (
        f"{quality.programs} programs, Spearman {quality.spearman:.2f} "
        f"(cycles per instruction {quality.spearman_per_instruction:.2f}; instructions alone "
        f"{quality.spearman_of_instructions:.2f}), median error {_percent(quality.median_error)}, "
        f"90 % within {_percent(quality.most_error)}"
    )


def _percent(part: float, sign: str = "") -> str:
    return f"{100 * part:{sign}.0f} %"


def _worst(calibration: Calibration) -> list[str]:
    from kdyno.cycles.evaluate import by_kind, worst

    held_out = [program for program in calibration.judged if program.role == "held-out"]
    kinds = ", ".join(f"{kind} {_percent(error)}" for kind, error in by_kind(held_out).items())
    rows = [f"median error by kind, held-out: {kinds}", "where the model fails most, held-out:"]
    for program in worst(held_out, WORST):
        rows.append(
            f"  {program.program:<23} {program.off_by:.1f} times too {'much' if program.error > 0 else 'little'}"
        )
    return rows
