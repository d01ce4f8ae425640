"""Build an image: configure, compile, keep. The same plan is never built twice, not even by two kdynos at once."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import kdyno
from kdyno import process
from kdyno.errors import InfrastructureError, UserError
from kdyno.kernel import build_log, ccache, images, kconfig, kconfig_check, layout
from kdyno.kernel.image import Image, ImageRecord
from kdyno.kernel.images import load_image
from kdyno.kernel.knobs.kconfig import parse_fragment
from kdyno.kernel.plan import BuildPlan, plan_build
from kdyno.kernel.trees import remove_tree
from kdyno.state import DiskFull, State, disk_full_is_said

__all__ = [
    "BuildFailed",
    "BuildKilled",
    "BuildPlan",
    "Progress",
    "build",
    "check_configuration",
    "load_image",
    "plan_build",
]

Progress = Callable[[int, int | None, str], None]
"""Lines of output so far, lines expected (None: unknown), the current line."""

NEEDED_MB = 2500
"""Free space that a build of a trimmed configuration wants: objects, then vmlinux with its debug information."""
FULL_BYTES = 1_000_000
"""A disk with less free space than this when a command fails is why it failed; not every tool says so (dash's echo)."""
TARGETS = ("vmlinux", "bzImage")
PASSED_ON = ("PATH", "HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")
"""What a build sees of the user's environment: where tools are, and where ccache and the compiler keep files."""


class BuildFailed(UserError):
    message = "{what} doesn't build: {error}"
    hint = "the whole log is in {log}"


class BuildKilled(InfrastructureError):
    message = "the build of {what} was ended from outside, by signal {signal}"
    hint = "if nobody did that, the host may be short of memory; run the same command again, with fewer jobs"


class Busy(Exception):
    """A lock is held by another kdyno; never leaves this module."""


def build(plan: BuildPlan, state: State, progress: Progress, jobs: int | None = None) -> Image:
    """Return the image of the plan, built now unless it was built before. Ctrl-C leaves nothing half-written."""
    if images.directory(plan.key, state).is_dir():
        return load_image(plan.key, state)
    waiting = "waiting for another kdyno that builds the same image"
    with state.lock(f"image-{plan.key}", on_wait=lambda: progress(0, None, waiting)):
        if images.directory(plan.key, state).is_dir():
            return load_image(plan.key, state)
        _sweep(plan.key, state)
        state.require_space(NEEDED_MB)
        started = time.monotonic()
        with _workplace(plan, state) as work:
            progress(0, None, "configuring")
            notes = _configure(work)
            steps = _compile(work, progress, jobs or os.cpu_count() or 1)
            record = _record(work, notes, steps, time.monotonic() - started)
            return images.store_image(record, work.objects, work.log, state)


def check_configuration(plan: BuildPlan, state: State) -> tuple[str, ...]:
    """Only configure, in seconds: raises what `build` would raise about Kconfig; returns the notes it would record."""
    if images.directory(plan.key, state).is_dir():
        return load_image(plan.key, state).record.notes
    with state.lock(f"image-{plan.key}"), _workplace(plan, state) as work:
        notes = _configure(work)
        work.log.unlink()
        return notes


@dataclass(frozen=True)
class _Work:
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
def _workplace(plan: BuildPlan, state: State) -> Iterator[_Work]:
    """A fresh object directory, gone at the end; the log stays if the build failed, and only then."""
    log = layout.log_file(plan.key, state)
    try:
        with disk_full_is_said(log), log.open("w") as written:
            objects = layout.prepare(plan.tree, plan.key, state)
            yield _Work(plan=plan, state=state, objects=objects, log=log, written=written)
    except (KeyboardInterrupt, DiskFull):
        log.unlink(missing_ok=True)
        raise
    finally:
        remove_tree(layout.directory(plan.key, state))


def _environment(plan: BuildPlan, objects: Path) -> dict[str, str]:
    """All of it: a KCFLAGS, an ARCH or a MAKEFLAGS that the user happens to have set must not get into an image."""
    theirs = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    return {**theirs, **ccache.environment(objects.parent), **plan.environment}


def _make(plan: BuildPlan, objects: Path) -> list[str]:
    return ["make", "-C", str(objects.parent), f"O={objects}", *ccache.make_words(plan.make, plan.toolchain)]


def _configure(work: _Work) -> tuple[str, ...]:
    """Make .config, and stop unless it holds what was asked. Return notes on what the base asked in vain."""
    plan = work.plan
    for command in kconfig.steps(plan.base, plan.asks, work.objects, _make(plan, work.objects)):
        work.run(command)
    config = kconfig_check.read_config((work.objects / ".config").read_text())
    kconfig_check.refuse(kconfig_check.unmet(plan.asks, config, plan.tree))
    if plan.base.kind != "fragment":
        return plan.notes
    overruled = {ask.symbol for ask in plan.asks}
    wished = parse_fragment(plan.base.text, f"base {plan.base.spec}")
    lines = {ask.symbol: ask for ask in wished if ask.symbol not in overruled}
    misses = kconfig_check.unmet(lines.values(), config, plan.tree)
    return (*plan.notes, *(miss.text for miss in misses if miss.instead not in overruled))


def _compile(work: _Work, progress: Progress, jobs: int) -> int:
    """Run make to the end; return how many lines it took."""
    expected = images.expected_steps(work.plan.base.spec, work.state)
    done = 0

    def on_line(line: str) -> None:
        nonlocal done
        done += 1
        progress(done, max(expected, done) if expected else None, line.strip())

    work.run([*_make(work.plan, work.objects), f"-j{jobs}", *TARGETS], on_line)
    return done


def _record(work: _Work, notes: tuple[str, ...], steps: int, seconds: float) -> ImageRecord:
    plan = work.plan
    return ImageRecord(
        key=plan.key,
        source=plan.source,
        recipe=plan.recipe.model_copy(update={"cmdline": ()}),
        base=plan.base.spec,
        toolchain=plan.toolchain.identity,
        release=(work.objects / "include/config/kernel.release").read_text().strip(),
        sizes=images.sizes(work.objects),
        build_seconds=round(seconds, 1),
        steps=steps,
        make=plan.make,
        environment=plan.environment,
        config_sha256=images.content_digest(work.objects / ".config"),
        kdyno=kdyno.__version__,
        patches=plan.patches,
        facts=plan.facts,
        needs=plan.needs,
        notes=notes,
    )


def _sweep(key: str, state: State) -> None:
    """Remove what builds that were killed left behind: their locks are free, and their objects are worth nothing."""

    def busy() -> None:
        raise Busy

    for left in state.builds.iterdir():
        if left.is_dir() and left.name != key:
            with suppress(Busy), state.lock(f"image-{left.name}", on_wait=busy):
                remove_tree(left)
