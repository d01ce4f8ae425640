"""`kdyno validate`"""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.errors import UserError
from kdyno.base.terminal import line
from kdyno.base.text import format_count, format_list
from kdyno.cli.common import family_name, number_from, print_json, state_of, store_of, talk_of, write_family
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from pydantic import BaseModel

    from kdyno.measure.cycles.evaluate import EvaluatedProgram, Quality
    from kdyno.measure.cycles.kernel_measured import Validation

FAMILY_SUFFIX = ".toml"
"""Of the file that `--paths` writes as a CPU family, and not as JSON."""
NOISY = 0.1
"""The median spread between passes above which a host is reported as noisy."""


def configure(parser: argparse.ArgumentParser) -> None:
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        "--library",
        metavar="SPEC",
        help="validate functions of lib/ of this kernel source, compiled by several compilers",
    )
    kind.add_argument(
        "--kvm", type=Path, metavar="FILE.toml", help="compare the variants of an experiment, modelled and under KVM"
    )
    kind.add_argument(
        "--paths",
        type=Path,
        metavar="FILE.toml",
        help="compare the variants of an experiment of the machine uml, modelled and on this processor",
    )
    kind.add_argument(
        "--micro", action="store_true", help="compare small loops with known cycles; takes less than a minute"
    )
    parser.add_argument(
        "--family", default="auto", metavar="NAME", help="CPU family of this host, or file:PATH (default: auto)"
    )
    parser.add_argument(
        "--source", metavar="SPEC", help="kernel source (default: the installed linux-source of the nearest version)"
    )
    parser.add_argument(
        "--config", type=Path, metavar="FILE", help="configuration of the running kernel, if kdyno doesn't find it"
    )
    parser.add_argument(
        "--passes",
        type=number_from(2, 1000),
        metavar="N",
        help="number of passes; a noisy host needs more (default 5; 7 with --library, 3 with --micro)",
    )
    parser.add_argument("--seed", type=number_from(0), metavar="N", help="seed of the guest (default 1)")
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE.json",
        help="write the measurement and its figures; with --paths, FILE.toml: the family with what gains are worth",
    )
    parser.add_argument("--json", action="store_true", help="print the measurement and its figures as JSON")
    parser.epilog = (
        "The first run builds a kernel with the configuration of the running kernel, which takes many minutes."
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable

    _require_effective_options(args)
    if args.output:
        require_writable(args.output)
    if args.library:
        return _library(args)
    if args.kvm:
        return _kvm(args)
    if args.paths:
        return _paths(args)
    if args.micro:
        return _micro(args)
    return _kernel(args)


class NoEffect(UserError):
    message = "{option} has no effect with {kind}"
    hint = "remove it; `kdyno validate --help` describes the options"


def _require_effective_options(args: argparse.Namespace) -> None:
    """Refuse options that have no effect: a given source or number of passes must not be ignored. Raises NoEffect."""
    kinds = {"--library": args.library, "--kvm": args.kvm, "--paths": args.paths, "--micro": args.micro}
    kind = next((option for option, value in kinds.items() if value), None)
    if kind is None:
        return
    named = {"--source": args.source, "--config": args.config, "--seed": args.seed}
    if kind in ("--kvm", "--paths"):
        named["--passes"] = args.passes
    for option, value in named.items():
        if value is not None:
            raise NoEffect(option=option, kind=kind)


def _kernel(args: argparse.Namespace) -> int:
    from kdyno.measure.cycles.kernel_measured import Validation
    from kdyno.understand.validate.kernel import ValidationRequest, host_family, validate_kernel

    given = {name: value for name in ("passes", "seed") if (value := getattr(args, name)) is not None}
    request = ValidationRequest(args.family, args.source, args.config, **given)
    with store_of(args) as store:
        measured = validate_kernel(request, session=Session(state_of(args), store, talk_of(args)))
    validation = Validation.from_measurement(measured, host_family(args.family)[1])
    _tell(args, validation, lines(validation))
    if args.output:
        talk_of(args).say(f"`kdyno calibrate --kernel {args.output}` fits the kernel's own weights to it")
    return 0


def _library(args: argparse.Namespace) -> int:
    from kdyno.understand.validate import library_lines
    from kdyno.understand.validate.kernel import host_family
    from kdyno.understand.validate.library import measure_library
    from kdyno.understand.validate.library_compare import compare_library

    given = {"passes": args.passes} if args.passes else {}
    family = host_family(args.family)[1]
    report = compare_library(measure_library(args.library, family, state_of(args), talk_of(args), **given))
    _tell(args, report, library_lines.lines(report))
    return 0


def _kvm(args: argparse.Namespace) -> int:
    from kdyno.runs.experiment.resolve import load_experiment
    from kdyno.understand.validate import kvm
    from kdyno.understand.validate.kernel import host_family

    experiment = load_experiment(args.kvm)
    family = host_family(args.family)[0]
    with store_of(args) as store:
        report = kvm.compare_kvm(kvm.measure_kvm(experiment, family, Session(state_of(args), store, talk_of(args))))
    _tell(args, report, kvm.lines(report))
    return 0


def _paths(args: argparse.Namespace) -> int:
    from kdyno.base.cpu import read_cpu
    from kdyno.runs.experiment.resolve import load_experiment
    from kdyno.store.artefacts import Artefacts
    from kdyno.understand.validate import paths
    from kdyno.understand.validate.kernel import host_family
    from kdyno.understand.validate.path_gains import silicon_gains, with_gains

    experiment = load_experiment(args.paths)
    family_spec, family = host_family(args.family)
    with store_of(args) as store:
        lanes = paths.measure_paths(experiment, family_spec, Session(state_of(args), store, talk_of(args)))
    report = paths.compare_paths(lanes, family_spec, Artefacts(state_of(args).artefacts))
    if not args.output or args.output.suffix != FAMILY_SUFFIX:
        _tell(args, report, paths.lines(report))
        return 0
    _print(args, report, paths.lines(report))
    gains = silicon_gains(report, {variant.name: variant.recipe for variant in lanes.wall.run.variants}, read_cpu())
    write_family(args, with_gains(family, gains, family_name(args.output, family)))
    return 0


def _micro(args: argparse.Namespace) -> int:
    from kdyno.base.cpu import read_cpu
    from kdyno.measure.cycles.family import load_family
    from kdyno.measure.cycles.host import find_family
    from kdyno.understand.validate import micro_lines
    from kdyno.understand.validate.micro import measure_micro_programs

    family = find_family(read_cpu()) if args.family == "auto" else load_family(args.family)
    given = {"passes": args.passes} if args.passes else {}
    report = measure_micro_programs(family, talk_of(args), **given)
    _tell(args, report, micro_lines.lines(report))
    return 0


def _tell(args: argparse.Namespace, report: BaseModel, text: Iterable[str]) -> None:
    """Print a report in the requested form, and write it."""
    from kdyno.base.files import write_whole

    _print(args, report, text)
    if args.output:
        write_whole(args.output, report.model_dump_json(indent=1) + "\n")
        talk_of(args).say(f"wrote {args.output}")


def _print(args: argparse.Namespace, report: BaseModel, text: Iterable[str]) -> None:
    """Print a report in the requested form."""
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for row in text:
            line(row)


def lines(validation: Validation) -> list[str]:
    """Return the outcome as lines of text."""
    return [*_kernels(validation), "", *_benchmarks(validation), "", *_qualities(validation)]


def _kernels(validation: Validation) -> list[str]:
    measured = validation.measured
    kernels = measured.kernels
    ghz = f"{min(measured.ghz):.2f}" + (f" to {max(measured.ghz):.2f}" if max(measured.ghz) > min(measured.ghz) else "")
    unmatched = [
        f"{one.name} (here: {one.host}; guest: {one.guest})" for one in kernels.mitigations if not one.is_matched
    ]
    rows = [
        f"native:   Linux {kernels.running}, {kernels.compiler}, on {measured.cpu} at {ghz} GHz",
        f"modelled: Linux {kernels.version} ({kernels.origin}), {kernels.built_with}",
        f"          {validation.model}",
        f"mitigations: {format_count(len(unmatched), 'difference') if unmatched else 'as here'}",
        *(f"  {text}" for text in unmatched),
        f"words: {' '.join(kernels.words)}",
    ]
    rows += [f"added: {symbol}: {why}" for symbol, why in kernels.additions.items()]
    if kernels.dropped:
        rows.append(
            f"not in the modelled kernel: {format_count(len(kernels.dropped), 'option')}: "
            f"{format_list(kernels.dropped)}"
        )
    return rows


def _benchmarks(validation: Validation) -> list[str]:
    names = f"{'benchmark':<22} {'kind':<9} {'role':<8} {'per':<3}"
    rows = [f"{names} {'native':>11} {'modelled':>11} {'ratio':>6} {'spread':>7}"]
    for judged, benchmark in zip(validation.judged, validation.measured.benchmarks, strict=True):
        rows.append(f"{benchmark_row(judged, benchmark.unit)} {_percent(benchmark.spread):>7}")
    rows += [f"{name}: left out: {why}" for name, why in validation.measured.left_out.items()]
    return rows


def benchmark_row(judged: EvaluatedProgram, unit: str) -> str:
    """Return the row of one benchmark: native and modelled cycles, and the ratio modelled / native."""
    names = f"{judged.program:<22} {judged.kind:<9} {judged.role:<8} {unit:<3}"
    return f"{names} {judged.native:>11,.0f} {judged.modelled:>11,.0f} {judged.modelled / judged.native:>6.2f}"


def _qualities(validation: Validation) -> list[str]:
    spreads = sorted(benchmark.spread for benchmark in validation.measured.benchmarks)
    median = spreads[len(spreads) // 2]
    rows = [f"native passes differ by {_percent(median)} (median), at most {_percent(spreads[-1])}"]
    if median > NOISY:
        rows.append("this host is noisy: more passes (--passes) improve the minima")
    return [
        *rows,
        f"all: {summary(validation.quality)}",
        f"held-out: {summary(validation.held_out)}",
    ]


def summary(quality: Quality) -> str:
    """Return the quality of a model on some benchmarks, in one line."""
    return (
        f"{quality.programs} benchmarks, Spearman {quality.spearman:.2f} (instructions alone "
        f"{quality.spearman_of_instructions:.2f}), median error {_percent(quality.median_error)}, "
        f"90 % within {_percent(quality.most_error)}"
    )


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"
