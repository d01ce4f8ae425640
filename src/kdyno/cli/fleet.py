"""`kdyno fleet`"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

from kdyno.base import terminal
from kdyno.base.extras import require_extra
from kdyno.base.text import format_count
from kdyno.cli import exit_codes
from kdyno.cli.common import add_action, number_from, state_of, store_of, talk_of

PORT = 8786
BLOB_DAYS = 30
CHECK_BLOCKS = 12


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    init = add_action(verbs, "init", "make the directory of a fleet: its certificates, its settings, its queue")
    _add_directory(init)
    init.add_argument(
        "--database",
        required=True,
        metavar="URL",
        help="the PostgreSQL database of the queue: postgresql://USER@HOST/NAME, or @FILE with such a URL",
    )
    init.add_argument(
        "--blobs", required=True, metavar="URL", help="where files are exchanged: a directory, or s3://BUCKET/PREFIX"
    )
    init.add_argument(
        "--scheduler",
        default=f"127.0.0.1:{PORT}",
        metavar="HOST:PORT",
        help=f"where clients and workers reach the scheduler (default: 127.0.0.1:{PORT})",
    )
    init.add_argument(
        "--lease",
        type=number_from(1, 3600),
        default=30,
        metavar="SECONDS",
        help="after so long a silence a worker loses its tasks (default: 30)",
    )
    migrate = add_action(verbs, "migrate", "bring the queue's tables to the version of this kdyno")
    _add_directory(migrate)
    scheduler = add_action(verbs, "scheduler", "run the scheduler, until a signal")
    _add_directory(scheduler)
    scheduler.add_argument(
        "--listen", metavar="HOST:PORT", help="the address to listen on (default: the port of the fleet, on loopback)"
    )
    scheduler.add_argument(
        "--dashboard", metavar="HOST:PORT", help="also serve Dask's dashboard there, without TLS (default: none)"
    )
    workers = add_action(verbs, "workers", "list the workers, and what they offer")
    _add_directory(workers)
    release = add_action(verbs, "release", "lift the quarantine of an image whose boots ended workers")
    _add_directory(release)
    release.add_argument("subject", metavar="IMAGE", help="what is quarantined, as `kdyno fleet workers` prints it")

    check = add_action(verbs, "check", "measure one kernel under two names on each host of the wall lane")
    _add_directory(check)
    check.add_argument(
        "experiment", type=Path, metavar="EXPERIMENT", help="its baseline, workload and machine are used"
    )
    check.add_argument("--host", action="append", metavar="NAME", help="only this one; may be repeated (default: all)")
    check.add_argument(
        "--blocks",
        type=number_from(2, 10_000),
        default=CHECK_BLOCKS,
        metavar="N",
        help="blocks of two boots on each host (default: %(default)s)",
    )

    gc = add_action(verbs, "gc", "remove files from the blob store that no task on record needs")
    _add_directory(gc)
    gc.add_argument(
        "--older-than",
        type=number_from(0),
        default=BLOB_DAYS,
        metavar="DAYS",
        help="keep files that are younger (default: %(default)s)",
    )
    gc.add_argument("--dry-run", action="store_true", help="print what would be removed")


def act(args: argparse.Namespace) -> int:
    require_extra("fleet")
    actions: dict[str, Callable[[argparse.Namespace], int | None]] = {
        "init": _init,
        "migrate": _migrate,
        "scheduler": _scheduler,
        "workers": _workers,
        "release": _release,
        "check": _check,
        "gc": _gc,
    }
    return actions[args.action](args) or exit_codes.DONE


def _add_directory(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, metavar="DIR", help="the directory of the fleet")


def _init(args: argparse.Namespace) -> None:
    from kdyno.fleet.init import init_fleet

    fleet = init_fleet(
        args.directory,
        database=args.database,
        blobs=args.blobs,
        scheduler=f"tls://{args.scheduler}",
        lease_seconds=args.lease,
    )
    terminal.data(f"{args.directory}: fleet {fleet.file.id}\n")
    talk = talk_of(args)
    talk.say(f"next: kdyno fleet scheduler {args.directory}; kdyno worker {args.directory}")
    talk.say("keep ca.key; copy fleet.toml, ca.pem, worker.pem and worker.key to each host with a worker")


def _migrate(args: argparse.Namespace) -> None:
    from kdyno.fleet.fleet_file import read_fleet

    fleet = read_fleet(args.directory)
    with fleet.queue() as queue:
        queue.migrate(fleet.file.id)


def _scheduler(args: argparse.Namespace) -> None:
    from kdyno.fleet.fleet_file import read_fleet
    from kdyno.fleet.serve import serve_scheduler

    fleet = read_fleet(args.directory)
    listen = args.listen or f"127.0.0.1:{fleet.file.scheduler.rpartition(':')[2]}"
    serve_scheduler(fleet, talk_of(args), listen=listen, dashboard=args.dashboard)


def _check(args: argparse.Namespace) -> int:
    from kdyno.fleet.carrier import FleetCarrier
    from kdyno.fleet.connection import FleetConnection
    from kdyno.fleet.errors import NothingToCheck
    from kdyno.fleet.fleet_file import read_fleet
    from kdyno.runs.experiment.resolve import read_experiment
    from kdyno.runs.session import Session
    from kdyno.understand.host_check import check_host

    experiment, talk = read_experiment(args.experiment), talk_of(args)
    has_failed = False
    with store_of(args) as store, FleetConnection(read_fleet(args.directory)) as connection:
        workers = FleetCarrier(connection, talk).workers()
        hosts = sorted({worker.host for worker in workers if worker.offer.slots.get("boot-wall")})
        if missing := sorted(set(args.host or ()) - set(hosts)):
            raise NothingToCheck(on=f" on {', '.join(missing)}")
        if not hosts:
            raise NothingToCheck(on="")
        for host in dict.fromkeys(args.host or hosts):
            session = Session(state_of(args), store, talk, FleetCarrier(connection, talk, host))
            verdict = check_host(experiment, host, args.blocks, session)
            connection.queue.note_check(host, passed=verdict.passed, detail=verdict.detail)
            terminal.data(f"{host}: {'passed' if verdict.passed else 'failed'}: {verdict.detail}\n")
            has_failed |= not verdict.passed
    return exit_codes.REGRESSION if has_failed else exit_codes.DONE


def _workers(args: argparse.Namespace) -> None:
    from kdyno.fleet.fleet_file import read_fleet

    fleet = read_fleet(args.directory)
    with fleet.queue() as queue:
        queue.require_current(fleet.file.id)
        checks = queue.checks()
        for worker in queue.workers():
            offer = worker.offer
            slots = ", ".join(f"{count} {kind}" for kind, count in offer.slots.items() if count)
            has = "KVM" if offer.kvm else "no KVM"
            terminal.data(
                f"{worker.name} on {worker.host}: {slots}; {offer.cpu or 'CPU unknown'}"
                f"{f' ({offer.family})' if offer.family else ''}, {has}, {offer.memory_mb:,} MB of memory, "
                f"{offer.disk_mb:,} MB of disk; kdyno {worker.package}\n"
            )
            if check := checks.get(worker.host):
                how = "passed" if check.passed else "failed"
                terminal.data(f"  A/A of {check.checked:%Y-%m-%d} {how}: {check.detail}\n")
        for subject, reason in queue.quarantined().items():
            terminal.data(f"{subject} is {reason}\n")


def _release(args: argparse.Namespace) -> None:
    from kdyno.fleet.errors import NotQuarantined
    from kdyno.fleet.fleet_file import read_fleet

    fleet = read_fleet(args.directory)
    with fleet.queue() as queue:
        queue.require_current(fleet.file.id)
        named = [subject for subject in queue.quarantined() if subject.startswith(args.subject)]
        if len(named) != 1:
            raise NotQuarantined(subject=args.subject)
        queue.release(named[0])


def _gc(args: argparse.Namespace) -> None:
    from kdyno.fleet.cleanup import clean_up
    from kdyno.fleet.fleet_file import read_fleet

    fleet = read_fleet(args.directory)
    with fleet.queue() as queue:
        queue.require_current(fleet.file.id)
        done = clean_up(queue, fleet.blobs(), args.older_than, dry_run=args.dry_run)
    verb = "would remove" if args.dry_run else "removed"
    terminal.data(
        f"{verb} {format_count(done.removed, 'file')} of {done.removed_bytes / 1e6:,.1f} MB; "
        f"{format_count(done.kept, 'file')} stay\n"
    )
