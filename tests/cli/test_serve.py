"""`kdyno serve` as a process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from tests.cli.conftest import Lab
from tests.unit.history_specimen import fill


def slower_from_3(kernel: int, *_: object) -> float:
    return 1040.0 if kernel >= 3 else 1000.0


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_answers_there_and_ends_by_a_signal(tmp_path: Path, stop: signal.Signals) -> None:
    fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3).close()
    words = [
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--store",
        f"sqlite:///{tmp_path}/store",
        "--state",
        f"{tmp_path}/state",
    ]
    command = [sys.executable, "-m", "kdyno", *words]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env={**os.environ, "NO_PROXY": "*"}) as server:
        assert server.stderr
        first = server.stderr.readline()
        address, _, rest = first.partition("/: ")
        assert rest == "read only; Ctrl-C ends it\n", first
        with urllib.request.urlopen(f"{address}/", timeout=120) as answer:
            assert b"v6.13-rc1-3-g" in answer.read()
        server.send_signal(stop)
        assert server.wait(120) == 0
        assert server.stderr.read() == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--listen", "everywhere"), "everywhere is not an address to listen on"),
        (("--certificate", "cert.pem"), "a certificate needs its key"),
        (("--tokens", "missing"), "missing is not a file of tokens: No such file or directory"),
    ],
)
def test_a_request_that_makes_no_sense_is_refused(lab: Lab, words: tuple[str, ...], message: str) -> None:
    lab.recording.add("same")
    assert lab("run", lab.experiment("same"), "-q").status == 0
    result = lab("serve", *words)
    assert result.status == 1
    assert message in result.err
