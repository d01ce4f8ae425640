"""Helpers for the arguments that several verbs share."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kdyno.base import terminal
from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.text import harmless_json

if TYPE_CHECKING:
    from pathlib import Path

    from kdyno.measure.cycles.family import Family, FamilyFile
    from kdyno.store.records import RunRecord
    from kdyno.store.store import Store
    from kdyno.store.url import Access, StoreUrl


def state_of(args: argparse.Namespace) -> State:
    return State(args.state) if args.state else State.default()


def talk_of(args: argparse.Namespace) -> Talk:
    return Talk(args.quiet, plain=bool(getattr(args, "json", False)), build_output=getattr(args, "show_build", False))


def store_of(args: argparse.Namespace, access: Access = "make") -> Store:
    """Open the named store, or the one in the state directory."""
    from kdyno.store.store import Store

    return Store(*store_url_of(args, access))


def store_url_of(args: argparse.Namespace, access: Access) -> tuple[StoreUrl, Access]:
    """Return the store of the command line, else of the environment, else of the state directory."""
    from kdyno.store.url import store_url

    return store_url(args.store, state_of(args), access)


def family_name(output: Path, family: Family) -> str:
    """Return the name of a CPU family that is written to a file: the file's, if it can be one."""
    return output.stem if re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,59}", output.stem) else family.name


def write_family(args: argparse.Namespace, family: FamilyFile) -> None:
    """Write a CPU family to the file of `--output`."""
    from kdyno.base.files import write_whole
    from kdyno.measure.cycles.calibrate import format_toml

    write_whole(args.output, format_toml(family))
    talk_of(args).say(f'wrote {args.output}; use it as family = "file:{args.output}"')


def print_json(value: Any) -> None:
    terminal.data(f"{harmless_json(json.dumps(value, indent=2, ensure_ascii=False))}\n")


def number_from(low: int, high: int = 2**31 - 1) -> Callable[[str], int]:
    """Return the argparse type of a whole number from `low` to `high`."""

    def number(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from {low} to {high}")
        return int(text)

    return number


def fraction(text: str) -> float:
    """Parse an argument between 0 and 1, exclusively."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a fraction between 0 and 1")
    return number


def words(text: str) -> list[str]:
    """Parse an argument with commas between its words."""
    return [word for word in text.split(",") if word]


def add_common(parser: argparse.ArgumentParser) -> None:
    """Add the options that every verb has."""
    from pathlib import Path

    group = parser.add_argument_group("everywhere")
    group.add_argument("--state", type=Path, metavar="DIR", help="state directory (else KDYNO_STATE, XDG_STATE_HOME)")
    group.add_argument(
        "--store",
        metavar="URL",
        help="database: sqlite:///FILE, postgresql://USER@HOST/NAME, or @FILE with such a URL (else KDYNO_STORE)",
    )
    group.add_argument("-q", "--quiet", action="store_true", help="no progress on stderr")
    group.add_argument("-v", "--verbose", action="store_true", help="print every command that kdyno runs")


def add_action(
    verbs: argparse._SubParsersAction[argparse.ArgumentParser], name: str, summary: str
) -> argparse.ArgumentParser:
    """Add one action of a verb with several actions."""
    # The default of an omitted option must not override a value given before the action's name.
    about = f"{summary[0].upper()}{summary[1:]}."
    parser = verbs.add_parser(name, help=summary, description=about, argument_default=argparse.SUPPRESS)
    add_common(parser)
    parser.argument_default = None
    return parser


def add_run(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run", metavar="RUN", help="id of a run, or the beginning of it; `latest` is the newest run")


def run_of(args: argparse.Namespace, store: Store, named: str) -> RunRecord:
    """Return the run that the argument RUN names."""
    from kdyno.runs.subject import find_run

    return find_run(named, state_of(args), store)
