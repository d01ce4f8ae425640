"""Stopped amid a write: no half-written file stays. A terminal that is closed: it ends with the status of a signal."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from tests.cli.conftest import Lab
from tests.cli.test_resume import STUCK
from tests.unit.kernel_toy import toy_tree

CHECKOUT = Path(__file__).parents[2]

IN_THE_WRITE = """
import shutil, time
from kdyno.base import stop_signals
def wait_for_a_signal():
    print("in the write", flush=True)
    for _ in range(6000):
        time.sleep(0.01)
        if stop_signals.stop_requested():
            return
    raise SystemExit("no signal came")
"""
COPYING = (
    IN_THE_WRITE
    + """
copy = shutil.copyfileobj
def half(source, target, *rest):
    content = source.read()
    target.write(content[: len(content) // 2])
    target.flush()
    wait_for_a_signal()
    target.write(content[len(content) // 2 :])
shutil.copyfileobj = half
"""
)
PACKING = (
    IN_THE_WRITE
    + """
import gzip
write, count = gzip.GzipFile.write, 0
def slow(self, content):
    global count
    count += 1
    if count == 4:
        self.fileobj.flush()
        wait_for_a_signal()
    return write(self, content)
gzip.GzipFile.write = slow
"""
)
CALLED = "{}\nimport sys\nfrom kdyno.cli.main import main\nraise SystemExit(main(sys.argv[1:]))\n"
STOPS = [signal.SIGTERM, signal.SIGHUP, signal.SIGINT]
LISTENS = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGTERM, signal.SIG_DFL)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
"""
"""The tests may run in a background job or under nohup, which ignore some of these."""


EXPERIMENT = """
name = "x"
source = "{}"
config = "make:tinyconfig"
baseline = "O2"
variants.O2.opt = "O2"
variants.O3.opt = "O3"
workload.tests = ["lat_syscall"]
"""


def started(code: str, *words: str | Path) -> subprocess.Popen[str]:
    """A program in Python, which finds what the tests have."""
    command = [sys.executable, "-c", code, *words]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=CHECKOUT)


def stopped(child: subprocess.Popen[str], number: signal.Signals) -> None:
    """Send a signal to one that is in a write, and see how it ends."""
    assert child.stdout is not None
    line = child.stdout.readline()
    child.send_signal(number)
    _, err = child.communicate(timeout=60)
    assert (line, child.returncode) == ("in the write\n", 128 + number), err
    assert "Traceback" not in err


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_while_an_artefact_is_copied_leaves_no_part_of_it(lab: Lab, number: signal.Signals) -> None:
    experiment = lab.experiment()
    stopped(lab.start("run", experiment, "-q", script=LISTENS + COPYING), number)
    kept = [path for path in (lab.state / "artefacts").rglob("*") if path.is_file()]
    assert not [path for path in kept if path.name.startswith(".")]
    assert not list((lab.state / "boots").iterdir())
    assert lab("run", experiment).status == 0


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_while_a_run_is_packed_leaves_what_was_there(lab: Lab, number: signal.Signals) -> None:
    assert lab("run", lab.experiment(), "-q").status == 0
    packed = lab.directory / "run.kdyno"
    packed.write_text("what was there")
    before = sorted(lab.directory.iterdir())
    stopped(lab.start("store", "export", "latest", str(packed), script=LISTENS + PACKING), number)
    assert packed.read_text() == "what was there"
    assert sorted(lab.directory.iterdir()) == before


UNPACKING = (
    IN_THE_WRITE
    + """
from kdyno.base import process
run, attempt = process.stream_lines, process.attempt
def unpack(*words, **rest):
    status = run(*words, **rest)
    wait_for_a_signal()
    return status
def remove(command, **rest):
    if command[0] == "rm":
        first = stop_signals.exit_status()
        print("removing", flush=True)
        for _ in range(6000):
            if stop_signals.exit_status() != first:
                break
            time.sleep(0.01)
    return attempt(command, **rest)
process.stream_lines, process.attempt = unpack, remove
"""
)


@pytest.mark.parametrize("number", STOPS)
def test_a_second_signal_while_half_a_tree_is_removed_leaves_nothing_of_it(
    tmp_path: Path, number: signal.Signals
) -> None:
    """systemd and a terminal that closes send several; who is in a hurry presses Ctrl-C twice."""
    toy_tree(tmp_path)
    subprocess.run(["tar", "-cf", "linux.tar", "linux"], cwd=tmp_path, check=True)
    experiment = tmp_path / "experiment.toml"
    experiment.write_text(EXPERIMENT.format(tmp_path / "linux.tar"))
    child = started(CALLED.format(LISTENS + UNPACKING), "build", experiment, "--state", tmp_path / "state", "-q")
    assert child.stdout is not None
    for line, sent in (("in the write", number), ("removing", STOPS[STOPS.index(number) - 1])):
        assert child.stdout.readline() == f"{line}\n"
        child.send_signal(sent)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 128 + STOPS[STOPS.index(number) - 1], err
    assert "Traceback" not in err
    assert not list((tmp_path / "state" / "sources").iterdir())


STORING = (
    LISTENS
    + """
import sys, time
from pathlib import Path
from kdyno.base import stop_signals
from kdyno.base.state import State
from kdyno.kernel import images
from tests.unit import specimen
stop_signals.raise_on_stop()
write = Path.write_bytes
def half(path, content):
    write(path, content[: len(content) // 2])
    print("in the write", flush=True)
    time.sleep(60)
Path.write_bytes = half
try:
    images.store_files(specimen.image("a", specimen.Recipe()), {"bzImage": b"kernel"}, State(Path(sys.argv[1])))
except KeyboardInterrupt:
    raise SystemExit(stop_signals.exit_status()) from None
"""
)


@pytest.mark.parametrize("number", STOPS)
def test_a_signal_while_an_image_is_stored_leaves_no_part_of_it(tmp_path: Path, number: signal.Signals) -> None:
    stopped(started(STORING, tmp_path / "state"), number)
    assert not list((tmp_path / "state" / "images").iterdir())


def test_a_signal_stops_again_what_has_dealt_with_one(tmp_path: Path) -> None:
    script = (
        LISTENS
        + """
import os
from kdyno.base import stop_signals
stop_signals.raise_on_stop()
for number in (signal.SIGTERM, signal.SIGHUP):
    try:
        try:
            os.kill(os.getpid(), number)
        finally:
            os.kill(os.getpid(), signal.SIGINT)
            print("cleaned up", stop_signals.exit_status())
    except KeyboardInterrupt:
        print("stopped")
"""
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "cleaned up 130\nstopped\n" * 2, done.stderr


@pytest.mark.parametrize("only", ["stdout", "stderr", None])
def test_a_terminal_that_is_closed_ends_it_with_the_status_of_its_signal(lab: Lab, only: str | None) -> None:
    """Whatever is written to it from then on fails."""
    lab.recording.add("slow")
    ours, theirs = pty.openpty()
    ready, tell = os.pipe()
    stuck = STUCK.replace('print("the fourth boot has begun", flush=True)', f'import os; os.write({tell}, b"stuck")')
    code = CALLED.format(stuck.replace("time.sleep(600)", "order.cancelled.wait(600)"))

    def take_terminal() -> None:
        os.setsid()
        fcntl.ioctl(theirs, termios.TIOCSCTTY, 0)

    experiment = lab.experiment("slow")
    with (lab.directory / "said").open("wb") as said:
        child = subprocess.Popen(
            [sys.executable, "-c", code, "run", experiment],
            stdin=theirs,
            stdout=said if only == "stderr" else theirs,
            stderr=said if only == "stdout" else theirs,
            env=lab.environment | {"TERM": "xterm"},
            pass_fds=[tell, theirs],
            preexec_fn=take_terminal,
        )
    os.close(theirs)
    os.close(tell)
    assert os.read(ready, 5) == b"stuck"
    os.close(ready)
    os.close(ours)
    assert child.wait(timeout=60) == 128 + signal.SIGHUP
    assert "Traceback" not in (lab.directory / "said").read_text()
    assert len(lab.cells()) == 3
    assert not list((lab.state / "boots").iterdir())
