"""Fuzzes one reader for as long as it is told: python -m tests.fuzz.led_by_coverage READER [libFuzzer's options]."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["kdyno"]):
    from tests.fuzz.targets import TARGETS

from tests.fuzz.check import LARGEST, check


def main() -> None:
    target = TARGETS[sys.argv[1]]
    with tempfile.TemporaryDirectory() as directory:
        options = [sys.argv[0], f"-max_len={LARGEST}", *sys.argv[2:]]
        atheris.Setup(options, lambda content: check(target, content, Path(directory)))
        atheris.Fuzz()


if __name__ == "__main__":
    main()
