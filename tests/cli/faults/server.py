"""Runs commands of kdyno in forks of one process, with the library of faults.c in it: one JSON request a line."""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

from kdyno.cli.main import main
from tests.cli.faults import CRASHED, KINDS

FIRST = (
    *("cli.run", "cli.store", "cli.report", "runs.run", "report.output", "runs.experiment.resolve"),
    *("judge.verdicts.assemble", "judge.verdicts.regression", "store.upkeep.runs", "store.upkeep.gc", "boot.fake"),
)
"""Imported once, before the forks."""
SECONDS = 60
"""Of a command, before it is ended by SIGALRM; one takes less than a second."""


def limit_memory(more: int | None) -> None:
    """Let this process have so many bytes of address space more than it has; None: as many as it likes."""
    most = hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if more is not None:
        most = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize() + more
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def ran(faults: ctypes.CDLL, request: dict[str, Any], scratch: Path) -> dict[str, Any]:
    (scratch / "calls").write_text("[]")
    child = os.fork()
    if child == 0:
        for number, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(scratch / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        signal.alarm(SECONDS)
        limit_memory(request["memory"])
        kind, n, error, is_for_good = request["fault"]
        faults.faults_arm(kind, ctypes.c_long(n), error, is_for_good)
        try:
            status = main(request["words"])
        except SystemExit as left:
            status = int(left.code or 0)
        except BaseException as error:
            try:
                sys.excepthook(type(error), error, error.__traceback__)
            except BaseException:
                os._exit(CRASHED)  # a child that went on would remove the directory
            status = CRASHED
        limit_memory(None)
        calls = [faults.faults_calls(kind) for kind in range(len(KINDS))]
        faults.faults_arm(0, ctypes.c_long(0), 0, 0)
        (scratch / "calls").write_text(json.dumps(calls))
        sys.stderr.flush()
        os._exit(status)
    _, ended = os.waitpid(child, 0)
    out, err = ((scratch / name).read_text() for name in ("out", "err"))
    calls = json.loads((scratch / "calls").read_text()) if os.WIFEXITED(ended) else []
    return {"status": os.waitstatus_to_exitcode(ended), "out": out, "err": err, "calls": calls}


def serve() -> None:
    faults = ctypes.CDLL(os.environ.pop("LD_PRELOAD"))
    faults.faults_calls.restype = ctypes.c_long
    for name in FIRST:
        importlib.import_module(f"kdyno.{name}")
    with tempfile.TemporaryDirectory() as scratch:
        for line in sys.stdin:
            print(json.dumps(ran(faults, json.loads(line), Path(scratch))), flush=True)


serve()
