"""The readers of foreign bytes by room: what each starts from, and what must hold of whatever it reads."""

from __future__ import annotations

from pathlib import Path

from tests.fuzz.check import Target
from tests.fuzz.inputs import HERE
from tests.fuzz.targets import base, boot, judge, kernel, measure, profile, report, run, ship, store, tune, understand

FINDINGS = HERE / "findings"
"""Inputs that once broke a reader, in a directory with the reader's name."""
CORPUS = HERE / "corpus"
"""Inputs by which the fuzzer reached much of a reader, in a directory with the reader's name."""
ROOMS = (base, measure, kernel, profile, boot, store, judge, run, understand, tune, ship, report)
TARGETS = {target.name: target for room in ROOMS for target in room.TARGETS}


def findings() -> list[Path]:
    return sorted(path for path in FINDINGS.glob("*/*") if path.is_file())


def starts(target: Target) -> list[bytes]:
    """What a reader's inputs are made of: the sound ones, and those in the tree, which may be anything."""
    kept = sorted(path for folder in (CORPUS, FINDINGS) for path in (folder / target.name).glob("*"))
    return [*target.seeds(), *(path.read_bytes() for path in kept)]
