"""The result of `kdyno tune delegation`: the plan as files, and the judgement as text."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from kdyno.base.files import write_whole
from kdyno.base.frozen import Frozen
from kdyno.base.text import clean, format_signed, percent
from kdyno.runs.experiment.tune import CompilerChoice
from kdyno.tune.delegation.delegation import plan_text, table_text
from kdyno.tune.delegation.found import Found
from kdyno.tune.delegation.judgement import JudgedRun, claim

NOTHING = (
    "no file gains more than its noise with any of the choices: the baseline stays as it is, and nothing is judged"
)


class Tuned(Frozen):
    """The whole outcome. `kdyno tune delegation --json` prints it."""

    unit: str
    """What costs are parts of: `modelled cycles`, or `time`."""
    caption: str
    """What they are, and the error of what is modelled."""
    found: Found
    judgements: tuple[JudgedRun, ...]
    """The judgements; empty if no file has a choice."""
    claim: str
    """The claim about the mixed kernel."""
    plan: str | None = None
    """The file of the plan; None if no file has a choice."""
    table: str | None = None


def outcome(result: Found, judgements: tuple[JudgedRun, ...], unit: str, caption: str) -> Tuned:
    """Return the whole outcome; costs are parts of the `unit`, which the `caption` explains."""
    sentence = claim(judgements) if judgements else NOTHING
    return Tuned(unit=unit, caption=caption, found=result, judgements=judgements, claim=sentence)


def write_plan(tuned: Tuned, choices: Mapping[str, CompilerChoice], plan: Path) -> Tuned:
    """Write the plan and its table, and return the outcome with their paths. Writes nothing without a choice."""
    if not tuned.found.files:
        return tuned
    table = plan.with_suffix(".csv")
    costs = {tuned_file.file: (tuned_file.cost_reference, tuned_file.cost_choice) for tuned_file in tuned.found.files}
    remarks = ["Made by `kdyno tune delegation`.", *tuned.caption.splitlines(), clean(tuned.claim)]
    write_whole(table, table_text(tuned.found.assignment, choices, costs))
    write_whole(plan, plan_text(table.name, remarks))
    return tuned.model_copy(update={"plan": str(plan), "table": str(table)})


def lines(tuned: Tuned, top: int) -> list[str]:
    """Return the lines for a terminal: the `top` files that save most, dropped choices, judgements, and claim."""
    result = tuned.found
    rows = [
        f"{tuned_file.file:<40} {tuned_file.choice:<16} {percent(tuned_file.cost_reference):>6} % "
        f"{format_signed(tuned_file.cost_choice - tuned_file.cost_reference):>7} %"
        for tuned_file in result.files[:top]
    ]
    head = [f"{'file':<40} {'choice':<16} {'before':>8} {'change':>9}  of all {tuned.unit}", *rows] if rows else []
    more = [f"... and {len(result.files) - top:,} more"] if len(result.files) > top else []
    noise = "" if result.noise is None else f", of which {percent(result.noise)} % may be chance"
    summary = [
        tuned.caption,
        f"{result.kernels:,} kernels measured; "
        f"{result.hot:,} hot files take {percent(result.hot_share)} % of all {tuned.unit}; "
        f"{len(result.files):,} of them get a choice, which saved {percent(result.gain)} % in the trials{noise}",
    ]
    dropped = [
        f"dropped: {file}: {', '.join(choices)} cost others what it saved" for file, choices in result.dropped.items()
    ]
    failures = [f"left out: {clean(failure)}" for failure in result.failures]
    return [*summary, *head, *more, *dropped, *failures, *_judgement_lines(tuned), tuned.claim]


def _judgement_lines(tuned: Tuned) -> list[str]:
    sentences = []
    for judgement in tuned.judgements:
        sentences.append(
            f"judged on the workload {judgement.workload}, run {judgement.run} (`kdyno report {judgement.run}`)"
        )
        sentences += [
            f"  against {comparison.variant}: {clean(comparison.sentence)}" for comparison in judgement.against
        ]
        sentences += [f"  {variant} never ran: {clean(reason)}" for variant, reason in judgement.unjudged.items()]
    return sentences
