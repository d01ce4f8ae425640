"""git, run so that it starts no other program: a repository may be a stranger's, and its configuration names programs.

Each setting that could run a program is switched off by itself, since nothing switches off a configuration as a whole.
The configurations of the user and the system stay in force: they say which directories are safe and which files are
ignored.

No variable of git is passed on: GIT_DIR and its like would replace the repository that was named. Only the variables
that name the committer may be set.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

from kdyno.base import process
from kdyno.base.errors import UserError
from kdyno.base.process import ToolHangs
from kdyno.base.text import clean

SETTINGS = {
    "am.threeWay": "false",  # would run merge drivers
    "commit.gpgSign": "false",
    "core.fsmonitor": "false",
    "core.hooksPath": "/dev/null",
    "gc.auto": "0",
    "log.showSignature": "false",
    "maintenance.auto": "false",
}
ENVIRONMENT = {
    "GIT_ALLOW_PROTOCOL": "none",  # no remote, so no ssh, proxy or helper
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",  # the name of a commit identifies its content
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "LC_ALL": "C",
}
IDENTITY = re.compile(r"EMAIL|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)")
"""Variables that say who commits."""
LOOK_SECONDS = process.QUERY_SECONDS
"""For reading a configuration: it takes milliseconds, but half a minute where the machine has no time for it."""
NO_CONFIGURATION = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}
AS_COMMITTED = "* -filter -text -eol -ident -working-tree-encoding -export-subst -export-ignore\n"
"""Attributes that override those of a tree: its files come out as they were committed."""


class FilterUnfit(UserError):
    message = "{repository} has a filter called `{name}` in its configuration, which git can't be told to skip"
    hint = "remove it (git config --edit): a filter is a program, and kdyno runs no program that a repository names"


class RepositoryHangs(UserError):
    message = "git does not finish in {repository}: a file that it reads first is a pipe that waits for a writer"
    hint = "look for pipes among .git/config, .git/HEAD, ~/.gitconfig and the files that an include.path there names"


def attempt(
    repository: Path, *words: str | Path, stdin: str | None = None, guarded: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run git in a repository, or in a directory that may not be one; the caller checks the status.

    Raise RepositoryHangs.
    """
    _look_at(repository)
    return process.attempt(_command(repository, *words), stdin=stdin, env=_environment(), guarded=guarded)


def output(repository: Path, *words: str | Path) -> str:
    """Return the standard output of git, run as `attempt` runs it. Raise ToolFailed."""
    _look_at(repository)
    return process.output(_command(repository, *words), env=_environment())


def filter_overrides(repository: Path) -> list[str]:
    """Return arguments for `attempt` that switch off every configured filter: a command that writes files needs them.

    Raise FilterUnfit.
    """
    listed = attempt(repository, "config", "--null", "--name-only", "--get-regexp", r"^filter\..*\.").stdout
    names = {key.removeprefix("filter.").rpartition(".")[0] for key in listed.split("\0") if key}
    for name in names:
        if "=" in name:
            raise FilterUnfit(repository=repository, name=clean(name))
    switches = {"clean": "", "smudge": "", "process": "", "required": "false"}
    settings = [f"filter.{name}.{key}={value}" for name in sorted(names) for key, value in switches.items()]
    return [word for setting in settings for word in ("-c", setting)]


@contextmanager
def archive(repository: Path, commit: str) -> Iterator[subprocess.Popen[bytes]]:
    """Yield `git archive` of a commit as a tar on its standard output.

    It reads the repository's objects from a scratch repository, so that no configuration applies to the attributes.
    """
    objects = repository / output(repository, "rev-parse", "--git-path", "objects").removesuffix("\n")
    with TemporaryDirectory(prefix="kdyno-git-") as name:
        scratch = Path(name)
        (scratch / "refs").mkdir()
        (scratch / "info").mkdir()
        (scratch / "info/attributes").write_text(AS_COMMITTED, encoding="utf-8")
        (scratch / "HEAD").write_text("ref: refs/heads/none\n", encoding="utf-8")
        kind = "sha256" if len(commit) == 64 else "sha1"
        (scratch / "config").write_text(
            f"[core]\nrepositoryformatversion = 1\nbare = true\n[extensions]\nobjectFormat = {kind}\n", encoding="utf-8"
        )
        with process.spawn(
            ["git", "archive", "--format=tar", commit],
            env={
                **ENVIRONMENT,
                **NO_CONFIGURATION,
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_DIR": name,
                "GIT_OBJECT_DIRECTORY": str(objects),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as running:
            yield running


def visit_entries(repository: Path, commit: str, on_entry: Callable[[str], None]) -> int:
    """Call `on_entry` for each entry of a commit's tree, with the line of `ls-tree`; return the status of git."""
    return process.stream_lines(_command(repository, "ls-tree", "-r", commit), on_entry, env=_environment())


def apply(tree: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """Run `git apply` on a tree that is not a repository, whatever lies in it or around it."""
    return process.attempt(
        ["git", "apply", *words],
        cwd=tree,
        env={**ENVIRONMENT, **NO_CONFIGURATION, "GIT_ATTR_NOSYSTEM": "1", "GIT_DIR": "/dev/null"},
        guarded=True,
    )


@cache
def _look_at(repository: Path) -> None:
    """Let git read the files that it reads first: a pipe among them would make every command wait.

    Raise RepositoryHangs.
    """
    try:
        process.attempt(_command(repository, "rev-parse", "HEAD"), env=ENVIRONMENT, timeout=LOOK_SECONDS)
    except ToolHangs:
        raise RepositoryHangs(repository=repository) from None


def _environment() -> dict[str, str]:
    return {**{name: value for name, value in os.environ.items() if IDENTITY.fullmatch(name)}, **ENVIRONMENT}


def _command(repository: Path, *words: str | Path) -> list[str | Path]:
    settings = [word for name, value in SETTINGS.items() for word in ("-c", f"{name}={value}")]
    return ["git", "-C", repository, *settings, *words]
