"""The workplace of a build: a fresh object directory, a log, and an environment that holds nothing by chance."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kdyno import process
from kdyno.errors import InfrastructureError, UserError
from kdyno.kernel import build_log, ccache, delegate, places
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.trees import remove_tree
from kdyno.state import DiskFull, State, disk_full_is_said

FULL_BYTES = 1_000_000
"""A disk with less free space than this when a command fails is why it failed; not every tool says so (dash's echo)."""
PASSED_ON = ("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""What a build sees of the user's environment: where tools are, and where ccache and the compiler keep files."""
COMPILED = ("vmlinux.o", "arch/x86/kernel/vmlinux.lds")
"""What Kbuild visits every directory for. Calling them old (-o) spares that, a quarter of the time of a relink. The
option doesn't reach a make below, so it has to be the one in the object directory. A kernel older than 6.1, or one that
starts another make there too, visits all directories and finds nothing to do."""


class BuildFailed(UserError):
    message = "{what} doesn't build: {error}"
    hint = "the whole log is in {log}"


class BuildKilled(InfrastructureError):
    message = "the build of {what} was ended from outside, by signal {signal}"
    hint = "if nobody did that, the host may be short of memory; run the same command again, with fewer jobs"


class Busy(Exception):
    """A lock is held by another kdyno; never leaves this module."""


@dataclass(frozen=True)
class Work:
    """A build under way."""

    plan: BuildPlan
    state: State
    objects: Path
    log: Path
    written: IO[str]
    """The log, open."""

    @property
    def answers(self) -> Path:
        """What commands read: a default for every question that localmodconfig may ask."""
        path = self.objects.parent / "answers"
        if not path.exists():
            path.write_text("\n" * 10_000)
        return path

    @property
    def words(self) -> tuple[str, ...]:
        """The words of every make."""
        words = delegate.make_words(self.plan.make, self.objects.parent)
        return ccache.make_words(words, self.plan.toolchain)

    @property
    def make(self) -> list[str]:
        """The command that every make starts with."""
        return ["make", "-C", str(self.objects.parent), f"O={self.objects}", *self.words]

    @property
    def make_again(self) -> list[str]:
        """The same where all objects are there and only links are to be made."""
        old = [word for name in COMPILED for word in ("-o", name)]
        return ["make", "--no-print-directory", "-f", "../Makefile", *old, *self.words]

    def run(self, command: Sequence[str], on_line: Callable[[str], None] = lambda _: None) -> None:
        """Run one command with exactly the environment of this build, and everything it says in the log.

        The user's own part of the environment is neither logged nor on a command line: ccache's may hold a password.
        """
        ours = [f"{name}={value}" for name, value in self.plan.environment.items()]
        self.written.write(f"+ {process.quoted(['env', '-i', 'PATH=...', *ours, *command])}\n")
        environment = _environment(self.plan, self.objects)
        others = [f"--unset={name}" for name in os.environ if name not in environment]

        def keep(line: str) -> None:
            self.written.write(line + "\n")
            on_line(line)

        with self.answers.open("rb") as newlines:
            command = ["env", *others, *command]
            status = process.stream_lines(command, keep, cwd=self.objects, env=environment, stdin=newlines)
        self.written.flush()
        if status != 0:
            self._explain(status)

    def _explain(self, status: int) -> None:
        lines = [line for line in self.log.read_text(errors="replace").splitlines() if not line.startswith("+ ")]
        if build_log.disk_full(lines) or shutil.disk_usage(self.objects).free < FULL_BYTES:
            raise DiskFull(path=self.state.builds)
        what = f"{self.plan.source.spec} ({self.plan.source.version})"
        if status < 0:
            raise BuildKilled(what=what, signal=-status)
        said = build_log.first_error(lines) if lines else f"it ended with status {status}"
        raise BuildFailed(what=what, error=said, log=self.log)


@contextmanager
def workplace(plan: BuildPlan, state: State) -> Iterator[Work]:
    """A fresh object directory, gone at the end; the log stays if the build failed, and only then."""
    log = places.log_file(plan.objects_key, state)
    try:
        with disk_full_is_said(log), log.open("w") as written:
            objects = places.prepare(plan.tree, plan.objects_key, state)
            yield Work(plan=plan, state=state, objects=objects, log=log, written=written)
        log.unlink()
    except (KeyboardInterrupt, DiskFull):
        log.unlink(missing_ok=True)
        raise
    finally:
        remove_tree(places.directory(plan.objects_key, state))


def _environment(plan: BuildPlan, objects: Path) -> dict[str, str]:
    """All of it: a KCFLAGS, an ARCH or a MAKEFLAGS that the user happens to have set must not get into an image."""
    theirs = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**theirs, **ccache.environment(objects.parent), **plan.environment}


def sweep(keep: str, state: State) -> None:
    """Remove what builds that were killed left behind: their locks are free, and their objects are worth nothing."""

    def busy() -> None:
        raise Busy

    for left in state.builds.iterdir():
        if left.is_dir() and left.name != keep:
            with suppress(Busy), state.lock(f"image-{left.name}", on_wait=busy):
                remove_tree(left)
