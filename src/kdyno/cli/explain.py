"""`kdyno explain`"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from kdyno.cli.common import add_run, number_from, print_json, run_of, state_of, store_of, talk_of
from kdyno.runs.session import Session

if TYPE_CHECKING:
    from kdyno.judge.verdicts.model import RunReport
    from kdyno.store.store import Store
    from kdyno.understand.explain.command import ExplainResult


def configure(parser: argparse.ArgumentParser) -> None:
    add_run(parser)
    parser.add_argument("variant", metavar="VARIANT", help="the variant to explain")
    parser.add_argument(
        "benchmark",
        nargs="?",
        metavar="BENCHMARK",
        help="one of its benchmarks, such as lat_syscall.null (--budget: default all)",
    )
    parser.add_argument("--budget", action="store_true", help="attribute the modelled cycles of both kernels to causes")
    parser.add_argument("--baseline", metavar="NAME", help="compare with this variant instead of the run's baseline")
    parser.add_argument("--events", choices=["edges", "all"], help="the events to count (default: all)")
    parser.add_argument("--family", metavar="NAME", help="CPU family to model and to boot (default: the run's)")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write the differential flame graph")
    parser.add_argument("--json", action="store_true", help="print the explanation as JSON")
    parser.add_argument(
        "--top", type=number_from(1), metavar="N", default=10, help="rows of each table (default: %(default)s)"
    )


def act(args: argparse.Namespace) -> int:
    from kdyno.understand.explain.command import Explained, ExplainRequest, NoBenchmark, explain_benchmark

    if args.budget:
        return _budget(args)
    if args.benchmark is None:
        raise NoBenchmark(run=args.run, variant=args.variant)
    state, talk = state_of(args), talk_of(args)
    with store_of(args, "change") as store:
        report = _report(args, store)
        request = ExplainRequest(args.variant, args.benchmark, args.events, args.family)
        result = explain_benchmark(report, request, session=Session(state, store, talk))
    if args.json:
        explained = Explained(verdict=result.comparison, explanation=result.explanation)
        print_json(explained.model_dump(mode="json"))
    else:
        _print(report, result, args.top)
    if args.svg:
        from kdyno.base.files import write_whole
        from kdyno.understand.explain.svg import Caption, flame_graph

        write_whole(args.svg, flame_graph(result.stacks, Caption.of(result.explanation)))
        talk.say(f"flame graph: {args.svg}")
    return 0


def _budget(args: argparse.Namespace) -> int:
    from kdyno.base.terminal import console
    from kdyno.understand.explain.budgets import NoGraphOfBudgets, explain_budgets
    from kdyno.understand.explain.terminal import render_budgets

    if args.svg:
        raise NoGraphOfBudgets()
    with store_of(args, "change") as store:
        budgets = explain_budgets(
            _report(args, store),
            args.variant,
            args.benchmark,
            events=args.events,
            family=args.family,
            session=Session(state_of(args), store, talk_of(args)),
        )
    if args.json:
        print_json(budgets.model_dump(mode="json"))
    else:
        render_budgets(budgets, console())
    return 0


def _report(args: argparse.Namespace, store: Store) -> RunReport:
    from kdyno.judge.verdicts.assemble import Rejudge, assemble
    from kdyno.store.artefacts import Artefacts

    artefacts = Artefacts(state_of(args).artefacts)
    return assemble(store, run_of(args, store, args.run).id, artefacts, Rejudge(args.baseline), analysed=False)


def _print(report: RunReport, result: ExplainResult, top: int) -> None:
    from kdyno.base.terminal import console
    from kdyno.judge.verdicts.rows import rows_of
    from kdyno.understand.explain.terminal import render

    [row] = (row for row in rows_of(report, result.explanation.variant) if row.name == result.explanation.benchmark)
    render(result.explanation, row, console(), top)
