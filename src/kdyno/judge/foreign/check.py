"""Checking published results against the data: means and standard deviations, and the statistics of pairs."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kdyno.base.text import format_list
from kdyno.judge.foreign.gathered import Gathered
from kdyno.judge.stats.checks.published import (
    Groups,
    Printed,
    PrintedGroup,
    PublishedGroup,
    check_pair,
    fitting,
    group_of,
    summary_errors,
)
from kdyno.judge.stats.observations import Observations, ReplicateSample
from kdyno.measure.readers import units
from kdyno.measure.readers.claims import MOST_CLAIMS, Claim, match_name, read
from kdyno.measure.readers.errors import (
    MaybeRows,
    MaybeWide,
    MixedUnits,
    NoClaim,
    NotAMeasurement,
    OnlyStatistics,
    TooLarge,
)
from kdyno.measure.readers.formats import summary_table
from kdyno.measure.readers.readings import PublishedValue, SummaryTables
from kdyno.measure.readers.request import JudgeRequest
from kdyno.measure.readers.sheet import whole_number
from kdyno.measure.readers.source import FileSource

MOST_PAIRS = 2000
"""Variants of all benchmarks up to which they are searched for the pair that a wrong Q belongs to."""
MOST_VARIANTS = 50
SHOWN = 8
"""Names that a sentence lists."""


@dataclass(frozen=True)
class _Table:
    """The known facts about one benchmark, by the names of its variants that are shown."""

    benchmark: str
    means: dict[str, PrintedGroup] = field(default_factory=dict)
    values: dict[str, PublishedGroup] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    """Every name of a variant -> its name above."""
    guessed: dict[str, str] = field(default_factory=dict)
    """Names of the values that were taken for published ones."""

    @property
    def in_both(self) -> list[str]:
        return [name for name in self.means if name in self.values]

    @property
    def analysed(self) -> Groups:
        """Return the values that make the variance: of the variants whose means were published, else of all."""
        if not self.means or len(self.in_both) < len(self.means):
            return self.values
        return {name: self.values[name] for name in self.means}


def contradictions(sources: Sequence[FileSource], gathered: Gathered, request: JudgeRequest) -> tuple[str, ...]:
    """Return what is wrong with the statistics and means in `sources`, and in the judged files themselves.

    Raise NoClaim, the errors of the reader of tables, and those of `check_claims`.
    """
    plain = JudgeRequest(n=request.n if whole_number(request.n or "") else None)
    claims = [claim for grid, file in gathered.claims for claim in read(grid, file)]
    published = list(gathered.published)
    for source in sources:
        try:
            tables = summary_table.read(source, plain)
        except (MaybeRows, MaybeWide, NotAMeasurement):
            tables = SummaryTables((), {}, ())
        if not tables.claims and not any(row.sd for row in tables.published):
            raise NoClaim(
                file=source.shown, line=1, why="there is neither a pair with its Q nor a mean with its sd in it"
            )
        if tables.published and gathered.published:
            raise NoClaim(
                file=source.shown, line=1, why="only values can show whether its means are right, but means are judged"
            )
        claims += [claim for grid in tables.claims for claim in read(grid, source.shown)]
        published += tables.published
        if len(published) > MOST_CLAIMS and not gathered.published:
            raise TooLarge(file=source.shown, most=MOST_CLAIMS, what="published means")
    if not claims and not (published and not gathered.published):
        return ()
    if gathered.summed_up:
        return (
            "the values are medians of several, so results published about single values weren't checked; leave out "
            "the column that sums them up to check these",
        )
    return check_claims(claims, published, gathered.observations)


def check_claims(
    claims: Sequence[Claim], published: Sequence[PublishedValue], observations: Sequence[Observations] = ()
) -> tuple[str, ...]:
    """Return a sentence for each published number that is wrong, and one that says how many were checked.

    Means are checked against values, statistics against all data at hand. Raise NoClaim if a name isn't clear,
    OnlyStatistics without any data, TooLarge and MixedUnits.
    """
    tables = _tables(published, observations)
    pairs = {benchmark: table.means or table.values for benchmark, table in tables.items()}
    has_values = any(table.values for table in tables.values())
    sentences = list(_check_means(list(tables.values()))) if has_values else []
    from_means, from_values = [], []
    for claim in claims:
        table, pair = _locate_claim(claim, tables)
        check = check_pair(
            pair,
            claim.q,
            claim.p or None,
            means=table.means if set(pair) <= table.means.keys() else None,
            values=table.analysed if set(pair) <= table.analysed.keys() else None,
        )
        p_follows = check.p_follows is not False
        from_means += [check.from_means.follows and p_follows] if check.from_means else []
        from_values += [check.from_values.follows and p_follows] if check.from_values else []
        if not p_follows or not all(own.follows for own in (check.from_means, check.from_values) if own):
            other = "" if check.q_follows or check.resembles else _find_other_pairs(claim, table.benchmark, pairs)
            sentences.append(f"{claim.file}, line {claim.line}, {table.benchmark}: {check.sentence}{other}")
    return (*sentences, *_counts(from_means, from_values, list(tables.values())))


def _tables(published: Sequence[PublishedValue], observations: Sequence[Observations]) -> dict[str, _Table]:
    tables: dict[str, _Table] = {}
    for row in published:
        if not row.sd:
            continue  # a figure has no variance that a statistic could follow from
        table = tables.setdefault(row.benchmark, _Table(row.benchmark))
        name = row.label or row.variant
        table.means[name] = PrintedGroup(Printed(row.mean), Printed(row.sd), row.n)
        table.names.update({row.variant: name, row.label or row.variant: name})
    unit = {row.benchmark: row.unit for row in published}
    measured = {
        observed.benchmark: (observed, groups)
        for observed in observations
        if (groups := {name: group for name, group in observed.groups.items() if isinstance(group, ReplicateSample)})
    }
    published_as = _pair_names(list(measured), {name: name for name in tables})
    if len(measured) == len(tables) == 1:
        published_as = dict(zip(measured, tables, strict=True))
    for own, (observed, groups) in measured.items():
        benchmark = published_as.get(own, own)
        table = tables.setdefault(benchmark, _Table(benchmark))
        wanted = unit.get(benchmark) or observed.unit
        factor = units.factor(observed.unit, wanted)
        if factor is None:
            raise MixedUnits(benchmark=benchmark, unit=observed.unit, other=wanted)
        shown_as = _pair_names(list(groups), dict(table.names))
        table.guessed.update({variant: name for variant, name in shown_as.items() if variant not in table.names})
        if own != benchmark:
            table.guessed[own] = benchmark
        for variant, group in groups.items():
            name = table.names[variant] = shown_as.get(variant, variant)
            table.values[name] = group_of(group.values * factor, observed.step * factor)
    return tables


def _pair_names(own: Sequence[str], published: Mapping[str, str]) -> dict[str, str]:
    """Return which published name each of the values' own names stands for, if that is clear: one for one."""
    things = {name: thing for name in own if (thing := match_name(name, published))}
    pairs = {}
    for name, thing in things.items():
        rivals = [other for other, same in things.items() if same == thing]
        exact = [other for other in rivals if other in published]
        if [name] in (rivals, exact):
            pairs[name] = thing
    return pairs


def _locate_claim(claim: Claim, tables: Mapping[str, _Table]) -> tuple[_Table, tuple[str, str]]:
    """Return the table that a claim is about, and the names of its pair. Raise NoClaim and TooLarge."""

    def unclear(why: str) -> NoClaim:
        return NoClaim(file=claim.file, line=claim.line, why=why)

    if not tables:
        raise OnlyStatistics(file=claim.file)
    if not claim.benchmark and len(tables) > 1:
        raise unclear("nothing says which benchmark the statistic is of")
    benchmark = match_name(claim.benchmark, {name: name for name in tables}) if claim.benchmark else next(iter(tables))
    if benchmark is None:
        raise unclear(f"no benchmark like {claim.benchmark!r}: there is {format_list(list(tables))}")
    table = tables[benchmark]
    if max(len(table.means), len(table.values)) > MOST_VARIANTS:
        raise TooLarge(file=claim.file, most=MOST_VARIANTS, what=f"variants of {benchmark} to check statistics of")
    for groups, what in ((table.means, "means"), (table.analysed, "values")):
        if groups and all(group.n == 1 for group in groups.values()):
            raise unclear(f"the {what} of {benchmark} are of one value each: no variance")
    first, second = (match_name(name, table.names) for name in (claim.first, claim.second))
    if first is None or second is None:
        wrong = claim.first if first is None else claim.second
        raise unclear(f"no variant like {wrong!r} in {benchmark}")
    if not any({first, second} <= groups.keys() for groups in (table.means, table.values)):
        raise unclear(f"{first} and {second} are not in one table of {benchmark}")
    return table, (first, second)


def _check_means(tables: Sequence[_Table]) -> Iterator[str]:
    """Yield what is wrong with the printed means, which of them have no values, and which names were taken for
    which.
    """
    for table in tables:
        for name in table.in_both:
            if errors := summary_errors(table.means[name], table.values[name]):
                yield f"{table.benchmark}, {name}: {errors}"
    unchecked = [f"{table.benchmark}, {name}" for table in tables for name in table.means if name not in table.values]
    if unchecked:
        more = f" and {len(unchecked) - SHOWN} more" if len(unchecked) > SHOWN else ""
        yield f"no values were found of these published means: {'; '.join(unchecked[:SHOWN])}{more}"
    renamed = dict.fromkeys(f"{own!r} for {name!r}" for table in tables for own, name in table.guessed.items())
    if renamed:
        yield f"names of values were taken for published ones: {format_list(list(renamed), SHOWN)}"


def _find_other_pairs(claim: Claim, own: str, benchmarks: Mapping[str, Groups]) -> str:
    """Return the pairs of other benchmarks that the Q would fit: it may have slipped into the wrong row."""
    if sum(math.comb(len(groups), 2) for groups in benchmarks.values()) > MOST_PAIRS:
        return ""
    matches = [
        f"{benchmark}, {pair[0]} against {pair[1]}"
        for benchmark, groups in benchmarks.items()
        if benchmark != own
        for pair in fitting(groups, claim.q)
    ]
    return f"; this Q would fit {format_list(matches)}" if matches else ""


def _counts(from_means: Sequence[bool], from_values: Sequence[bool], tables: Sequence[_Table]) -> Iterator[str]:
    """Yield how many of the published numbers follow from the data."""
    if from_means:
        also = f", {sum(from_values)} of {len(from_values)} from the values" if from_values else ""
        yield (
            f"{sum(from_means)} of {len(from_means)} published statistics follow from the means published with "
            f"them{also}"
        )
    elif from_values:
        yield f"{sum(from_values)} of {len(from_values)} published statistics follow from the values"
    checked = [summary_errors(table.means[name], table.values[name]) for table in tables for name in table.in_both]
    if checked:
        right = sum(not errors for errors in checked)
        yield f"{right} of {len(checked)} published means and standard deviations match the values"
