"""One reader fuzzed by Atheris, which counts the branches that its inputs reach.

To import this module takes long: all of kdyno is instrumented. So a process that has done so is forked for each reader.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Sequence
from contextlib import redirect_stderr
from pathlib import Path

import atheris  # type: ignore[import-untyped]

with redirect_stderr(io.StringIO()), atheris.instrument_imports(include=["kdyno"]):  # it lists all modules
    from tests.fuzz.targets import TARGETS

from tests.fuzz.check import LARGEST, check


def fuzz(name: str, options: Sequence[str]) -> None:
    """Fuzz one reader with libFuzzer's options. The process ends with it."""
    target = TARGETS[name]
    with tempfile.TemporaryDirectory() as directory:
        atheris.Setup(
            [sys.argv[0], f"-max_len={LARGEST}", *options], lambda content: check(target, content, Path(directory))
        )
        atheris.Fuzz()
