"""A directory may be a stranger's: no verb runs what lies there, whatever it is called and whatever the PATH says."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kdyno.base.surroundings import passed_environment
from kdyno.cli.verbs import VERBS
from tests.cli.conftest import Lab
from tests.unit.base.test_process import FAMILY, is_running, pids, wait_until
from tests.unit.kernel_toy import toy_repository

PROGRAMS = (
    *("git", "tar", "xz", "cp", "rm", "env", "sh", "make", "gcc", "cc1", "as", "ld", "ccache", "nm", "grep"),
    *("qemu-system-x86_64", "qemu-x86_64", "apt-cache", "apt-get", "dpkg-query", "dpkg-deb", "zstd", "lz4", "busybox"),
    *("ssh", "dmsetup", "lsmod", "ldd", "llvm-profdata-19", "llvm-profgen-19", "kdyno-agent", "kdyno-lint", "python3"),
    "kdyno-debuginfo",
)
COMMANDS: dict[str, str] = {
    "ab": "ab {tree} {tree} -t lat_pipe --list",
    "init": "init new.toml",
    "plan": "plan {toy}",
    "build": "build {toy}",
    "run": "run {replay} -q",
    "runs": "runs",
    "show": "show latest",
    "report": "report latest --html report.html",
    "confirm": "confirm latest other",
    "compare": "compare latest",
    "history": "history --html pages",
    "serve": "serve --listen nowhere.invalid:1",
    "judge": "judge data.csv",
    "scaling": "scaling latest",
    "workload": "workload show fio",
    "explain": "explain latest other lat_pipe",
    "coverage": "coverage show record",
    "kernel": "kernel lint vmlinux",
    "boot": "boot vmlinux -- true",
    "soak": "soak vmlinux",
    "selftest": "selftest",
    "validate": "validate --help",
    "calibrate": "calibrate --help",
    "profile": "profile pull nowhere.invalid -o pulled",
    "tune": "tune {toy}",
    "bisect": "bisect plain opt=Os --source git:{tree} --config make:tinyconfig -t lat_pipe",
    "fit-config": "fit-config {toy} --source git:{tree} --config make:tinyconfig",
    "delegation": "delegation show vmlinux",
    "lab": "lab time --source {tree} memcpy --blocks 4 -q",
    "fleet": "fleet init made --database postgresql://nobody@127.0.0.1:1/none --blobs blobs",
    "worker": "worker made --name one",
    "march": "march",
    "ship": "ship latest other --deb",
    "card": "card vmlinux",
    "verify": "verify linux.deb",
    "doctor": "doctor",
    "store": "store gc",
    "blockmap": "blockmap data.csv",
    "help": "help exit-codes",
    "schema": "schema experiment",
    "completion": "completion bash",
}
"""A command for each verb; what it comes to doesn't matter here."""


def full_of_traps(directory: Path, mark: Path) -> None:
    """Modules and programs under every name that somebody may look for, each of which leaves a mark."""
    for name in (*sys.stdlib_module_names, "kdyno", "numpy", "sitecustomize", "usercustomize"):
        (directory / f"{name}.py").write_text(f"open({str(mark)!r}, 'a').write('module {name}\\n')\n")
    for name in PROGRAMS:
        (directory / name).write_text(f"#!/bin/sh\necho program {name} >> {mark}\nexit 1\n")
        (directory / name).chmod(0o755)


@pytest.fixture
def places(lab: Lab) -> dict[str, str]:
    tree = toy_repository(lab.directory)
    toy = lab.directory / "toy.toml"
    patch = lab.directory / "a.patch"
    patch.write_text("--- /dev/null\n+++ b/fs/new.c\n@@ -0,0 +1 @@\n+int new;\n")
    toy.write_text(
        f'name = "toy"\nsource = "git:{tree}"\nconfig = "make:tinyconfig"\nbaseline = "a"\n'
        f'[variants.a]\n[variants.b]\npatches = ["{patch}"]\n'
    )
    return {"tree": str(tree), "toy": str(toy), "replay": lab.experiment("other")}


def test_every_verb_is_tried() -> None:
    assert COMMANDS.keys() == VERBS.keys()


@pytest.mark.parametrize("verb", COMMANDS)
def test_no_verb_runs_what_lies_in_the_directory(
    lab: Lab, places: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    trap, mark = tmp_path / "trap", tmp_path / "ran"
    trap.mkdir()
    full_of_traps(trap, mark)
    monkeypatch.chdir(trap)
    monkeypatch.setenv("PATH", f".{os.pathsep}{os.environ['PATH']}{os.pathsep}")
    result = lab(*COMMANDS[verb].format(**places).split())
    assert "Traceback" not in result.err
    assert not mark.exists(), mark.read_text()


def test_the_command_itself_imports_nothing_of_the_directory(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    full_of_traps(tmp_path, mark)
    script = Path(sys.executable).with_name("kdyno")
    done = subprocess.run([str(script), "march", "list"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not mark.exists()


def test_a_guarded_program_dies_with_kdyno_in_a_directory_full_of_traps(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    full_of_traps(tmp_path, mark)
    code = f"from kdyno.base.process import attempt; attempt({FAMILY!r}, guarded=True)"
    with subprocess.Popen([sys.executable, "-P", "-c", code], cwd=tmp_path) as parent:
        started = pids(tmp_path)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, started)))
    assert not mark.exists()


def test_git_hears_of_no_repository_but_the_one_that_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdyno.base import git as kdyno_git

    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
    ours, theirs = toy_repository(tmp_path / "ours"), toy_repository(tmp_path / "theirs")
    (theirs / "more").write_text("more")
    subprocess.run(["git", "-C", theirs, "add", "more"], check=True)
    wanted = kdyno_git.output(ours, "ls-files"), kdyno_git.output(ours, "rev-parse", "HEAD")
    local = subprocess.run(["git", "rev-parse", "--local-env-vars"], check=True, capture_output=True, text=True)
    names = {*local.stdout.split(), "GIT_CONFIG_GLOBAL", "GIT_EXEC_PATH", "GIT_EXTERNAL_DIFF", "GIT_SSH_COMMAND"}
    for name in names:
        monkeypatch.setenv(name, str(theirs / ".git"))
    assert (kdyno_git.output(ours, "ls-files"), kdyno_git.output(ours, "rev-parse", "HEAD")) == wanted
    assert not names & passed_environment().keys()


def test_tools_hear_of_no_variable_that_bends_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from kdyno.base.process import output

    outputs = tmp_path / "dependencies"
    for name, value in {
        "DEPENDENCIES_OUTPUT": str(outputs),
        "TAR_OPTIONS": "--no-such-option",
        "MAKEFLAGS": "--no-such-option",
        "CPATH": "/nowhere",
        "BASH_ENV": str(tmp_path / "code"),
    }.items():
        monkeypatch.setenv(name, value)
    (tmp_path / "empty.c").write_text("#include <stddef.h>\n")
    output(["gcc", "-E", str(tmp_path / "empty.c")])
    assert not outputs.exists()
    output(["tar", "--version"])
    output(["make", "--version"])
