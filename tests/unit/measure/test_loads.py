"""kdyno-loads as it is installed: what a workload finds in its output, its exit codes, and that it needs no library."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from kdyno.base import regex
from kdyno.base.installed import find_program


def loads(*words: str) -> subprocess.CompletedProcess[str]:
    program = find_program("kdyno-loads", "this test")
    return subprocess.run([program, *words], capture_output=True, text=True, check=False)


def test_the_program_is_static_so_that_a_guest_without_libraries_runs_it() -> None:
    program = find_program("kdyno-loads", "this test")
    headers = subprocess.run(["readelf", "-lW", program], capture_output=True, text=True, check=True).stdout
    assert "LOAD" in headers and "INTERP" not in headers


def test_the_patterns_of_the_documentation_find_each_number_once() -> None:
    documentation = (Path(__file__).parents[3] / "docs" / "loads.md").read_text()
    patterns = [line.split("'")[1] for line in documentation.splitlines() if line.startswith("pattern = '")]
    outcome = json.loads(line := loads("matmul", "--size", "8", "--json").stdout)
    numbers = [[str(match[1]) for match in regex.compile_pattern(pattern).finditer(line)] for pattern in patterns]
    values = [metric["value"] for metric in outcome["metrics"]]
    assert [[float(number) for number in of_pattern] for of_pattern in numbers] == [[value] for value in values]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["matmull"], "there is no load 'matmull'; `kdyno-loads --help`"),
        (
            ["fft", "--size", "1000"],
            "--size takes a power of two from 2 to 1073741824, not '1000'; `kdyno-loads --help`",
        ),
        (["sieve", "--threads", "2"], "sieve does not take '--threads'; `kdyno-loads --help`"),
    ],
)
def test_a_mistake_on_the_command_line_is_exit_code_64_with_a_hint(words: list[str], message: str) -> None:
    done = loads(*words)
    assert (done.returncode, done.stdout) == (64, "")
    assert done.stderr.startswith(f"kdyno-loads: {message}")


def test_memory_that_the_machine_does_not_have_is_exit_code_3() -> None:
    program = str(find_program("kdyno-loads", "this test"))
    limited = 'ulimit -v 4000000; exec "$0" sieve --bytes 64G'
    done = subprocess.run(["sh", "-c", limited, program], capture_output=True, text=True, check=False)
    assert (done.returncode, "ask for less with --size or --bytes" in done.stderr) == (3, True)
