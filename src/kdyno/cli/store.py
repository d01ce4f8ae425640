"""`kdyno store`"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.base import terminal
from kdyno.base.errors import UserError
from kdyno.base.state_marker import is_marked
from kdyno.base.text import format_count
from kdyno.cli.common import add_action, add_run, number_from, print_json, run_of, state_of, store_of, talk_of

if TYPE_CHECKING:
    from kdyno.base.state import State
    from kdyno.store.store import Store
    from kdyno.store.upkeep.model import PartUse, StoreUse
    from kdyno.store.url import Access

UNITS = ("B", "kB", "MB", "GB", "TB")


class NobodyToAsk(UserError):
    message = "nothing was removed: there is no terminal for the question"
    hint = "add --yes to remove without asking"


class NoState(UserError):
    message = "{path} is not a state directory of kdyno: nothing was removed"
    hint = "name the state directory with --state DIR or KDYNO_STATE"


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    gc = add_action(verbs, "gc", "list what uses space in the state directory, and remove what no run needs")
    gc.add_argument("--dry-run", action="store_true", help="only list what would be removed")
    gc.add_argument("--yes", action="store_true", help="remove without asking")
    gc.add_argument(
        "--older-than", type=number_from(0), default=0, metavar="DAYS", help="keep files that are younger (default: 0)"
    )
    _add_also(gc)
    gc.add_argument("--json", action="store_true", help="print the sizes as JSON; remove only with --yes")
    rm = add_action(verbs, "rm", "remove a run, with its boots and their files")
    add_run(rm)
    rm.add_argument("--yes", action="store_true", help="remove without asking")
    _add_also(rm)
    export = add_action(verbs, "export", "write a run, with its boots and their files, to one file")
    add_run(export)
    export.add_argument("file", type=Path, metavar="FILE", help="the file to write: run.kdyno")
    importing = add_action(verbs, "import", "import a run from an exported file")
    importing.add_argument("file", type=Path, metavar="FILE", help="the file")


def act(args: argparse.Namespace) -> int:
    actions = {"gc": _gc, "rm": _rm, "export": _export, "import": _import}
    actions[args.action](args)
    return 0


def _add_also(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--also",
        action="append",
        default=[],
        metavar="URL",
        help="another store with this state directory: keep what its runs need; may be given several times",
    )


@contextmanager
def _stores(args: argparse.Namespace, state: State, access: Access) -> Iterator[tuple[Store, list[Store]]]:
    """Open the named store, and the others whose runs need files here: that of the state directory, those of --also."""
    from kdyno.store.store import Store
    from kdyno.store.url import parse, sqlite_file

    with ExitStack() as stack:
        store = stack.enter_context(store_of(args, access))
        others = [stack.enter_context(Store(parse(named), "read")) for named in args.also]
        own = state.file("store.sqlite")
        if own.is_file() and not any(_is_same(one.where, own) for one in (store, *others)):
            others.append(stack.enter_context(Store(sqlite_file(own))))
        yield store, others


def _is_same(where: str, own: Path) -> bool:
    return Path(where).exists() and Path(where).samefile(own)


def _gc(args: argparse.Namespace) -> None:
    from kdyno.store.upkeep.gc import collect, look, use_of

    state, talk = state_of(args), talk_of(args)
    with _stores(args, state, "read" if args.dry_run else "change") as (store, others):
        if not is_marked(state.root):
            raise NoState(path=state.root)
        inventory = look(state, store, others, args.older_than)
        use = use_of(inventory, state, (store, *others), args.older_than, removed=False)
        if not args.json:
            _print_use(use)
        if use.may_go and not args.dry_run and (args.yes or _is_agreed(args, use)):
            collect(inventory, state, store, others, args.older_than)
            use = use.model_copy(update={"removed": True})
            talk.say(f"removed {_describe_unneeded(use)}")
    if args.json:
        print_json(use.model_dump(mode="json"))


def _is_agreed(args: argparse.Namespace, use: StoreUse) -> bool:
    if use.at_work or args.json:
        return False
    if not terminal.can_ask():
        terminal.line("nothing was removed; add --yes to remove it")
        return False
    return terminal.ask_agreement(f"remove {_describe_unneeded(use)}?")


def _describe_unneeded(use: StoreUse) -> str:
    return f"{format_count(use.may_go, 'thing')} that no run needs"


def _print_use(use: StoreUse) -> None:
    terminal.line(f"{use.state}, {format_count(use.runs, 'run')} in {' and '.join(use.stores)}")
    terminal.line(f"{'PART':<10} {'THINGS':>8} {'SIZE':>9} {'NOT NEEDED':>11} {'SIZE':>9}  WHAT")
    for part in use.parts:
        terminal.line(
            f"{part.part:<10} {part.things:>8,} {_size(part.bytes):>9} {part.unneeded:>11,} "
            f"{_size(part.unneeded_bytes):>9}  {part.holds}{_young(part)}"
        )
    total, going = (
        sum(sizes) for sizes in zip(*((p.bytes or 0, p.unneeded_bytes or 0) for p in use.parts), strict=True)
    )
    terminal.line(f"{'all':<10} {'':>8} {_size(total):>9} {'':>11} {_size(going):>9}")
    if use.at_work:
        terminal.line(f"another kdyno uses this directory ({', '.join(use.at_work)}): nothing is removed until it ends")
    if not use.may_go:
        terminal.line("nothing to remove")


def _young(part: PartUse) -> str:
    return f"; {part.young:,} too young to be removed" if part.young else ""


def _size(size: int | None) -> str:
    if size is None:
        return "-"
    amount, units = float(size), iter(UNITS)
    unit = next(units)
    while amount >= 999.5 and unit != UNITS[-1]:
        amount, unit = amount / 1000, next(units)
    return f"{amount:.3g} {unit}"


def _rm(args: argparse.Namespace) -> None:
    from kdyno.store.upkeep.runs import remove_run

    state = state_of(args)
    with _stores(args, state, "change") as (store, others):
        run = run_of(args, store, args.run)
        question = f"remove run {run.id} ({run.name}, {run.created:%Y-%m-%d %H:%M}) for good?"
        if not args.yes:
            if not terminal.can_ask():
                raise NobodyToAsk()
            if not terminal.ask_agreement(question):
                return
        boots = remove_run(run.id, state, store, others)
    terminal.line(f"removed run {run.id} ({run.name}), and {boots:,} boots that no other run has")


def _export(args: argparse.Namespace) -> None:
    from kdyno.base.files import require_writable
    from kdyno.store.upkeep.runs import export_run

    require_writable(args.file)
    state, talk = state_of(args), talk_of(args)
    with store_of(args, "read") as store:
        run_id = run_of(args, store, args.run).id
        missing = export_run(run_id, args.file, state, store)
    if missing:
        talk.warn(f"{len(missing):,} artefacts of run {run_id} are lost or damaged, and not in the exported file")
    terminal.line(f"{args.file}: run {run_id}, {_size(args.file.stat().st_size)}")


def _import(args: argparse.Namespace) -> None:
    from kdyno.judge.verdicts.selftest import SelfTest
    from kdyno.store.upkeep.runs import import_run

    state = state_of(args)
    with store_of(args) as store:
        imported = import_run(args.file, state, store, lambda record: SelfTest.model_validate(record).run)
    terminal.line(
        f"imported run {imported.run} ({imported.name}): {imported.boots:,} new boots, "
        f"{imported.artefacts:,} new artefacts"
    )
    terminal.line(f"measured on: {imported.host}")
    terminal.line(f"`kdyno report {imported.run}` judges it")
