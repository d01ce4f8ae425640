"""`kdyno doctor`"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from typing import TYPE_CHECKING

from kdyno.base import terminal
from kdyno.base.errors import UserError
from kdyno.cli.common import print_json, state_of, talk_of

if TYPE_CHECKING:
    from kdyno.boot.host.turn import Turned

MARKS = {"ok": "ok      ", "missing": "MISSING ", "optional": "optional"}


class SetWithoutHost(UserError):
    message = "--set and --restore require --host: they set the knobs of the host"
    hint = "run `kdyno doctor --host --set` or `kdyno doctor --host --restore`"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument(
        "--host",
        action="store_true",
        help="show the settings and states of this host that affect times in the wall lane",
    )
    parser.add_argument(
        "--install",
        action="store_true",
        help="install the packages that kdyno uses and that are missing here: print the command, and run it",
    )
    turn = parser.add_mutually_exclusive_group()
    turn.add_argument("--set", nargs="*", metavar="KNOB", help="with --host: set knobs for measuring (default: most)")
    turn.add_argument("--restore", action="store_true", help="with --host: restore the knobs that --set changed")


def act(args: argparse.Namespace) -> int:
    turning = args.set is not None or args.restore
    if turning and not args.host:
        raise SetWithoutHost()
    if turning:
        return _turn(args)
    if args.install:
        _install(args)
    return _host(args) if args.host else _needs(args)


def _install(args: argparse.Namespace) -> None:
    """Install what is missing. Nothing else of kdyno installs anything."""
    from kdyno.base.packages import lacking_packages
    from kdyno.understand.install import install_commands, run, shown

    if packages := lacking_packages():
        commands = install_commands(packages)
        terminal.tell(shown(commands))
        run(commands)
    else:
        talk_of(args).say("all packages that kdyno uses are installed")


def _needs(args: argparse.Namespace) -> int:
    from kdyno.understand.doctor import examine
    from kdyno.understand.install import advice

    findings = []
    for finding in examine(state_of(args)):
        findings.append(finding)
        if not args.json:
            terminal.line(f"{MARKS[finding.status]}  {finding.name:<26} {finding.detail}", flush=True)
            if finding.mend and finding.status != "ok":
                terminal.line(f"{'':38}fix: {finding.mend}")
    if args.json:
        print_json([asdict(finding) for finding in findings])
    missing = [finding.name for finding in findings if finding.status == "missing"]
    if not args.json:
        if command := advice():
            terminal.line(f"one command installs all that is missing, and `kdyno doctor --install` runs it: {command}")
        terminal.line(f"missing: {', '.join(missing)}" if missing else "kdyno can build, boot and measure here")
    return 3 if missing else 0


def _host(args: argparse.Namespace) -> int:
    from kdyno.boot.host.journal import journal_of_this_start
    from kdyno.boot.host.look import HostReport, examine_host
    from kdyno.boot.host.show import show_host

    facts = list(examine_host())
    journal = journal_of_this_start(state_of(args))
    if args.json:
        changed = journal.values if journal else {}
        print_json(HostReport(facts=tuple(facts), before_set=changed).model_dump(mode="json"))
    else:
        show_host(facts, journal, terminal.console())
    return 0


def _turn(args: argparse.Namespace) -> int:
    from kdyno.boot.host.show import show_turned
    from kdyno.boot.host.turn import restore_all, set_knobs

    turned = restore_all(state_of(args)) if args.restore else set_knobs(state_of(args), args.set)
    if args.json:
        print_json(turned.model_dump())
    else:
        show_turned(turned, terminal.console())
    talk_of(args).say(_outcome(turned, args.restore))
    return 3 if turned.refused else 0


def _outcome(turned: Turned, restored: bool) -> str:
    if turned.refused and os.geteuid() != 0:
        return "only root can set knobs: run the same command with sudo, with the same --state"
    if turned.refused:
        return "refused knobs are unchanged" if not restored else "refused knobs stay on record for --restore"
    if restored:
        return "every knob is restored" if turned.turns else "no knob was set from this state directory"
    if not turned.turns:
        return "every knob of this host is already set for measuring"
    return "`kdyno doctor --host --restore` restores the previous values"
