"""Installs the packages of this host's distribution that kdyno uses: `kdyno doctor --install`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence

from kdyno.base.errors import InfrastructureError, UserError
from kdyno.base.packages import detect_names, lacking_packages, names_here, way_to_install
from kdyno.base.process import quote

STANDARD_ERROR = 2
UPDATE = ("apt-get", "update", "-q")
INSTALL = ("apt-get", "install", "-y", "--no-install-recommends")


class UnknownDistribution(UserError):
    message = "the package names of this distribution are not known to kdyno"
    hint = "`kdyno doctor` lists each missing program and the package of Debian that contains it"


class NoRights(UserError):
    message = "installing packages needs root, and sudo is not installed"
    hint = "run as root: {command}"


class InstallFailed(InfrastructureError):
    message = "{command} ended with status {status}"
    hint = "fix what it reports, then run `kdyno doctor --install` again"


def install_commands(packages: Sequence[str]) -> list[list[str]]:
    """Return the commands that install Debian packages, for this user. Raises UnknownDistribution and NoRights."""
    if detect_names() == "unknown":
        raise UnknownDistribution()
    commands = [[*UPDATE], [*INSTALL, *names_here(packages)]]
    if os.geteuid() == 0:
        return commands
    if shutil.which("sudo") is None:
        raise NoRights(command=shown(commands))
    return [["sudo", *command] for command in commands]


def shown(commands: Sequence[Sequence[str]]) -> str:
    """Return the commands as one line for a shell."""
    return " && ".join(map(quote, commands))


def advice() -> str:
    """Return the one command that installs all that lacks here; empty if nothing lacks, or if kdyno can't name it."""
    packages = lacking_packages()
    return way_to_install(*packages) if packages and detect_names() != "unknown" else ""


def run(commands: Sequence[Sequence[str]]) -> None:
    """Run the commands; their output goes to standard error. Raises InstallFailed."""
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in commands:
        status = subprocess.run(command, stdout=STANDARD_ERROR, env=environment, check=False).returncode
        if status != 0:
            raise InstallFailed(command=quote(command), status=status)
