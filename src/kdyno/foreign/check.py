"""Published statistics that don't follow from their own means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from kdyno.foreign.claims import Claim
from kdyno.foreign.gathered import listed
from kdyno.foreign.readings import Published
from kdyno.judge.checks.published import Printed, PrintedGroup, check_pair


def contradicted(claims: Sequence[Claim], published: Sequence[Published]) -> tuple[str, ...]:
    """A sentence for each claim that is wrong, and one that says how many were checked."""
    wrong = []
    for claim in claims:
        names = {row.variant: _name(row) for row in published if row.benchmark == claim.benchmark}
        pair = names[claim.first], names[claim.second]
        check = check_pair(_groups(published, claim.benchmark), pair, claim.q, claim.p or None)
        if not check.q_follows or check.p_follows is False:
            other = "" if check.q_follows or check.resembles else _elsewhere(claim, published)
            wrong.append(f"{claim.where}, {claim.benchmark}: {check.sentence}{other}")
    if not claims:
        return ()
    right = len(claims) - len(wrong)
    return (*wrong, f"{right} of {len(claims)} published statistics follow from the means published with them")


def _elsewhere(claim: Claim, published: Sequence[Published]) -> str:
    """The pairs of other benchmarks that the Q would fit: it may have slipped into the wrong row."""
    matches = []
    for benchmark in dict.fromkeys(row.benchmark for row in published if row.benchmark != claim.benchmark):
        groups = _groups(published, benchmark)
        for pair in combinations(groups, 2):
            if check_pair(groups, pair, claim.q).q_follows:
                matches.append(f"{benchmark}, {pair[0]} against {pair[1]}")
    return f"; this Q would fit {listed(matches)}" if matches else ""


def _groups(published: Sequence[Published], benchmark: str) -> dict[str, PrintedGroup]:
    own = [row for row in published if row.benchmark == benchmark]
    return {_name(row): PrintedGroup(Printed(row.mean), Printed(row.sd), row.n) for row in own}


def _name(row: Published) -> str:
    return row.label or row.variant
