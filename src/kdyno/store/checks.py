"""The key of a kernel's check boot: whoever has a run's record finds the boot in the store."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kdyno.base.frozen import digest
from kdyno.store.records import RunRecord

CHECK_FORMAT = 2
"""Raised when the check of the same kernel changes."""


def check_key(image: str, cmdline: Sequence[str], machine: Mapping[str, Any]) -> str:
    """Return the content hash (64 hex digits) of the image's key, the variant's command line and the facts of the run's
    machine.
    """
    return digest({"check": CHECK_FORMAT, "image": image, "cmdline": list(cmdline), "machine": dict(machine)})


def keys_of(run: RunRecord) -> set[str]:
    """Return the keys of the check boots of a run's kernels, whether they have KUnit or not."""
    return {
        check_key(image.key, variant.recipe.words, run.machine) for variant in run.variants for image in variant.images
    }
