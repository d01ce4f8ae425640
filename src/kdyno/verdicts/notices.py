"""What a reader of a run must know first."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.store.giving_up import given_up
from kdyno.store.records import BootRecord, RunRecord
from kdyno.verdicts.contamination import Flag, notice
from kdyno.verdicts.looks import Look


def of_run(run: RunRecord, boots: Sequence[BootRecord], look: Look, flags: Sequence[Flag]) -> list[str]:
    """What is unfinished, failed, disturbed, or was not sampled."""
    return [*_unfinished(run, boots, look), *_design(run), *filter(None, [notice(flags, boots)])]


def _unfinished(run: RunRecord, boots: Sequence[BootRecord], look: Look) -> list[str]:
    blocks = run.stopped_at or run.blocks
    planned = blocks * len(run.variants)
    ended = {(boot.variant, boot.block) for boot in boots if boot.status != "lost"}
    failed = sum(boot.status == "failed" for boot in boots)
    hopeless = given_up(boots)
    left = {(variant.name, block) for variant in run.variants for block in range(blocks)} - ended
    found = [f"{variant} was given up, it never came through: {reason}" for variant, reason in hopeless.items()]
    if any(variant not in hopeless for variant, _ in left):
        judged = (
            "verdicts may still change"
            if run.looks == 1
            else f"judged are the {look.blocks} blocks of look {look.number}"
        )
        found.append(f"unfinished: {len(ended)} of {planned} boots done; {judged}")
    if failed:
        found.append(f"{failed} of {planned} boots failed: verdicts are about the boots that survived")
    if run.stopped_at:
        found.append(
            f"stopped at look {look.number} of {run.looks}, after {run.stopped_at} of {run.blocks} blocks: nothing was "
            f"undecided any more; intervals cover {100 * look.confidence:.2f} %, as looking several times demands"
        )
    return found


def _design(run: RunRecord) -> list[str]:
    if run.layouts:
        return []
    if not any(variant.images for variant in run.variants):
        return []  # a replay
    return [
        "layout wasn't sampled: each variant is one link order, and what that alone is worth is inside its effect; "
        "`layouts = 6` in the experiment separates the two"
    ]
