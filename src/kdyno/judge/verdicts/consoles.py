"""Finding the console of one boot."""

from __future__ import annotations

from collections.abc import Sequence

from kdyno.base.errors import UserError
from kdyno.store.records import BootRecord, RunRecord


class NoSuchBoot(UserError):
    message = "run {run} has no boot {named} with a console"
    hint = "name it VARIANT/BLOCK; variants: {variants}; blocks: 0 to {last}"


def console_artefact(run: RunRecord, boots: Sequence[BootRecord], named: str) -> str:
    """Return the SHA-256 of the console of the boot VARIANT/BLOCK, of its last attempt. Raise NoSuchBoot."""
    variant, _, block = named.rpartition("/")
    for boot in sorted(boots, key=lambda boot: -boot.attempt):
        if boot.variant == variant and str(boot.block) == block and boot.console:
            return boot.console
    names = ", ".join(variant.name for variant in run.variants)
    raise NoSuchBoot(run=run.id, named=named, variants=names, last=run.blocks - 1)
