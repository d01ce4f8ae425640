"""`kdyno tune`"""

from __future__ import annotations

import argparse
from pathlib import Path

from kdyno.base.terminal import line
from kdyno.cli import exit_codes
from kdyno.cli.common import add_action, number_from, print_json, state_of, store_of, talk_of
from kdyno.runs.session import Session


def configure(parser: argparse.ArgumentParser) -> None:
    verbs = parser.add_subparsers(metavar="ACTION", dest="action", required=True)
    space = add_action(
        verbs,
        "space",
        "find the recipe of a space that makes the fastest kernel; the word `space` may be left out",
    )
    space.add_argument("experiment", type=Path, metavar="SPACE", help="experiment file with a table [space]")
    space.add_argument("--dry-run", action="store_true", help="print the size of the space and a forecast, and end")
    space.add_argument("--no-confirm", action="store_true", help="don't measure the best recipe again")
    space.add_argument("--html", type=Path, metavar="FILE", help="write a report with pictures")
    space.add_argument("--json", action="store_true", help="print the results as JSON")
    space.add_argument(
        "--top", type=number_from(1), metavar="N", default=20, help="number of recipes to list (default: %(default)s)"
    )
    space.set_defaults(search=_search_space)
    delegation = add_action(
        verbs,
        "delegation",
        "find the compiler and flags with which each hot file takes the least time, or modelled cycles",
    )
    delegation.add_argument("experiment", type=Path, metavar="EXPERIMENT", help="experiment file with a table [tune]")
    delegation.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        default=Path("delegation.toml"),
        help="the plan to write; its table is written to the same name with .csv (default: %(default)s)",
    )
    delegation.add_argument("--json", action="store_true", help="print the results as JSON")
    delegation.add_argument(
        "--top", type=number_from(1), metavar="N", default=20, help="number of files to list (default: %(default)s)"
    )
    delegation.set_defaults(search=_search_delegation)


def act(args: argparse.Namespace) -> int:
    status: int = args.search(args)
    return status


def _search_space(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable
    from kdyno.tune.space.show import lines
    from kdyno.tune.space.tune import ahead_lines, carry_out, forecast_search, open_search

    if args.html:
        require_writable(args.html)
    with store_of(args) as store:
        search = open_search(args.experiment, Session(state_of(args), store, talk_of(args)))
        if args.dry_run:
            for text in ahead_lines(search, forecast_search(search)):
                line(text)
            return exit_codes.DONE
        result = carry_out(search, args.experiment, confirm=not args.no_confirm)
    if args.html:
        from kdyno.report.search_html import write_html

        write_html(result, args.html)
    if args.json:
        print_json(result.model_dump(mode="json"))
    else:
        for text in lines(result, args.top):
            line(text)
    return exit_codes.DONE


def _search_delegation(args: argparse.Namespace) -> int:
    from kdyno.base.files import require_writable
    from kdyno.runs.experiment.resolve import load_tuning
    from kdyno.tune.delegation.tune import check_tuning, judge_mixed, search_files
    from kdyno.tune.delegation.tuned import lines, outcome, write_plan

    tuning = check_tuning(*load_tuning(args.experiment))
    for path in (args.output, args.output.with_suffix(".csv")):
        require_writable(path)
    state, talk = state_of(args), talk_of(args)
    with store_of(args) as store:
        result = search_files(tuning, Session(state, store, talk))
        judgements, is_lost = judge_mixed(tuning, result, Session(state, store, talk)) if result.files else ([], False)
    tuned = outcome(result, tuple(judgements), tuning.unit, tuning.caption)
    tuned = write_plan(tuned, tuning.config.choices, args.output)
    if args.json:
        print_json(tuned.model_dump(mode="json"))
    else:
        for text in lines(tuned, args.top):
            line(text)
    if tuned.plan:
        talk.say(f"plan: {tuned.plan}, table: {tuned.table}")
    if is_lost:
        talk.warn("boots were lost: run the same command to try them again")
    return exit_codes.LOST if is_lost else exit_codes.DONE
