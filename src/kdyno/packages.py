"""What kdyno calls and reads on a host, and the Debian package that has it; the table is data/debian-packages.txt."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path


@dataclass(frozen=True)
class Requirement:
    """One row of the table."""

    when: str
    """Who needs it: needed, wanted, extra, tests, setup, rust or lints; the table says what these mean."""
    package: str
    program: str
    """A name on the PATH, or a file."""
    purpose: str

    def path(self) -> str | None:
        """Where it is on this host; None if it is not here."""
        if self.program.startswith("/"):
            return self.program if Path(self.program).exists() else None
        return shutil.which(self.program)


def requirements() -> Iterator[Requirement]:
    """The table, in its order."""
    for line in files("kdyno").joinpath("data", "debian-packages.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield Requirement(*line.split(maxsplit=3))


def missing_packages(names: Sequence[str]) -> list[str]:
    """Those of these Debian packages that aren't installed here; all of them where dpkg isn't."""
    missing = []
    for name in names:
        words = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}", name]
        try:
            done = subprocess.run(words, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return list(names)
        if done.stdout != "installed":
            missing.append(name)
    return missing


def install_command(*packages: str) -> str:
    """What a user types to install Debian packages."""
    return f"sudo apt-get install -y {' '.join(packages)}"
