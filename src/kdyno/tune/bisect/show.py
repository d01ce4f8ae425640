"""A bisection as text: for a terminal, for a mail, and as a script that repeats it with `git bisect run`. Pure."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Sequence

from kdyno.base.errors import UserError
from kdyno.base.text import clean, format_count, format_list, percent
from kdyno.tune.bisect.model import BisectCulprit, Bisection, BisectKernel
from kdyno.tune.bisect.order import BisectOrder
from kdyno.tune.bisect.ranges import CommitRange, PatchRange
from kdyno.tune.bisect.result import effect_text

WIDTH = 75
"""The width of a mail."""
NEARLY_CERTAIN = 0.999
MOST_BENCHMARKS = 10
"""The most benchmarks whose effects are listed."""
MOST_CHANGES = 20
"""The most changes of a set that are listed."""


def lines(result: Bisection) -> list[str]:
    """Return the lines for a terminal: the tried kernels, the culprits with their checks, and the result."""
    head = [
        f"{result.named}: {format_count(result.steps, 'step')}, {_what(result)}, lane {result.lane}",
        f"{format_count(result.builds, 'kernel')}, {format_count(result.boots, 'boot')}",
        *_luck_lines(result),
        *(f"{result.bad} in {one.name}: {effect_text(one.effect)}" for one in result.by_benchmark[:MOST_BENCHMARKS]),
        "",
        *_kernel_lines(result.kernels),
        "",
    ]
    body = [line for culprit in result.culprits for line in [*culprit_lines(culprit, result), ""]]
    remaining = _candidate_lines(result)
    lost = [f"set at the good end only: {clean(format_list(result.lost_config, 6))}"] if result.lost_config else []
    advice = [result.advice] if result.advice else []
    return [*head, *body, *remaining, *lost, clean(result.sentence), *advice]


def _luck_lines(result: Bisection) -> list[str]:
    """Return how much the measurements vary, if they do."""
    parts = [
        f"{percent(size)} % {what}"
        for size, what in ((result.luck, "between link orders of a kernel"), (result.noise, "between blocks of boots"))
        if size
    ]
    return [f"standard deviations: {', '.join(parts)}"] if parts else []


def _what(result: Bisection) -> str:
    names = format_list(result.benchmarks, 3)
    return f"mean of {names}" if len(result.benchmarks) > 1 else names


def _kernel_lines(kernels: Sequence[BisectKernel]) -> list[str]:
    name = max(len(kernel.name) for kernel in kernels)
    place = max(len(f"{kernel.state:,}") for kernel in kernels)
    rows = []
    for kernel in kernels:
        effect = effect_text(kernel.effect) if kernel.effect else ""
        note = f": {clean(kernel.reason)}" if kernel.reason else ""
        title = "" if note else clean(kernel.title)
        rows.append(f"{kernel.state:>{place},}  {kernel.name:<{name}}  {effect:<26} {kernel.answer}{note}  {title}")
    return [row.rstrip() for row in rows]


def culprit_lines(culprit: BisectCulprit, result: Bisection) -> list[str]:
    """Return the lines on one culprit."""
    if len(culprit.changes) == 1:
        [change] = culprit.changes
        first = f"step {change.step:,}: {change.name} {clean(change.title)}"
    else:
        first = f"one of {format_count(len(culprit.changes), 'step')}, between which no kernel could be tested:"
    rest = [f"  {change.name} {clean(change.title)}" for change in culprit.changes[:MOST_CHANGES]]
    more = [f"  and {len(culprit.changes) - MOST_CHANGES:,} more"] if len(culprit.changes) > MOST_CHANGES else []
    config = [f"  configuration: {clean(change)}" for change in culprit.config]
    run = [f"  why: kdyno explain {culprit.run} {culprit.after} {result.benchmarks[0]}"] if culprit.run else []
    advice = [f"  {culprit.advice}"] if culprit.advice else []
    return [
        first,
        *(rest + more if len(culprit.changes) > 1 else []),
        *(f"  {text}" for text in _check_lines(culprit)),
        *config,
        *run,
        *advice,
    ]


def _check_lines(culprit: BisectCulprit) -> list[str]:
    if culprit.check is None:
        return [f"probability {100 * culprit.probability:.1f} %; not checked: in other link orders it can't be tested"]
    is_part = culprit.confirmed and culprit.share is not None
    share = f", {100 * (culprit.share or 0):.0f} % of the range" if is_part else ""
    orders = f" and {format_count(culprit.layouts, 'link order')}" if culprit.layouts else ""
    word = "confirmed" if culprit.confirmed else "not confirmed"
    return [
        f"probability {_probability(culprit.probability)} before the check",
        f"{culprit.after} against {culprit.before}: {effect_text(culprit.check)}{share}",
        f"{word} in {format_count(culprit.check.blocks, 'new block')}{orders}",
        *_revert_lines(culprit),
    ]


def _probability(part: float) -> str:
    """Return `97.2 %`; all but certain is not 100 %."""
    return f"{100 * part:.1f} %" if part < NEARLY_CERTAIN else f"> {100 * NEARLY_CERTAIN:.1f} %"


def _revert_lines(culprit: BisectCulprit) -> list[str]:
    if culprit.revert:
        return [f"reverted on top of the bad end: {effect_text(culprit.revert)}"]
    return [f"not reverted on top of the bad end: {clean(culprit.revert_reason)}"] if culprit.revert_reason else []


def _candidate_lines(result: Bisection) -> list[str]:
    if not result.candidates:
        return []
    head = "the rest of the effect" if any(culprit.confirmed for culprit in result.culprits) else "the culprit"
    rows = [f"  {change.name} {clean(change.title)}" for change in result.candidates[:MOST_CHANGES]]
    more = [f"  and {len(result.candidates) - MOST_CHANGES:,} more"] if len(result.candidates) > MOST_CHANGES else []
    intro = f"{head} is in {format_count(len(result.candidates), 'step')} with {100 * result.probability:g} %:"
    return [intro, *rows, *more, ""]


# For a mail.


def mail(result: Bisection) -> str:
    """Return a report to paste into a mail to the list of the kernel's developers; a culprit must be confirmed."""
    culprits = [culprit for culprit in result.culprits if culprit.confirmed]
    assert culprits and result.range
    size = effect_text(result.range)
    subject = f"{result.benchmarks[0]} {size.split(' (')[0]}"
    if len(culprits[0].changes) == 1:
        change = culprits[0].changes[0]
        subject += f' by {change.name} ("{clean(change.title)}")'
    else:
        subject += f" between {result.good} and {result.bad}"
    intro = (
        f"kdyno bisected a change for the {'better' if result.better else 'worse'} in {_what(result)} between "
        f"{result.good} and {result.bad} ({format_count(result.steps, 'step')}): {size}; {result.sentence}."
    )
    orders = " and link orders" if any(culprit.layouts for culprit in culprits) else ""
    how = (
        f"Lane {result.lane}, machine {result.machine}, {result.kernel}. {format_count(result.builds, 'kernel')} were "
        f"tried, with {format_count(result.boots, 'boot')}. Effects are against {result.good}, with 95 % intervals. A "
        f"culprit is named at a probability of {100 * result.probability:g} %, and then measured against its parent in "
        f"boots{orders} that the search didn't use."
    )
    regzbot = (
        ["", f"#regzbot introduced: {culprits[0].changes[0].name}"]
        if result.kind == "commits" and len(culprits[0].changes) == 1 and not result.better
        else []
    )
    parts = [
        f"Subject: [REGRESSION] {subject}" if not result.better else f"Subject: {subject}",
        "",
        *textwrap.wrap(clean(intro), WIDTH, break_on_hyphens=False),
        "",
        *(line for culprit in culprits for line in [*culprit_lines(culprit, result), ""]),
        *_kernel_lines(result.kernels),
        "",
        *textwrap.wrap(clean(how), WIDTH, break_on_hyphens=False),
        "",
        "To repeat it:",
        "",
        f"    {result.command}",
        *regzbot,
    ]
    return "\n".join(parts) + "\n"


# As a script.


class NoScript(UserError):
    message = "`git bisect run kdyno ab` can't repeat this bisection: {why}"
    hint = "leave --script out: `kdyno bisect --json` has the command that repeats the bisection"


SCRIPT_HEAD = """\
#!/bin/sh
# Repeats the bisection of {named} by `git bisect run`, which takes undecided for good.
# Made by `kdyno bisect`; needs git and kdyno.
set -eu
"""


def script(order: BisectOrder) -> str:
    """Return a shell script that repeats a bisection with `git bisect run kdyno ab`. Raises NoScript."""
    if order.better:
        raise NoScript(why="it finds only what made a benchmark worse")
    head = SCRIPT_HEAD.format(named=clean(order.kernels.named))
    match order.kernels:
        case CommitRange() as kernels:
            return head + _commit_script(order, kernels)
        case PatchRange() as kernels:
            return head + _patch_script(order, kernels)
    raise NoScript(why=f"{order.kernels.kind} are not commits")


def _ab(order: BisectOrder, good: str, other: str) -> str:
    """Return the command of one step; `good` and `other` are words of the shell."""
    options, settings = order.options, order.settings
    words = ["kdyno", "ab", good, other]
    for name, value in (
        ("-t", ",".join(options.tests)),
        ("--source", options.source),
        ("--config", options.config),
        ("--lane", options.lane),
        ("--machine", options.machine),
    ):
        words += [name, shlex.quote(value)] if value else []
    benchmarks = " ".join(map(shlex.quote, order.benchmarks))
    margin = f"--blocks {settings.blocks} --margin {settings.margin:g} --fail-on-regression {benchmarks}"
    return " ".join([*words, margin]).strip()


def _commit_script(order: BisectOrder, kernels: CommitRange) -> str:
    good, bad = kernels.commits[0].sha, kernels.commits[-1].sha
    recipe = f",{order.recipe}" if order.recipe else ""
    sides = [shlex.quote(f"git:{kernels.repository}#{revision}{recipe}") for revision in (good, "HEAD")]
    return (
        f"cd {shlex.quote(str(kernels.repository))}\n"
        f"git bisect start --first-parent {bad} {good}\n"
        f"git bisect run {_ab(order, *sides)}\n"
        "git bisect reset\n"
    )


def _patch_script(order: BisectOrder, kernels: PatchRange) -> str:
    base = order.recipe or "plain"
    recipe = f"{order.recipe}," if order.recipe else ""
    paths = "\n".join(f"    {shlex.quote(str(path))} \\" for path in kernels.patches)
    other = f'"{recipe}$(cat recipe)"'
    return (
        "# Each commit of this repository is the recipe with one more patch.\n"
        "directory=$(mktemp -d)\n"
        'cd "$directory"\n'
        "git init --quiet\n"
        "git config user.name kdyno\n"
        "git config user.email kdyno@localhost\n"
        f"echo {shlex.quote(base)} > recipe\n"
        "git add recipe\n"
        "git commit --quiet -m unpatched\n"
        "git tag good\n"
        ": > recipe\n"
        "for patch in \\\n"
        f"{paths}\n"
        "; do\n"
        "    if test -s recipe; then printf , >> recipe; fi\n"
        '    printf \'patches="%s"\' "$patch" >> recipe\n'
        '    git commit --quiet -a -m "$patch"\n'
        "done\n"
        "git bisect start HEAD good\n"
        f"git bisect run sh -c {shlex.quote(_ab(order, shlex.quote(base), other))}\n"
    )
