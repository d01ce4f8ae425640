"""`kdyno profile pull`: what an instrumented kernel counted on another machine, added up over its runs."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.files import NotWritable, write_whole
from kdyno.base.frozen import Frozen
from kdyno.base.state import translate_disk_full
from kdyno.base.talk import Talk
from kdyno.base.text import format_count, harmless_json
from kdyno.profile.gcda import WORD, CounterAllowance, GcovFile, written
from kdyno.profile.gcda_sums import added, require_counts
from kdyno.profile.instrumented import gcc_profile
from kdyno.profile.pgod import Kernel, PgodRun, Sent, read_sent
from kdyno.profile.remote import remote_output

RECORD, PROFILE = "pulled.json", "gcc.profile"
"""Beside the counters; no names of theirs. The profile is what a recipe's `from` takes."""


class TargetThere(UserError):
    message = "{path} is there already"
    hint = "name another directory with -o, or remove that one"


class NothingSent(UserError):
    message = "{host} has no snapshots"
    hint = "`kdyno-pgod status` on that machine says what there is"


class NamesCollide(UserError):
    message = "{name} can't be written: another object's name makes it a directory"
    hint = "pull the boots of one kernel with --boot"


class PulledNameTooLong(UserError):
    message = "{name}... can't be written: its name is too long for a file below {out}"
    hint = "name a directory with a shorter path with -o; if that is not enough, it is the name of no object"


class PulledRun(Frozen):
    """A run that the counters are of, or would be."""

    boot: str
    run: int
    kernel: Kernel
    sequence: int
    taken: str
    """UTC, as ISO 8601 has it."""
    objects: int

    @classmethod
    def of(cls, run: PgodRun) -> PulledRun:
        taken = datetime.fromtimestamp(min(run.taken, 2**37), UTC).isoformat(timespec="seconds")
        return cls(
            boot=run.boot, run=run.run, kernel=run.kernel, sequence=run.sequence, taken=taken, objects=run.objects
        )

    def in_words(self) -> str:
        return f"boot {self.boot}, run {self.run}, snapshot {self.sequence} of {self.taken}"


class Pulled(Frozen):
    """`kdyno profile pull --json`, and the file `pulled.json` beside the counters."""

    host: str
    directory: str
    """Where they are, here."""
    kernel: Kernel
    runs: tuple[PulledRun, ...]
    left_out: tuple[PulledRun, ...]
    """Of other kernels than the newest run's."""
    objects: int
    bytes: int
    common: str
    """The longest directory, below this one, that all objects are in: where the kernel was compiled, or below it."""
    executions: int
    """The sum of all counters."""


def pull(
    host: str, out: Path, *, program: str, sudo: bool, directory: str | None, boots: Sequence[str], talk: Talk
) -> Pulled:
    """Fetch the last snapshot of each run, add those of the newest run's kernel up, and write them to the new `out`.

    `directory` is where snapshots are there. Raises TargetThere, NotWritable, NoHost and what `remote_output` raises;
    what `read_sent` raises; OtherBuild if objects of one name differ, GcdaDamaged if there are more than a kernel has,
    NameTooLong, NamesCollide, and NothingCounted.
    """
    _require_new(out)
    command = [*(("sudo", "-n") if sudo else ()), program, "send"]
    command += ["--directory", directory] if directory else []
    command += [word for boot in boots for word in ("--boot", boot)]
    newest: Kernel | None = None
    sums = Sums()
    left_out: list[PulledRun] = []
    with remote_output(host, command) as read, talk.working(f"pulling from {host}") as advance:
        total = 0
        for part in read_sent(read, host):
            if not isinstance(part, Sent):
                newest, total = (part.runs[-1].kernel if part.runs else None), len(part.runs)
            elif part.run.kernel == newest:
                sums.add(part)
            else:
                left_out.append(PulledRun.of(part.run))
            advance(len(sums.runs) + len(left_out), total, "snapshots")
            del part  # else it is in memory together with the next one
    if newest is None:
        raise NothingSent(host=host)
    objects = sums.objects(host)
    pulled = Pulled(
        host=host,
        directory=str(out.absolute()),
        kernel=newest,
        runs=tuple(sums.runs),
        left_out=tuple(left_out),
        objects=len(objects),
        bytes=0,
        common=os.path.commonpath([os.path.dirname(name) for name in objects]),  # noqa: PTH120
        executions=sum(sum(function.arcs) for file in objects.values() for function in file.functions),
    )
    return _write(objects, pulled, out)


class Sums:
    """The counters of runs, added up one run after the other: no more of them are in memory than one kernel has."""

    def __init__(self) -> None:
        self.runs: list[PulledRun] = []
        self._files: dict[str, GcovFile] = {}
        self._budget = CounterAllowance()
        self._largest = 0

    def add(self, part: Sent) -> None:
        """Raises OtherBuild and CountTooLarge, and GcdaDamaged if the runs have more objects than a kernel has."""
        for name, file in part.objects.items():
            if name in self._files:
                self._files[name] = added([(self._files[name], 1), (file, 1)])
            else:
                self._budget.take(file)
                self._files[name] = file
        self._largest += _largest(part)
        self.runs.append(PulledRun.of(part.run))

    def objects(self, host: str) -> dict[str, GcovFile]:
        """The sums by the object's name, sorted, with gcc's object summary.

        As libgcov has it: the number of runs, and the sum of each run's largest counter, cut to the 32 bits that a file
        has for it (compute_summary() in libgcc/libgcov-driver.c). Raises NothingCounted.
        """
        summary = (len(self.runs), min(self._largest, WORD - 1))
        files = {name: replace(file, summary=summary) for name, file in sorted(self._files.items())}
        require_counts(list(files.values()), f"what {host} counted")
        return files


def _largest(part: Sent) -> int:
    """The largest counter of a run."""
    functions = (function for file in part.objects.values() for function in file.functions)
    return max((max(function.arcs, default=0) for function in functions), default=0)


def _require_new(out: Path) -> None:
    if os.path.lexists(out):
        raise TargetThere(path=out)
    if not out.absolute().parent.is_dir():
        raise NotWritable(path=out, why="its directory does not exist")


def _write(objects: dict[str, GcovFile], pulled: Pulled, out: Path) -> Pulled:
    """The directory appears whole: it is made beside its place."""
    folder = out.absolute().parent
    with translate_disk_full(folder):
        incoming = Path(tempfile.mkdtemp(dir=folder, prefix=f".{out.name[:40]}-"))
        try:
            size = 0
            for name, file in objects.items():
                content = written(file)
                size += len(content)
                _write_object(incoming / name, content, name, out)
            pulled = pulled.model_copy(update={"bytes": size})
            (incoming / PROFILE).write_bytes(gcc_profile(objects))
            write_whole(incoming / RECORD, harmless_json(pulled.model_dump_json(indent=2)) + "\n")
            incoming.chmod(0o755)
            os.sync()
            incoming.rename(out)
        finally:
            shutil.rmtree(incoming, ignore_errors=True)
    return pulled


def _write_object(path: Path, content: bytes, name: str, out: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    except (FileExistsError, NotADirectoryError, IsADirectoryError) as error:
        raise NamesCollide(name=name) from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise PulledNameTooLong(name=name[:100], out=out) from error
        raise


def summary_lines(pulled: Pulled) -> list[str]:
    """What was pulled, in words."""
    lines = [run.in_words() for run in pulled.runs]
    lines += [f"left out, as it is of kernel {run.kernel.in_words()}: {run.in_words()}" for run in pulled.left_out]
    objects, runs = format_count(pulled.objects, "object"), format_count(len(pulled.runs), "run")
    kernel, size = pulled.kernel.in_words(), f"{pulled.bytes / 1e6:.1f} MB"
    lines.append(f"{pulled.directory}: {objects} of kernel {kernel}, {runs}, {size}")
    return [*lines, f'profile = {{ use = "pgo", from = "{pulled.directory}/{PROFILE}" }} compiles by them']
