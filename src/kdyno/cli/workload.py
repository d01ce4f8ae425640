"""`kdyno workload`"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from kdyno.base import terminal
from kdyno.base.lanes import GUEST_LANES, LANES, TIMED_LANE
from kdyno.cli.common import add_common, print_json, state_of, talk_of

if TYPE_CHECKING:
    from kdyno.boot.base import MachineSettings
    from kdyno.runs.trial import WorkloadTrial

OUTPUT_SHOWN = 20
"""The most lines of output to print of a step."""
PATIENCE = 7200.0
"""The time limit of a guest, and of its silence, in seconds: a compiler prints nothing while it succeeds."""


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="WHAT", required=True)
    listing = verbs.add_parser("list", help="kdyno's own workloads", description="Kdyno's own workloads.")
    listing.add_argument("--json", action="store_true", help="print complete definitions as JSON")
    listing.set_defaults(do=_list)
    show = verbs.add_parser("show", help="print the file of a workload", description="Print the file of a workload.")
    show.add_argument("name", help="name of one of kdyno's workloads, or a file")
    show.set_defaults(do=_show)
    trial = verbs.add_parser(
        "try",
        help="run a workload once, and print its output and the values read from it",
        description="Run a workload once, on this host or in a guest, and print the values read from its output.",
    )
    trial.add_argument("name", help="name of one of kdyno's workloads, or a file")
    trial.add_argument(
        "--kernel",
        help="run it in a guest with this kernel: a bzImage, a kernel build directory, or the key of an image",
    )
    trial.add_argument(
        "--lane", choices=GUEST_LANES, default=TIMED_LANE.name, help="clock of the guest (default: %(default)s)"
    )
    trial.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="set a parameter to VALUE")
    trial.add_argument("--json", action="store_true", help="print everything as JSON")
    trial.set_defaults(do=_try)
    for verb in (listing, show, trial):
        add_common(verb)


def act(args: argparse.Namespace) -> int:
    return int(args.do(args))


def _list(args: argparse.Namespace) -> int:
    from kdyno.measure.workload.definition import definition, own_names

    workloads = [definition(name) for name in own_names()]
    if args.json:
        print_json([workload.model_dump(mode="json") for workload in workloads])
        return 0
    for workload in workloads:
        lanes = "" if set(workload.lanes) == set(LANES) else f" (lane {', '.join(workload.lanes)})"
        terminal.data(f"{workload.name:<16} {workload.description}{lanes}\n")
    return 0


def _show(args: argparse.Namespace) -> int:
    from kdyno.measure.workload.definition import definition, text_of

    definition(args.name)  # an unusable workload raises instead of being printed
    terminal.data(text_of(args.name)[0])
    return 0


def _try(args: argparse.Namespace) -> int:
    from kdyno.boot.base import BootLimits
    from kdyno.boot.registry import default_machine, host_machine
    from kdyno.measure.workload.definition import definition
    from kdyno.measure.workload.named import assigned
    from kdyno.runs.bootone import find_kernel
    from kdyno.runs.trial import try_workload

    state, talk = state_of(args), talk_of(args)
    workload = definition(args.name)
    kernel = find_kernel(args.kernel, state) if args.kernel else None
    settings: MachineSettings = (
        default_machine(lane=args.lane, limits=BootLimits(silence=PATIENCE, total=PATIENCE))
        if kernel
        else host_machine()
    )
    trial = try_workload(workload, assigned(args.set, workload), settings, kernel, state=state, talk=talk)
    if args.json:
        print_json(trial.model_dump(mode="json"))
    else:
        _print(trial)
    return 0 if trial.ok else 2


def _print(trial: WorkloadTrial) -> None:
    for step in trial.steps:
        ended = "never ended" if step.status is None else f"status {step.status}"
        name = f"{step.phase} {step.run}" if step.phase in ("command", "report") else step.phase
        times = f"{step.elapsed:.3f} s, user {step.user:.3f} s, system {step.system:.3f} s"
        terminal.data(f"{name}: {ended}, {times}\n")
        lines = step.output.splitlines()
        for line in lines[:OUTPUT_SHOWN]:
            terminal.data(f"  | {line}\n")
        if len(lines) > OUTPUT_SHOWN:
            terminal.data(f"  | ... and {len(lines) - OUTPUT_SHOWN:,} more lines\n")
    if trial.left_processes:
        terminal.data(f"it left {trial.left_processes} processes running, which were killed\n")
    if trial.reason:
        terminal.data(f"failed: {trial.reason}\n")
    for name, metric in trial.metrics.items():
        values = ", ".join(f"{value:g}" for value in metric.values)
        summary = (
            metric.broken or "no values" if not values else f"{values} {metric.unit}, {metric.direction} is better"
        )
        terminal.data(f"{trial.workload}.{name}: {summary}\n")
