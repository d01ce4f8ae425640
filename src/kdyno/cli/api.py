"""kdyno from Python: `from kdyno import ab, run, Machine`.

The functions correspond to the commands of the same names, with the same state directory, store and errors: they reuse
the results of commands, and commands reuse theirs. They print nothing on standard output; progress goes to standard
error, unless `quiet`. Every error that a user can fix is a `KdynoError` with a message and a hint.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from kdyno.base.state import State
from kdyno.base.talk import Talk
from kdyno.base.text import clean_lines
from kdyno.boot.console import read_console
from kdyno.boot.registry import read_machine
from kdyno.judge.verdicts.model import RunReport
from kdyno.report.output import report_as_text
from kdyno.runs.bootone import boot_command, find_kernel
from kdyno.runs.experiment.ab import Options, experiment_for
from kdyno.runs.experiment.models import Experiment
from kdyno.runs.experiment.resolve import load_experiment
from kdyno.runs.session import Session
from kdyno.store.artefacts import Artefacts
from kdyno.store.store import Store
from kdyno.store.url import store_url
from kdyno.understand.confirm import confirm
from kdyno.understand.judged_run import run_and_judge

StrPath = str | os.PathLike[str]


@dataclass(frozen=True)
class Result:
    """A run that was carried out and judged."""

    report: RunReport
    """Verdicts (`report.comparisons`), values and records: what `kdyno report --json` prints."""
    given_up: Mapping[str, str]
    """The reason by name of each variant whose boots all failed."""
    lost: Mapping[str, str]
    """The reason by name of each boot that the host lost. The same call tries them again."""
    artefacts: Artefacts

    def __str__(self) -> str:
        """Return the tables that `kdyno report` prints."""
        return report_as_text(self.report)

    def write_html(self, path: StrPath) -> None:
        """Write the report as one HTML file, as `--html` does. Raises NotWritable and DiskFull."""
        from kdyno.report.html import write_html

        write_html(self.report, Path(path), self.artefacts)


def run(
    experiment: StrPath,
    *,
    again: bool = False,
    state: StrPath | None = None,
    store: str | None = None,
    quiet: bool = True,
) -> Result:
    """Carry out the experiment of a TOML file, or the rest of it, and judge it.

    With `again` a complete experiment is carried out once more. `state` and `store` are the values of `--state` and
    `--store`; None has the same default. Raises KdynoError.
    """
    return _carry_out(load_experiment(Path(experiment)), again=again, state=state, store=store, quiet=quiet)


def ab(
    baseline: str,
    *others: str,
    tests: Sequence[str] = (),
    blocks: int | str | None = None,
    layouts: int | None = None,
    margin: float | None = None,
    lane: str | None = None,
    machine: str = "",
    source: str = "",
    config: str | None = None,
    again: bool = False,
    state: StrPath | None = None,
    store: str | None = None,
    quiet: bool = True,
) -> Result:
    """Compare kernels in the short form of `kdyno ab`: each is `plain`, a recipe (`opt=O3`), a source (`.#v6.12`),
    or a source and a recipe (`.#HEAD,opt=O3`).

    `tests` are names of tests, suites and workloads; `blocks` is how often each kernel boots, or "auto"; `margin` is a
    fraction. All are options of `kdyno ab`. Relative paths start in the current directory. Raises KdynoError.
    """
    options = Options(tuple(tests), blocks, layouts, margin, lane, machine, source, config)
    _, experiment = experiment_for([baseline, *others], options, Path.cwd())
    return _carry_out(experiment, again=again, state=state, store=store, quiet=quiet)


@dataclass(frozen=True)
class CommandResult:
    """The result of a command in a guest."""

    status: int
    """The command's exit status."""
    stdout: bytes
    stderr: bytes
    """Both streams are as the guest wrote them, and may contain control sequences of a terminal."""
    console: str
    """The end of the kernel's console, without control sequences."""


class Machine:
    """A machine for single boots: `Machine(lane="wall", memory_mb=512)`.

    Settings are those of `[machine]` in an experiment, with the same defaults; `type` is the kind of machine. Raises
    BadMachine.
    """

    def __init__(self, **settings: Any) -> None:
        self.settings = read_machine(settings, "Machine")

    def boot(
        self,
        kernel: StrPath,
        command: Sequence[str],
        *,
        append: Sequence[str] = (),
        seed: int = 1,
        state: StrPath | None = None,
        quiet: bool = True,
    ) -> CommandResult:
        """Boot a kernel, run a command in it, and return its result.

        `kernel` is a bzImage, a kernel build directory, or the key of an image that kdyno built; `append` are words for
        the kernel command line. Raises KdynoError; BootFailed if the command left no exit status.
        """
        state_directory, stdout, stderr = _state(state), io.BytesIO(), io.BytesIO()
        with state_directory.scratch("api") as scratch:
            console = scratch / "console"
            status = boot_command(
                self.settings,
                find_kernel(str(kernel), state_directory),
                tuple(command),
                words=tuple(append),
                seed=seed,
                console=console,
                state=state_directory,
                talk=Talk(quiet),
                stdout=stdout,
                stderr=stderr,
            )
            return CommandResult(status, stdout.getvalue(), stderr.getvalue(), clean_lines(read_console(console)))


def _carry_out(experiment: Experiment, *, again: bool, state: StrPath | None, store: str | None, quiet: bool) -> Result:
    state_directory = _state(state)
    with Store(*store_url(store, state_directory, "make")) as opened_store:
        session = Session(state_directory, opened_store, Talk(quiet))
        judged = run_and_judge(experiment, session, again=again, analysed=True)
        report, outcome = judged.report, judged.outcome
        if experiment.confirm and not outcome.lost:
            confirmed = confirm(report, experiment, session, again=again)
            report, outcome = confirmed.report, replace(outcome, lost=confirmed.outcome.lost)
    return Result(report, outcome.given_up, outcome.lost, judged.artefacts)


def _state(path: StrPath | None) -> State:
    return State(Path(path)) if path else State.default()
