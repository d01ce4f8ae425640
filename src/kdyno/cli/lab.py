"""`kdyno lab`"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base.errors import UserError
from kdyno.base.terminal import data, line
from kdyno.cli.common import add_action, number_from, print_json, state_of, store_of, talk_of, words
from kdyno.kernel.arch import ARCHES

if TYPE_CHECKING:
    from kdyno.kernel.routines.families import RoutineFamily
    from kdyno.understand.lab.verdicts import LabTimes

DIFFERENT = 2
"""The exit code if a candidate is not equal to its definition, or not proven."""
DEFAULT_SOURCE = "debian:linux-source-6.12"


class CandidateOfSeveral(UserError):
    message = "--candidate is for one family, and there are several: {families}"
    hint = "name one family"


class StartOfNothing(UserError):
    message = "{option} needs {missing}"
    hint = "add {missing}: the routines of a built kernel, as they are in memory after its start"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    _add_time(add_action(actions, "time", "time the candidates of each family on this processor"))
    _add_sizes(add_action(actions, "sizes", "count the sizes that a kernel calls its routines with under a load"))
    _add_instructions(add_action(actions, "instructions", "time instructions that kernels use on this processor"))
    _add_prove(add_action(actions, "prove", "compare each candidate with its definition, up to stated bounds"))
    _add_patch(add_action(actions, "patch", "write a patch that puts the fastest candidate of a family into a kernel"))


def _add_time(parser: argparse.ArgumentParser) -> None:
    _add_families(parser)
    _add_timing(parser)
    _add_arch(parser)
    parser.add_argument("--heat-map", type=Path, metavar="FILE.svg", help="write the fastest by size and offset")
    parser.add_argument("--json", action="store_true", help="print all times as JSON")
    parser.set_defaults(do=_time)


def _add_prove(parser: argparse.ArgumentParser) -> None:
    _add_families(parser)
    parser.add_argument("--image", metavar="IMAGE", help="the routines of a built kernel, by the bytes in its vmlinux")
    parser.add_argument(
        "--started", action="store_true", help="the routines of the image as its start patched them: boots it once"
    )
    parser.add_argument("--cpu", metavar="MODEL", help="QEMU's CPU model of that start (default: kdyno's; max: all)")
    parser.add_argument("--sample", action="store_true", help="smaller bounds: seconds instead of minutes")
    parser.add_argument("--symbolic", action="store_true", help="also for every content, up to smaller bounds: by angr")
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


def _add_patch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", nargs="+", metavar="FAMILY", help="memcpy, strlen ...")
    _add_source(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", help="write FAMILY.patch there (default: print)")
    parser.add_argument("--candidate", metavar="NAME", help="take this candidate of the family, without timing it")
    parser.add_argument(
        "--times", type=Path, metavar="FILE.json", help="times of `lab time --json` (default: time now)"
    )
    _add_arch(parser)
    _add_timing(parser)
    parser.add_argument("--sample", action="store_true", help="prove with smaller bounds: seconds instead of minutes")
    parser.set_defaults(do=_patch)


def _add_timing(parser: argparse.ArgumentParser) -> None:
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


def _add_arch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--arch",
        choices=sorted(ARCHES),
        default="x86_64",
        help="the kernels whose own choice counts; those for um patch no ALTERNATIVE (default: %(default)s)",
    )


def _add_families(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("family", nargs="*", metavar="FAMILY", help="memcpy, strlen ... (default: all)")
    _add_source(parser)


def _add_source(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--source", metavar="SPEC", default=DEFAULT_SOURCE, help="kernel source (default: %(default)s)")


def act(args: argparse.Namespace) -> int:
    return int(args.do(args))


def _time(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.kernel.routines.families import find_families
    from kdyno.understand.lab.heat_map import heat_map
    from kdyno.understand.lab.lines import time_lines

    families = find_families(args.family)
    if args.heat_map:
        require_writable(args.heat_map)
    report = _time_now(args, families)
    if args.heat_map:
        write_whole(args.heat_map, heat_map(report))
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for text in time_lines(report):
            line(text)
    return 0


def _time_now(args: argparse.Namespace, families: Sequence[RoutineFamily], chosen_before: str = "") -> LabTimes:
    """Time families as the options say, with another seed to confirm the candidate that was chosen before."""
    from kdyno.understand.lab.time_lab import SEED, time_families
    from kdyno.understand.lab.timing import read_distributions

    given = {name: value for name in ("blocks", "seed") if (value := getattr(args, name)) is not None}
    if chosen_before:
        given |= {"seed": given.get("seed", SEED) + 1, "chosen_before": chosen_before}
    distributions = read_distributions(args.sizes) if args.sizes else {}
    return time_families(
        args.source, families, state_of(args), talk_of(args), distributions=distributions, arch=args.arch, **given
    )


def _patch(args: argparse.Namespace) -> int:
    from kdyno.base.files import make_directory, require_directory, require_writable, write_whole
    from kdyno.kernel.routines.families import find_families
    from kdyno.kernel.source import fetch
    from kdyno.understand.lab.patch import (
        PatchPlace,
        RoutinePatch,
        kernel_comparison,
        patch_by_name,
        patch_by_times,
        read_times,
        times_of,
    )

    families, talk = find_families(args.family), talk_of(args)
    if args.candidate and len(families) > 1:
        raise CandidateOfSeveral(families=", ".join(args.family))
    paths = {family.name: args.output / f"{family.name}.patch" for family in families} if args.output else {}
    if args.candidate:
        families[0].candidate_named(args.candidate)
    if args.output:
        require_directory(args.output)
    for path in filter(Path.exists, paths.values()):
        require_writable(path)
    times = read_times(args.times, args.family[0]) if args.times else None
    place = PatchPlace(fetch(args.source, state_of(args), talk.say), args.arch, state_of(args), talk, args.sample)
    patches = list[RoutinePatch]()
    for family in families:
        if args.candidate:
            patch = patch_by_name(family, args.candidate, place)
        else:
            report = times or _time_now(args, [family])
            row, repeated = times_of(report, family.name, args.arch, args.times), None
            if not times and row.patch.winner.is_faster:
                [repeated] = _time_now(args, [family], row.patch.winner.name).families
            patch = patch_by_times(family, report, row, repeated, place)
        patches.append(patch)
        if patch.text and paths:
            make_directory(args.output)
            write_whole(paths[family.name], patch.text.encode(errors="surrogateescape"))
            line(f"{patch.summary}: {paths[family.name]}")
        elif paths:
            line(patch.summary)
        else:
            talk.say(patch.summary)
            data(patch.text)
    if command := kernel_comparison(patches):
        talk.say(f"what that is worth in a kernel: {command}")
    return 0


def _prove(args: argparse.Namespace) -> int:
    from kdyno.kernel.routines.families import find_families
    from kdyno.understand.lab.prove import ProofDepth, Start, proof_lines, prove_families, prove_image

    if args.started and not args.image:
        raise StartOfNothing(option="--started", missing="--image IMAGE")
    if args.cpu and not args.started:
        raise StartOfNothing(option="--cpu", missing="--started")
    families = find_families(args.family)
    depth = ProofDepth(args.sample, args.symbolic, args.seed)
    state, talk = state_of(args), talk_of(args)
    if args.image:
        report = prove_image(args.image, families, depth, state, talk, Start(args.cpu) if args.started else None)
    else:
        report = prove_families(args.source, families, depth, state, talk)
    if args.json:
        print_json(report.model_dump(mode="json"))
    else:
        for text in proof_lines(report):
            line(text)
    return 0 if report.are_all_equal else DIFFERENT


def _sizes(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.runs.session import Session
    from kdyno.understand.lab.size_lines import size_lines, size_plot
    from kdyno.understand.lab.sizes import count_calls, sizes_csv, subject_of

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
    from kdyno.measure.cycles.instruction_costs import costs_toml
    from kdyno.understand.lab.instructions import cost_lines, time_instructions

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
