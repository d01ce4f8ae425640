"""`kdyno profile`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.terminal import data
from kdyno.cli import profile_objects, profile_pull, profile_quality
from kdyno.cli.common import add_action, number_from, print_json, state_of, store_of, talk_of

CONTEXTS = ("task", "exception", "interrupt")
FORMATS = ("llvm", "autofdo", "lbr", "collapsed", "propeller")
ORDER = "order"
SEVERAL = "may be given several times"


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="ACTION", dest="action", required=True)

    show = add_action(verbs, "show", "show what ran in a record: its regions, its flat profile, its call edges")
    _add_record(show)
    show.add_argument(
        "--event", default="instructions", metavar="EVENT", help="the event to count (default: instructions)"
    )
    show.add_argument("--top", type=number_from(1), metavar="N", help="rows of each table (default: 25; JSON: all)")
    show.add_argument("--calls", action="store_true", help="print call edges, too")
    show.add_argument("--json", action="store_true", help="print everything as JSON, with every event")

    export = add_action(verbs, "export", "convert a record to a format that compilers or other tools read")
    _add_record(export)
    export.add_argument(
        "--format",
        choices=(*FORMATS, ORDER),
        required=True,
        help="for compilers, linkers, flame graphs: docs/profiles.md",
    )
    export.add_argument(
        "--vmlinux", type=Path, metavar="FILE", help="the vmlinux that ran; autofdo, propeller and order require it"
    )
    export.add_argument("-o", "--output", type=Path, metavar="FILE", help="write to FILE instead of standard output")

    cover = add_action(
        verbs, "cover", "make clang's profile with llvm-profgen, and report how much of the executed code it covers"
    )
    _add_record(cover)
    cover.add_argument("--vmlinux", type=Path, metavar="FILE", required=True, help="the vmlinux that ran")
    cover.add_argument(
        "-o", "--output", type=Path, metavar="PROFILE", help="keep the profile, for -fprofile-sample-use"
    )
    cover.add_argument("--json", action="store_true", help="print the summary as JSON")

    record = add_action(verbs, "record", "boot an image once under the emulated PMU, and store the counts")
    record.add_argument("image", metavar="IMAGE", help="key of an image that kdyno built, or its directory")
    record.add_argument(
        "--tests",
        default="lmbench",
        metavar="TEST,...",
        help="tests, suites, workloads by name or file (default: lmbench, which is 19 tests)",
    )
    record.add_argument(
        "--events",
        choices=["edges", "all", "trace"],
        default="all",
        help="edges: faster, only for compilers; trace: all events and the sequence of blocks, for orders",
    )
    record.add_argument(
        "--family", default="sapphirerapids", help="CPU family whose caches are modelled (default: sapphirerapids)"
    )
    record.add_argument("--seed", type=number_from(0), default=1, metavar="N", help="seed of the guest (default: 1)")
    record.add_argument("-o", "--output", type=Path, metavar="FILE", required=True, help="the record")

    profile_quality.configure(verbs)
    profile_objects.configure(verbs)
    profile_pull.configure(verbs)


def act(args: argparse.Namespace) -> int:
    actions = {
        "show": _show,
        "export": _export,
        "cover": _cover,
        "record": _record,
        "merge": profile_quality.merge,
        "overlap": profile_quality.overlap,
        "stale": profile_quality.stale,
        "objects": profile_objects.objects,
        "pull": profile_pull.pull,
    }
    actions[args.action](args)
    return 0


def _add_record(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("record", type=Path, metavar="FILE", help="PMU record")
    parser.add_argument(
        "--region",
        action="append",
        default=[],
        metavar="NAME|N",
        help=f"only this benchmark (lat_syscall.null), test (lat_syscall) or index; {SEVERAL}",
    )
    parser.add_argument("--context", action="append", choices=CONTEXTS, help=f"default: task and exception; {SEVERAL}")


def _show(args: argparse.Namespace) -> None:
    from kdyno.measure.guest.pmu_record import read_pmu_record
    from kdyno.profile.select import WORK, choose
    from kdyno.profile.show import print_tables, profile_view

    record = read_pmu_record(args.record)
    regions, contexts = choose(record, args.region), args.context or WORK
    if args.json:
        view = profile_view(record, regions, event=args.event, contexts=contexts, with_calls=args.calls, top=args.top)
        print_json(view.model_dump(mode="json"))
    else:
        print_tables(record, regions, event=args.event, contexts=contexts, with_calls=args.calls, top=args.top)


def _export(args: argparse.Namespace) -> None:
    from kdyno.base.files import require_writable, write_whole
    from kdyno.measure.guest.pmu_record import read_pmu_record
    from kdyno.profile.export import export
    from kdyno.profile.select import WORK, choose

    if args.output:
        require_writable(args.output)
    if args.format == ORDER:
        _export_order(args)
        return
    record = read_pmu_record(args.record)
    regions = choose(record, args.region)
    text = export(record, args.record, args.format, regions, args.context or WORK, args.vmlinux)
    if args.output:
        write_whole(args.output, text)
    else:
        data(text)


def _export_order(args: argparse.Namespace) -> None:
    from kdyno.base.files import write_whole
    from kdyno.kernel.recipe import ProfileSettings
    from kdyno.profile.export import VmlinuxNeeded
    from kdyno.profile.order import order_for

    if args.vmlinux is None:
        raise VmlinuxNeeded(form=ORDER, why="is of the functions of one vmlinux")
    lines = order_for([args.record], args.vmlinux, ProfileSettings()).decode()
    if args.output:
        write_whole(args.output, lines)
    else:
        data(lines)


def _cover(args: argparse.Namespace) -> None:
    from dataclasses import asdict

    from kdyno.base.files import require_writable
    from kdyno.measure.guest.pmu_record import read_pmu_record
    from kdyno.profile.coverage import cover
    from kdyno.profile.select import WORK, choose
    from kdyno.profile.show import print_coverage

    if args.output:
        require_writable(args.output)
    record = read_pmu_record(args.record)
    regions, contexts = choose(record, args.region), args.context or WORK
    coverage = cover(record, args.record, args.vmlinux, regions, contexts, args.output)
    if args.json:
        print_json(asdict(coverage))
    else:
        print_coverage(coverage)


def _record(args: argparse.Namespace) -> None:
    from kdyno.measure.workload.named import training_load
    from kdyno.runs.session import Session
    from kdyno.runs.single_boots import SingleBoots
    from kdyno.runs.subject import image_named

    state, talk = state_of(args), talk_of(args)
    with store_of(args) as store:
        record = SingleBoots(Session(state, store, talk)).record(
            image_named(args.image, state),
            training_load(tuple(args.tests.split(","))),
            args.output,
            seed=args.seed,
            events=args.events,
            family=args.family,
        )
    talk.say(f"{args.output}: {len(record.regions)} regions; `kdyno profile show {args.output}` lists them")
