"""kdyno as a process with a gigabyte of memory: what fills it gets a MemoryError, and another message than is due."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

MEMORY = 1_000_000_000


def kdyno(
    *words: str | Path, cwd: Path | None = None, env: Mapping[str, str] | None = None, stdin: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    """A command and all that it starts, each within MEMORY; `env` is added to the environment."""
    return _within_memory([sys.executable, "-m", "kdyno", *words], cwd, env, stdin)


def python(code: str, *words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A program in Python within MEMORY, for a reader that no command leads to without a kernel or a guest."""
    return _within_memory([sys.executable, "-c", code, *words], cwd, None, None)


def require_one_message(done: subprocess.CompletedProcess[str], code: int, *says: str) -> None:
    """It has ended with this exit code, and has said nothing but one message with a hint."""
    assert done.returncode == code and "Traceback" not in done.stderr, done.stderr[-3000:]
    assert done.stderr.count("kdyno: ") == 1 and done.stderr.count("hint: ") == 1, done.stderr[-3000:]
    assert len(done.stderr) < 10_000
    for words in says:
        assert words in done.stderr, done.stderr


def _within_memory(
    command: list[str | Path], cwd: Path | None, env: Mapping[str, str] | None, stdin: bytes | None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        command,
        cwd=cwd,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1", **(env or {})},
        input=stdin,
        capture_output=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY)),
    )
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())
