"""`git bisect run kdyno ab` on a real kernel: a slow-down of 1 % of lat_pipe, in one of ten commits."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import ROOT, Kdyno


@pytest.mark.long
def test_git_bisect_finds_the_commit_that_made_pipes_slower(kdyno: Kdyno, tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "KDYNO_STATE": str(kdyno.state), "KDYNO_STORE": kdyno.store}
    done = subprocess.run(
        [ROOT / "tools/bisect-planted", tmp_path], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "read_write.c" in done.stdout and "doesn't build" in done.stdout
