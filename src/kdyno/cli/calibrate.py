"""`kdyno calibrate`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.terminal import line
from kdyno.cli.common import family_name, number_from, print_json, state_of, store_of, talk_of, write_family
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from kdyno.measure.cycles.calibrate import Calibration
    from kdyno.measure.cycles.evaluate import Quality
    from kdyno.measure.cycles.family import Family
    from kdyno.measure.cycles.kernel_fit import KernelCalibration
    from kdyno.measure.cycles.kernel_measured import KernelMeasurement

NOISY = 0.1
"""The median spread between passes above which a host is reported as noisy."""
WORST = 8
MEASURE = ""
"""The value of --kernel without a file: a new measurement is made."""


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--family", default="auto", metavar="NAME", help="CPU family of this host, or file:PATH (default: auto)"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE.toml", help="write the calibrated family")
    parser.add_argument(
        "--times", type=number_from(1, 10_000), default=50, metavar="N", help="runs of a program in a pass (default 50)"
    )
    parser.add_argument(
        "--passes",
        type=number_from(2, 1000),
        default=2,
        metavar="N",
        help="number of passes; a noisy host needs more (default 2)",
    )
    parser.add_argument(
        "--kernel",
        nargs="?",
        const=MEASURE,
        metavar="FILE.json",
        help="fit the kernel's own weights to a file of `kdyno validate -o`, or to a new measurement",
    )
    parser.add_argument("--date", metavar="DATE", help="a date to write into the file (default: none)")
    parser.add_argument("--json", action="store_true", help="weights, programs and quality as JSON")


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable

    if args.output:
        require_writable(args.output)
    return _calibrate_programs(args) if args.kernel is None else _calibrate_kernel(args)


def _calibrate_programs(args: argparse.Namespace) -> int:
    from kdyno.base.cpu import read_cpu
    from kdyno.base.host import host_facts
    from kdyno.measure.cycles.calibrate import CalibrationReport, calibrate, calibrated_family
    from kdyno.measure.cycles.family import load_family
    from kdyno.measure.cycles.host import find_family
    from kdyno.measure.cycles.measure import measure

    family = find_family(read_cpu()) if args.family == "auto" else load_family(args.family)
    talk = talk_of(args)
    measured = measure(family, times=args.times, passes=args.passes, talk=talk)
    calibration = calibrate(measured, family)
    if args.json:
        print_json(CalibrationReport.from_calibration(calibration).model_dump(mode="json"))
    else:
        for row in lines(calibration):
            line(row)
    if args.output:
        cpu = str(host_facts().get("cpu", "unknown"))
        write_family(args, calibrated_family(calibration, family_name(args.output, family), cpu, args.date))
    return 0


def _calibrate_kernel(args: argparse.Namespace) -> int:
    from kdyno.measure.cycles.kernel_fit import KernelCalibrationReport, apply_kernel_weights, calibrate_kernel

    measured, family = _kernel_measurement(args)
    calibration = calibrate_kernel(measured, family)
    if args.json:
        print_json(KernelCalibrationReport.from_calibration(calibration).model_dump(mode="json"))
    else:
        for row in kernel_lines(calibration):
            line(row)
    if args.output:
        write_family(args, apply_kernel_weights(calibration, family_name(args.output, family), args.date))
    return 0


def _kernel_measurement(args: argparse.Namespace) -> tuple[KernelMeasurement, Family]:
    """Return the measurement to fit to, and the family. The default family is that of the measurement, which may be of
    another host."""
    from kdyno.measure.cycles.family import load_family
    from kdyno.measure.cycles.kernel_measured import read_measurement
    from kdyno.understand.validate.kernel import ValidationRequest, host_family, validate_kernel

    if args.kernel == MEASURE:
        with store_of(args) as store:
            request = ValidationRequest(args.family, passes=max(args.passes, ValidationRequest.passes))
            measured = validate_kernel(request, session=Session(state_of(args), store, talk_of(args)))
        return measured, host_family(args.family)[1]
    path = Path(args.kernel)
    measured = read_measurement(path)
    family = load_family(measured.family if args.family == "auto" else args.family)
    measured.require_geometry(family, path)
    return measured, family


def lines(calibration: Calibration) -> list[str]:
    """Return the outcome as lines of text."""
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


def kernel_lines(calibration: KernelCalibration) -> list[str]:
    """Return the outcome of --kernel as lines of text."""
    from kdyno.cli.validate import benchmark_row, summary

    before = calibration.family.weights
    rows = [f"weights of {calibration.family.name}, in cycles   fitted    before"]
    rows += [f"  {event:<26} {calibration.weights[event]:>9.4g} {before[event]:>9.4g}" for event in calibration.fitted]
    rows += ["  all other weights are unchanged", ""]
    benchmarks = calibration.measured.benchmarks
    rows.append(f"{'benchmark':<22} {'kind':<9} {'role':<8} {'per':<3} {'native':>11} {'modelled':>11} {'ratio':>6}")
    rows += [benchmark_row(row, benchmark.unit) for row, benchmark in zip(calibration.judged, benchmarks, strict=True)]
    qualities = (
        ("held-out", calibration.held_out),
        ("held-out, previous weights", calibration.before),
        ("fitted to", calibration.on_fitted),
    )
    return [*rows, "", *(f"{title}: {summary(quality)}" for title, quality in qualities)]


def _weights(calibration: Calibration) -> list[str]:
    before = calibration.family.model.weights
    rows = [f"weights of {calibration.family.name}, in cycles   fitted    before"]
    for event, weight in calibration.weights.items():
        kept = "  kept: no program determines it" if event in calibration.kept else ""
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
        rows.append("this host is noisy: more passes (--passes) improve the minima")
    return rows


def _quality(calibration: Calibration) -> list[str]:
    rows = (
        ("held-out", calibration.held_out),
        ("held-out, previous weights", calibration.before),
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
    from kdyno.measure.cycles.evaluate import errors_by_kind, worst

    held_out = [program for program in calibration.judged if program.role == "held-out"]
    kinds = ", ".join(f"{kind} {_percent(error)}" for kind, error in errors_by_kind(held_out).items())
    rows = [f"median error by kind, held-out: {kinds}", "the largest errors of the model, held-out:"]
    for program in worst(held_out, WORST):
        rows.append(
            f"  {program.program:<23} {program.error_factor:.1f} times too {'much' if program.error > 0 else 'little'}"
        )
    return rows
