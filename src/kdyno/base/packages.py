"""Everything that kdyno runs and reads on a host, and the package that has it: Debian's in data/debian-packages.txt,
and Ubuntu 24.04's names for those in data/ubuntu-24.04-packages.txt. tools/setup reads both as well.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal

from kdyno.base.process import ToolMissing, attempt

OS_RELEASE = Path("/etc/os-release")
INSTALLS_ALL = "`kdyno doctor --install` installs all that kdyno uses"
USED_BY_KDYNO = ("needed", "wanted", "extra")
"""Requirements of kdyno itself, by who needs them."""

Names = Literal["debian", "ubuntu-24.04", "unknown"]
"""The distribution whose package names a host uses."""


@dataclass(frozen=True)
class Requirement:
    """One row of the table of what a host needs."""

    when: str
    """The need for it: needed, wanted, extra, tests, setup, rust or lints; the table explains these words."""
    package: str
    program: str
    """A name on the PATH, or a file."""
    purpose: str

    def path(self) -> str | None:
        """Return its path on this host; None if it is not here."""
        if self.program.startswith("/"):
            return self.program if Path(self.program).exists() else None
        return shutil.which(self.program)


@dataclass(frozen=True)
class Counterpart:
    """Ubuntu's replacement for one of Debian's packages."""

    package: str
    """The name in Debian."""
    names: tuple[str, ...]
    """The name in Ubuntu; None if it has no such package."""
    note: str
    """Advice where Ubuntu has no such package."""


def requirements() -> Iterator[Requirement]:
    """Yield the requirements of a host, in the table's order."""
    for line in _lines("debian-packages.txt"):
        yield Requirement(*line.split(maxsplit=3))


def counterparts(names: Names) -> dict[str, Counterpart]:
    """Return the packages that have other names here, by their names in Debian."""
    if names != "ubuntu-24.04":
        return {}
    by_package = {}
    for line in _lines("ubuntu-24.04-packages.txt"):
        package, others, note = line.split(maxsplit=2)
        by_package[package] = Counterpart(package, () if others == "-" else tuple(others.split(",")), note)
    return by_package


def _lines(table: str) -> Iterator[str]:
    for line in files("kdyno").joinpath("data", table).read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            yield line


def detect_names(os_release: Path | None = None) -> Names:
    """Return whose names of packages a host has, by its /etc/os-release.

    Ubuntu 24.04 and its derivatives say UBUNTU_CODENAME=noble. Debian's derivatives, except Ubuntu's, have Debian's
    names.
    """
    facts: dict[str, str] = {}
    with suppress(OSError, ValueError):
        text = (os_release or OS_RELEASE).read_text(encoding="utf-8")
        facts = dict(word.split("=", 1) for word in shlex.split(text, comments=True) if "=" in word)
    if facts.get("UBUNTU_CODENAME") == "noble":
        return "ubuntu-24.04"
    kinds = [facts.get("ID", ""), *facts.get("ID_LIKE", "").split()]
    return "debian" if "debian" in kinds and "ubuntu" not in kinds else "unknown"


def missing_packages(packages: Sequence[str]) -> list[str]:
    """Return those of these Debian packages that aren't installed here, under whatever name; all of them if there is no
    dpkg.
    """
    others = counterparts(detect_names())
    missing = []
    for package in packages:
        names = others[package].names if package in others else (package,)
        if not names or not all(_is_installed(name) for name in names):
            missing.append(package)
    return missing


def _is_installed(name: str) -> bool:
    words = ["dpkg-query", "--show", "--showformat", "${db:Status-Status}", name]
    try:
        return attempt(words).stdout == "installed"
    except ToolMissing:
        return False


def way_to_install(*packages: str, program: str | None = None) -> str:
    """Return how a user installs these Debian packages here, as a hint says it: a command, or words if there is no
    command.

    If the names of packages are unknown, their content is described: this `program` of theirs, or all.
    """
    here = detect_names()
    if here == "unknown":
        return f"install {', '.join(text for package in packages for text in _describe_package(package, program))}"
    others = counterparts(here)
    names = names_here(packages)
    ways = [f"sudo apt-get install -y {' '.join(names)}"] if names else []
    lacking = [others[package] for package in packages if package in others and not others[package].names]
    return "; ".join([*ways, *(f"this host has no package {other.package}: {other.note}" for other in lacking)])


def install_advice(*packages: str, program: str | None = None) -> str:
    """Return how a user installs these Debian packages here, and all others that kdyno uses."""
    advice = way_to_install(*packages, program=program)
    return advice if detect_names() == "unknown" else f"{advice}; {INSTALLS_ALL}"


def lacking_packages() -> list[str]:
    """Return the Debian packages that kdyno uses and of which something is missing here, sorted."""
    return sorted({row.package for row in requirements() if row.when in USED_BY_KDYNO and row.path() is None})


def names_here(packages: Sequence[str]) -> list[str]:
    """Return the names of Debian packages on this host, each once; without those that it lacks."""
    others = counterparts(detect_names())
    names = (others[package].names if package in others else (package,) for package in packages)
    return list(dict.fromkeys(name for group in names for name in group))


def _describe_package(package: str, program: str | None) -> Iterator[str]:
    """Yield the programs of a package that the table knows, each with its purpose; without any, its name."""
    rows = [row for row in requirements() if row.package == package and program in (None, row.program)]
    for row in rows:
        yield f"{row.program} ({row.purpose}; Debian's package {package} has it)"
    if not rows:
        yield f"the content of Debian's package {package}"
