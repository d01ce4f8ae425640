"""A whole fleet on this machine, for the demo, the kill table and tests: PostgreSQL, a scheduler and workers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres_server import PostgresServer, postgres_server

from kdyno.fleet.fleet_file import Fleet, read_fleet
from kdyno.fleet.init import init_fleet

SECONDS_TO_START = 300
"""A limit for what hangs; a busy host takes a minute."""


def free_port() -> int:
    """Return a port of loopback that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def wait_until(is_so: Callable[[], bool], what: str, seconds: float = SECONDS_TO_START) -> None:
    """Wait until a condition holds."""
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline, f"within {seconds:g} s: {what}"
        time.sleep(0.05)


class LocalFleet:
    """The processes of a fleet below a directory. Workers pretend to be on hosts of their own."""

    def __init__(self, directory: Path, server: PostgresServer, lease_seconds: float) -> None:
        self.server, self.home = server, directory
        self.directory = directory / "fleet"
        self.fleet: Fleet = init_fleet(
            self.directory,
            database=server.url,
            blobs=str(directory / "blobs"),
            scheduler=f"tls://127.0.0.1:{free_port()}",
            lease_seconds=lease_seconds,
        )
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.workers: dict[str, subprocess.Popen[bytes]] = {}

    def start_scheduler(self) -> None:
        """Start the scheduler."""
        self.scheduler = self._start("scheduler", "fleet", "scheduler", str(self.directory))

    def start_worker(self, name: str, *options: str, script: str = "") -> None:
        """Start a worker on a host of its own name; the script is executed before kdyno's main."""
        state = self.home / f"state-{name}"
        words = ("worker", str(self.directory), "--name", name, "--host", f"host-{name}", "--state", str(state))
        self.workers[name] = self._start(name, *words, *options, script=script)

    def log(self, name: str) -> str:
        """Return what a process printed."""
        return (self.home / f"{name}.log").read_text(errors="replace")

    def connected(self) -> set[str]:
        """Return the names of the workers that the scheduler knows."""
        from kdyno.base.errors import KdynoError
        from kdyno.fleet.carriage import Carriage

        carriage = Carriage(read_fleet(self.directory))
        try:
            carriage.connect()
            return set(carriage.workers())
        except KdynoError:
            return set()
        finally:
            carriage.close()

    def wait_for_workers(self) -> None:
        """Wait until all workers are connected."""
        wait_until(lambda: set(self.workers) <= self.connected(), "all workers are connected")

    def kill(self, name: str, number: int = signal.SIGKILL) -> None:
        """Send a signal to a worker; after SIGKILL wait for its end."""
        process = self.workers[name]
        process.send_signal(number)
        if number == signal.SIGKILL:
            process.wait()

    def stop(self) -> None:
        """End all processes."""
        processes = [*self.workers.values(), *([self.scheduler] if self.scheduler else [])]
        for process in processes:
            if process.poll() is None:
                process.send_signal(signal.SIGCONT)
                process.terminate()
        for process in processes:
            try:
                process.wait(timeout=30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def _start(self, log: str, *words: str, script: str = "") -> subprocess.Popen[bytes]:
        code = f"{script}\nimport sys\nfrom kdyno.cli.main import main\nraise SystemExit(main(sys.argv[1:]))\n"
        with (self.home / f"{log}.log").open("ab") as output:
            return subprocess.Popen(
                [sys.executable, "-c", code, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "KDYNO_STATE": str(self.home / "state")},
                start_new_session=True,
            )


@contextmanager
def local_fleet(directory: Path, lease_seconds: float) -> Iterator[LocalFleet]:
    """Yield a fleet with a scheduler and without workers; all processes are gone at the end."""
    with postgres_server() as server:
        fleet = LocalFleet(directory, server, lease_seconds)
        try:
            fleet.start_scheduler()
            yield fleet
        finally:
            fleet.stop()
