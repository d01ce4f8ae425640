"""Published statistics that don't follow from their own means."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import combinations

from kdyno.foreign.claims import Claim
from kdyno.foreign.readings import Published
from kdyno.judge.checks.published import Groups, Printed, PrintedGroup, check_pair, q_fits
from kdyno.text import listed

MOST_PAIRS = 2000
"""Of variants of all benchmarks, up to which they are searched for the pair that a wrong Q belongs to."""


def contradicted(claims: Sequence[Claim], published: Sequence[Published]) -> tuple[str, ...]:
    """A sentence for each claim that is wrong, and one that says how many were checked."""
    names: dict[str, dict[str, str]] = {}
    groups: dict[str, dict[str, PrintedGroup]] = {}
    for row in published:
        names.setdefault(row.benchmark, {})[row.variant] = _name(row)
        groups.setdefault(row.benchmark, {})[_name(row)] = PrintedGroup(Printed(row.mean), Printed(row.sd), row.n)
    wrong = []
    for claim in claims:
        pair = names[claim.benchmark][claim.first], names[claim.benchmark][claim.second]
        check = check_pair(groups[claim.benchmark], pair, claim.q, claim.p or None)
        if not check.q_follows or check.p_follows is False:
            other = "" if check.q_follows or check.resembles else _elsewhere(claim, groups)
            wrong.append(f"{claim.where}, {claim.benchmark}: {check.sentence}{other}")
    if not claims:
        return ()
    right = len(claims) - len(wrong)
    return (*wrong, f"{right} of {len(claims)} published statistics follow from the means published with them")


def _elsewhere(claim: Claim, benchmarks: Mapping[str, Groups]) -> str:
    """The pairs of other benchmarks that the Q would fit: it may have slipped into the wrong row."""
    if sum(math.comb(len(groups), 2) for groups in benchmarks.values()) > MOST_PAIRS:
        return ""
    matches = [
        f"{benchmark}, {pair[0]} against {pair[1]}"
        for benchmark, groups in benchmarks.items()
        if benchmark != claim.benchmark
        for pair in combinations(groups, 2)
        if q_fits(groups, pair, claim.q)
    ]
    return f"; this Q would fit {listed(matches)}" if matches else ""


def _name(row: Published) -> str:
    return row.label or row.variant
