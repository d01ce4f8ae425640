"""Running make for a build: a fresh object directory, a log, and an environment that holds nothing by chance."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from kdyno.base import process
from kdyno.base.errors import InfrastructureError, Unbuildable
from kdyno.base.state import DiskFull, State, translate_disk_full
from kdyno.kernel import build_directory, build_log, ccache, inputs, lkd
from kdyno.kernel.arch import X86_64
from kdyno.kernel.delegation import ccd
from kdyno.kernel.delegation.resolved import INPUT
from kdyno.kernel.environment import nothing_but, passed_on
from kdyno.kernel.plan import BuildPlan
from kdyno.kernel.source_trees import Say, remove_tree

FULL_BYTES = 1_000_000
"""A disk with less free space than this when a command fails is why it failed; not every tool says so (dash's echo)."""
PACKAGED = ("Makefile", "include", "scripts")
"""The entries at the top of the source that scripts/package/ packs without following links."""
KEY = re.compile("[0-9a-f]{64}")
"""The name of an object directory."""
OBJECT = "vmlinux.o"
"""With the linker script a target for which Kbuild visits every directory. Calling both old (-o) spares that, a quarter
of the time of a relink. The option doesn't reach a make below, so it has to be the one in the object directory. A
kernel older than 6.1, or one that starts another make there too, visits all directories and finds nothing to do.
"""


class BuildFailed(Unbuildable):
    message = "{what} doesn't build: {error}"
    hint = "see the whole log in {log}"


class BuildKilled(InfrastructureError):
    message = "the build of {what} was ended from outside, by signal {signal}"
    hint = "run the same command again, with fewer jobs if the host may be short of memory"


class CcacheFailed(InfrastructureError):
    message = "{what} doesn't build: {error}"
    hint = "set CCACHE_DISABLE=1 to build without it; the whole log is in {log}"


@dataclass(frozen=True)
class BuildWork:
    """A build under way."""

    plan: BuildPlan
    state: State
    objects: Path
    log: Path
    written: IO[str]
    """The log, open."""
    cache: dict[str, str]
    """The environment of ccache; empty if it is not used."""
    say: Say
    """The callback that reports to the user what the build continues without."""
    heard: Say
    """Called with each line that a command prints."""
    names_compiler: bool = False
    """Whether the words of make name the compiler itself, even if ccache is used."""

    @property
    def answers(self) -> Path:
        """Return the input of commands: a default for every question that localmodconfig may ask."""
        path = self.objects.parent / "answers"
        if not path.exists():
            path.write_text("\n" * 10_000, encoding="utf-8")
        return path

    @property
    def words(self) -> tuple[str, ...]:
        """Return the words of every make."""
        named = [inputs.with_paths(word, self.plan.inputs) for word in self.plan.make]
        words = ccd.make_words(lkd.make_words(named, self.objects.parent), self.objects.parent)
        is_prefixed = self.cache and not self.plan.delegation and not self.names_compiler
        return ccache.make_words(words, self.plan.toolchain) if is_prefixed else words

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables that the plan sets for every make."""
        set_ = {name: inputs.with_paths(value, self.plan.inputs) for name, value in self.plan.environment.items()}
        if self.plan.delegation is None:
            return set_
        build = self.objects.parent
        plan_file = next(inputs.placed(file, build) for file in self.plan.inputs if file.name == INPUT)
        return {**set_, **ccd.environment(build, plan_file, ccache.COMMAND if self.cache else "")}

    @property
    def make(self) -> list[str]:
        """Return the command that every make starts with."""
        return ["make", "-C", str(self.objects.parent), f"O={self.objects}", *self.words]

    def make_plain(self, objects: Path) -> list[str]:
        """Return the make command for another object directory, with the compiler itself if ccd stands in for it."""
        words = (word for word in self.plan.make if word != ccd.COMPILER_WORD)
        named = [inputs.with_paths(word, self.plan.inputs) for word in words]
        return ["make", "-C", str(objects.parent), f"O={objects}", *lkd.make_words(named, objects.parent)]

    @property
    def make_again(self) -> list[str]:
        """Return the make command if all objects are there and only links are to be made."""
        old = [word for name in (OBJECT, self.plan.arch.linker_script) for word in ("-o", name)]
        return ["make", "--no-print-directory", "-f", "../Makefile", *old, *self.words]

    def run(self, command: Sequence[str], on_line: Callable[[str], None] = lambda _: None) -> None:
        """Run one command with exactly the environment of this build, and everything it says in the log.

        Where ccache fails, the command goes on without it. Raise InputMissing.
        """
        inputs.place(self.plan.inputs, self.objects.parent)
        status, lines = self._attempt(command, on_line)
        if status != 0 and self.cache and (why := build_log.ccache_error(lines)):
            # The words of make stay as they are: with others it would compile anew what is there.
            self.cache["CCACHE_DISABLE"] = "1"
            self.say(ccache.LEFT_OUT.format(why=why))
            status, lines = self._attempt(command, on_line)
        self.written.flush()
        if status != 0:
            self._explain(status, lines)

    def _attempt(self, command: Sequence[str], on_line: Callable[[str], None]) -> tuple[int, list[str]]:
        """Return the status and the lines of a command. The user's own part of the environment is neither logged nor in
        its words.
        """
        ours = [f"{name}={value}" for name, value in self.environment.items()]
        self.written.write(f"+ {process.quote(['env', '-i', 'PATH=...', *ours, *command])}\n")
        # All of it: a KCFLAGS, an ARCH or a MAKEFLAGS that the user happens to have set must not get into an image.
        environment = {**passed_on(self.objects.parent / build_directory.TEMPORARY), **self.cache, **self.environment}
        lines: list[str] = []

        def keep(line: str) -> None:
            lines.append(line)
            self.written.write(line + "\n")
            self.heard(line)
            on_line(line)

        with self.answers.open("rb") as newlines:
            words = [*nothing_but(environment), *command]
            return process.stream_lines(words, keep, cwd=self.objects, env=environment, stdin=newlines), lines

    def _explain(self, status: int, lines: Sequence[str]) -> None:
        if build_log.disk_full(lines) or shutil.disk_usage(self.objects).free < FULL_BYTES:
            raise DiskFull(path=self.state.builds)
        what = f"{self.plan.source.spec} ({self.plan.source.version})"
        if status < 0:
            raise BuildKilled(what=what, signal=-status)
        error = build_log.first_error(lines) if lines else f"it ended with status {status}"
        failure = CcacheFailed if build_log.ccache_error([error]) else BuildFailed
        raise failure(what=what, error=error, log=self.log)


@contextmanager
def build_workspace(
    plan: BuildPlan,
    state: State,
    say: Say = lambda _: None,
    heard: Say = lambda _: None,
    *,
    is_packaged: bool = False,
    uses_ccache: bool = True,
    is_first: bool = False,
) -> Iterator[BuildWork]:
    """Yield a fresh object directory, which is removed at the end; the log is kept only if the build failed.

    With `is_packaged` the kernel's own packaging runs there: it finds files instead of links where it looks for files,
    and the compiler by its name. `is_first` says that no build of another configuration could use what ccache keeps of
    this one, or the other way round.
    """
    log = build_directory.log_file(plan.objects_key, state)
    try:
        log.unlink(missing_ok=True)  # whatever it is, even a link
        with translate_disk_full(log), log.open("x", encoding="utf-8", errors="surrogateescape") as written:
            copied = PACKAGED if is_packaged else ()
            objects = build_directory.prepare(plan.tree, plan.objects_key, state, copied)
            cache = ccache.environment(objects.parent) if uses_ccache else {}
            if cache and (why := ccache.why_not(plan.toolchain.command, objects.parent)):
                say(ccache.LEFT_OUT.format(why=why))
                cache = {}
            names_compiler = is_packaged and plan.delegation is None
            if cache and names_compiler:
                cache |= ccache.stand_in(plan.toolchain.command, objects.parent)
            elif cache and is_first and plan.arch is X86_64 and not ccache.includes_binaries(plan.tree):
                cache |= ccache.in_depend_mode(objects.parent)
            yield BuildWork(plan, state, objects, log, written, cache, say, heard, names_compiler=names_compiler)
        log.unlink()
    except (KeyboardInterrupt, DiskFull, build_directory.BuildNameTaken):
        log.unlink(missing_ok=True)
        raise
    finally:
        remove_tree(build_directory.directory(plan.objects_key, state))


def sweep(keep: str, state: State) -> None:
    """Remove what builds that were killed left behind: their locks are free, and their objects are worth nothing.

    What has another name, or lies where a link leads to, isn't kdyno's.
    """
    if state.builds.is_symlink():
        return
    for left in state.builds.iterdir():
        if left.is_dir() and left.name != keep and KEY.fullmatch(left.name):
            with state.lock_if_free(f"image-{left.name}") as free:
                if free:
                    remove_tree(left)
                    build_directory.log_file(left.name, state).unlink(missing_ok=True)
