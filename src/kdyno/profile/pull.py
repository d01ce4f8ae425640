"""`kdyno profile pull`: fetching the counters of an instrumented kernel from another machine, summed over its runs."""

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
from kdyno.profile.gcda import WORD, CounterAllowance, GcovFile, encode_gcda
from kdyno.profile.gcda_sums import require_counts, sum_files
from kdyno.profile.instrumented import gcc_profile
from kdyno.profile.pgod import Kernel, PgodRun, Sent, read_sent
from kdyno.profile.remote import remote_output

RECORD, PROFILE = "pulled.json", "gcc.profile"
"""Files in the directory of the counters, with other names than theirs. A recipe's `from` names the profile."""


class TargetThere(UserError):
    message = "{path} already exists"
    hint = "name another directory with -o, or remove it"


class NothingSent(UserError):
    message = "{host} has no snapshots"
    hint = "run `kdyno-pgod status` on that machine to list its snapshots"


class NamesCollide(UserError):
    message = "{name} cannot be written: the name of another object makes it a directory"
    hint = "pull the boots of one kernel with --boot"


class PulledNameTooLong(UserError):
    message = "{name}... cannot be written: its name is too long for a file below {out}"
    hint = "name a directory with a shorter path with -o; if that is not enough, the name is not that of an object"


class PulledRun(Frozen):
    """A run whose counters were summed or left out."""

    boot: str
    run: int
    kernel: Kernel
    sequence: int
    taken: str
    """The time in UTC, in ISO 8601."""
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
    """The output of `kdyno profile pull --json`, and the file `pulled.json` in the directory of the counters."""

    host: str
    directory: str
    """The local directory of the counters."""
    kernel: Kernel
    runs: tuple[PulledRun, ...]
    left_out: tuple[PulledRun, ...]
    """The runs of other kernels than that of the newest run."""
    objects: int
    bytes: int
    common: str
    """The longest common directory of all objects: the directory in which the kernel was compiled, or one below it."""
    executions: int
    """The sum of all counters."""


def pull(
    host: str, out: Path, *, program: str, sudo: bool, directory: str | None, boots: Sequence[str], talk: Talk
) -> Pulled:
    """Fetch the last snapshot of each run, sum those of the newest run's kernel, and write the sums to the new `out`.

    `directory` is the directory of the snapshots on the host. Raises TargetThere, NotWritable, NoHost and what
    `remote_output` and `read_sent` raise; OtherBuild if objects of one name differ, GcdaDamaged if there are more than
    a kernel has, NameTooLong, NamesCollide, and NothingCounted.
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
            del part  # otherwise it is in memory together with the next part
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
    """The sums of the counters of runs, added run by run: memory holds only the counters of one kernel."""

    def __init__(self) -> None:
        self.runs: list[PulledRun] = []
        self._files: dict[str, GcovFile] = {}
        self._budget = CounterAllowance()
        self._largest = 0

    def add(self, part: Sent) -> None:
        """Add the counters of one run.

        Raises OtherBuild and CountTooLarge, and GcdaDamaged if the runs have more objects than a kernel has.
        """
        for name, file in part.objects.items():
            if name in self._files:
                self._files[name] = sum_files([(self._files[name], 1), (file, 1)])
            else:
                self._budget.take(file)
                self._files[name] = file
        self._largest += _largest(part)
        self.runs.append(PulledRun.of(part.run))

    def objects(self, host: str) -> dict[str, GcovFile]:
        """Return the sums by the name of the object, sorted, with gcc's object summary.

        The summary is that of libgcov: the number of runs, and the sum of each run's largest counter, limited to the 32
        bits of the file format (compute_summary() in libgcc/libgcov-driver.c). Raises NothingCounted.
        """
        summary = (len(self.runs), min(self._largest, WORD - 1))
        files = {name: replace(file, summary=summary) for name, file in sorted(self._files.items())}
        require_counts(list(files.values()), f"the pull from {host}")
        return files


def _largest(part: Sent) -> int:
    """Return the largest counter of a run."""
    functions = (function for file in part.objects.values() for function in file.functions)
    return max((max(function.arcs, default=0) for function in functions), default=0)


def _require_new(out: Path) -> None:
    if os.path.lexists(out):
        raise TargetThere(path=out)
    if not out.absolute().parent.is_dir():
        raise NotWritable(path=out, why="its directory does not exist")


def _write(objects: dict[str, GcovFile], pulled: Pulled, out: Path) -> Pulled:
    """Write the directory atomically: it is made next to its place, and renamed."""
    folder = out.absolute().parent
    with translate_disk_full(folder):
        incoming = Path(tempfile.mkdtemp(dir=folder, prefix=f".{out.name[:40]}-"))
        try:
            size = 0
            for name, file in objects.items():
                content = encode_gcda(file)
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
    """Return lines that describe the pulled counters."""
    lines = [run.in_words() for run in pulled.runs]
    lines += [f"left out, a run of kernel {run.kernel.in_words()}: {run.in_words()}" for run in pulled.left_out]
    objects, runs = format_count(pulled.objects, "object"), format_count(len(pulled.runs), "run")
    kernel, size = pulled.kernel.in_words(), f"{pulled.bytes / 1e6:.1f} MB"
    lines.append(f"{pulled.directory}: {objects} of kernel {kernel}, {runs}, {size}")
    return [*lines, f'profile = {{ use = "pgo", from = "{pulled.directory}/{PROFILE}" }} compiles with them']
