"""What kdyno is called in, a directory and an environment, names no program and no file that its children use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from kdyno.base import git, process, surroundings
from kdyno.base.state import State
from kdyno.kernel import ccache
from kdyno.kernel.source import fetch
from tests.unit.base.test_process import FAMILY, is_running, pids, wait_until
from tests.unit.kernel_toy import commit, silent, toy_repository


def planted(folder: Path, mark: Path) -> Path:
    """A directory that has a module of each name that Python's own library has; one that runs leaves its mark."""
    folder.mkdir()
    for name in sys.stdlib_module_names:
        (folder / f"{name}.py").write_text(f"import posix\nposix.mkdir({str(mark)!r})\n")
    return folder


def test_a_killed_kdyno_leaves_no_program_and_runs_no_module_of_its_directory(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    here = planted(tmp_path / "here", mark)
    code = (
        f"import os; from kdyno.base.process import attempt; os.environ['PYTHONPATH'] = {str(here)!r}; "
        f"attempt({FAMILY!r}, guarded=True)"
    )
    with subprocess.Popen([sys.executable, "-P", "-c", code], cwd=here) as parent:
        started = pids(here)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not any(map(is_running, started)))
    assert not mark.exists()


@pytest.mark.parametrize(
    ("options", "searched"),
    [
        ([], ""),  # what `python -m` puts first
        (["-P"], ":"),  # -P: nothing but the entry
        (["-P"], ":/nowhere"),
        (["-P"], "/nowhere:"),
        (["-P"], "."),
        (["-P"], "{here}"),
    ],
)
def test_no_entry_of_what_python_searches_is_the_directory_where_kdyno_is_called(
    tmp_path: Path, options: list[str], searched: str
) -> None:
    mark, here = tmp_path / "ran", tmp_path / "here"
    here.mkdir()
    for name in ("argparse", "importlib_metadata", "json", "signal", "psycopg"):  # what Python starts with comes before
        (here / f"{name}.py").write_text(f"import posix\nposix.mkdir({str(mark)!r})\n")

    def python(*words: str) -> subprocess.CompletedProcess[bytes]:
        environment = {**os.environ, "PYTHONPATH": searched.format(here=here)}
        command = [sys.executable, *options, *words]
        return subprocess.run(command, cwd=here, env=environment, capture_output=True, check=False)

    python("-c", "import argparse")
    mark.rmdir()  # so that it would have run
    done = python("-m", "kdyno", "completion", "bash")
    assert (done.returncode, mark.exists()) == (0, False), done.stderr


@pytest.mark.parametrize("start", ["", ".:", "bin:", ":/nowhere:", "./bin/:"])
@pytest.mark.parametrize("variable", surroundings.SEARCHED)
def test_a_list_of_directories_has_none_that_depends_on_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str, start: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for place in (tmp_path, tmp_path / "bin"):
        (place / "a-program").write_text("#!/bin/sh\n")
        (place / "a-program").chmod(0o755)
    monkeypatch.setenv(variable, f"{start}/usr/bin:/bin::bin")
    assert all(map(os.path.isabs, surroundings.passed_environment()[variable].split(":")))
    command = ["-".join(("a", "program"))]
    with pytest.raises(process.ToolMissing):
        monkeypatch.setenv("PATH", f"{start}/usr/bin:/bin::bin")
        process.output(command)


def test_a_program_sees_nothing_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"HOME": "/a/home", "LC_ALL": "C", "CCACHE_DIR": "/c", "https_proxy": "http://p", "SSH_AUTH_SOCK": "/s"}
    lost = (
        "BASH_ENV",
        "CPATH",
        "COMPILER_PATH",
        "GCC_EXEC_PREFIX",
        "GIT_DIR",
        "KDYNO_STORE",
        "LD_PRELOAD",
        "MAKEFLAGS",
    )
    for name in (*lost, "PERL5OPT", "PYTHONPATH", "QEMU_LD_PREFIX", "TAR_OPTIONS", "ZIG_LIB_DIR"):
        monkeypatch.setenv(name, "/by/chance")
    for name, value in kept.items():
        monkeypatch.setenv(name, value)
    seen = process.output(["env"])
    assert "/by/chance" not in seen
    assert {f"{name}={value}" for name, value in kept.items()} <= set(seen.splitlines())


def test_ccache_can_not_be_told_to_call_another_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ccache, "is_installed", lambda: True)
    for name in ccache.OTHERS:
        monkeypatch.setenv(name, "/another")
    assert "/another" not in ccache.environment(tmp_path).values()


def test_no_variable_of_git_s_puts_another_repository_in_the_place_of_the_named(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "named").mkdir()
    other, named = toy_repository(tmp_path / "other"), toy_repository(tmp_path / "named")
    (named / "fs/open.c").write_text("int of_the_named;\n")
    head = commit(named, "another commit")
    paths = {"GIT_DIR": ".git", "GIT_COMMON_DIR": ".git", "GIT_OBJECT_DIRECTORY": ".git/objects", "GIT_WORK_TREE": "."}
    for name, path in {**paths, "GIT_INDEX_FILE": ".git/index", "GIT_CONFIG": ".git/config"}.items():
        monkeypatch.setenv(name, str(other / path))
    for name, value in {"GIT_NAMESPACE": "x", "GIT_EXEC_PATH": "/nowhere", "GIT_CEILING_DIRECTORIES": "/"}.items():
        monkeypatch.setenv(name, value)
    for name, value in {"COUNT": "1", "KEY_0": "core.worktree", "VALUE_0": str(other)}.items():
        monkeypatch.setenv(f"GIT_CONFIG_{name}", value)
    source = fetch(f"git:{named}", state, silent)
    assert source.identity.identity == f"git:{head}"
    assert (source.tree / "fs/open.c").read_text() == "int of_the_named;\n"
    assert (fetch(str(named), state, silent).tree / "fs/open.c").read_text() == "int of_the_named;\n"


def test_git_sees_none_of_its_variables_but_who_commits(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    local = process.output(["git", "rev-parse", "--local-env-vars"]).split()
    assert "GIT_DIR" in local
    for name in (*local, "GIT_SSH", "GIT_ASKPASS", "GIT_EXTERNAL_DIFF", "GIT_AUTHOR_NAME"):
        monkeypatch.setenv(name, "/theirs")
    seen: list[dict[str, str]] = []

    def attempt(*_words: object, env: dict[str, str], **_how: object) -> subprocess.CompletedProcess[str]:
        seen.append(env)
        return subprocess.CompletedProcess([], 0, "", "")

    monkeypatch.setattr(process, "attempt", attempt)
    git.attempt(tmp_path, "status")
    assert seen[-1] == {**git.ENVIRONMENT, "GIT_AUTHOR_NAME": "/theirs"}


@pytest.mark.parametrize("where", ["included", "config", "HEAD"])
def test_a_pipe_that_git_would_wait_at_is_one_message(
    tmp_path: Path, state: State, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    tree = toy_repository(tmp_path)
    monkeypatch.setattr(git, "LOOK_SECONDS", 0.5)
    if where == "included":
        os.mkfifo(tmp_path / "pipe")
        with (tree / ".git/config").open("a") as config:
            config.write(f"[include]\n\tpath = {tmp_path}/pipe\n")
    else:
        (tree / ".git" / where).unlink()
        os.mkfifo(tree / ".git" / where)
    with pytest.raises(git.RepositoryHangs, match="is a pipe that waits for a writer"):
        fetch(f"git:{tree}", state, silent)


@pytest.mark.parametrize("value", ["abc", "", "0", "-1", "1e3", "\u00b2", "80.5", "999999999", " 80"])
@pytest.mark.parametrize("name", ["COLUMNS", "LINES"])
def test_a_size_that_no_terminal_has_is_left_out(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    surroundings.settle()
    assert name not in os.environ
