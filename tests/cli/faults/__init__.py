"""Calls of the system that fail one after the other."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

KINDS = ("write", "sync", "name", "remove", "memory")
"""As in faults.c."""
CRASHED = 120
"""The status of a command that an exception ended."""
NO_FAULT = (0, 0, 0, 0)
Fault = tuple[int, int, int, int]
"""Kind, which call of it, errno, and whether all later ones fail, too."""


@dataclass(frozen=True)
class Ended:
    """How a command ended, and how often it made calls of each kind."""

    status: int
    out: str
    err: str
    calls: Sequence[int]


class Faulty:
    """Commands among whose calls one fails."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server

    def __call__(self, *words: str, fault: Fault = NO_FAULT, memory: int | None = None) -> Ended:
        """Run a command with a fault, or with so many bytes of memory beside those that its process has."""
        assert self._server.stdin and self._server.stdout
        self._server.stdin.write(json.dumps({"words": words, "fault": fault, "memory": memory}) + "\n")
        self._server.stdin.flush()
        return Ended(**json.loads(self._server.stdout.readline()))


def library(directory: Path) -> Path:
    """Compile faults.c, or skip the test where there is no compiler."""
    if not (gcc := shutil.which("gcc")):
        pytest.skip("no gcc here to compile the library that lets calls fail")
    made = directory / "faults.so"
    subprocess.run(
        [gcc, "-O1", "-shared", "-fPIC", "-o", made, Path(__file__).with_name("faults.c"), "-ldl"], check=True
    )
    return made


@contextmanager
def faulty(directory: Path, environment: Mapping[str, str]) -> Iterator[Faulty]:
    root = Path(__file__).parents[3]
    with subprocess.Popen(
        [sys.executable, "-m", "tests.cli.faults.server"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=root,
        env={**environment, "LD_PRELOAD": str(library(directory))},
    ) as server:
        yield Faulty(server)
        assert server.stdin
        server.stdin.close()
