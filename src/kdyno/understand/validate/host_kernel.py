"""The running kernel as a model for a build: its configuration, and the nearest source."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.packages import install_advice
from kdyno.boot.platforms import NEEDS, Need, Platform
from kdyno.kernel.kconfig import resolve_base
from kdyno.kernel.kconfig_check import read_config
from kdyno.kernel.recipe import KconfigValue
from kdyno.kernel.source import PACKAGE, PACKED, USR_SRC

PLACES = ("/proc/config.gz", "/boot/config-{release}", "/lib/modules/{release}/config")
PLATFORM: Platform = "microvm"
WANTED = (
    *NEEDS[PLATFORM],
    Need("DEVTMPFS", "the guest has no other /dev"),
    Need("PROC_FS", "the agent reads /proc"),
    Need("SHMEM", "files of the tests lie in tmpfs"),
    Need("TMPFS", "files of the tests lie in tmpfs"),
    Need("UNIX", "AF_UNIX sockets are measured"),
    Need("INET", "TCP and UDP on loopback are measured"),
)
"""The symbols that must be built in; the guest has no modules."""
KEYS = ("SYSTEM_TRUSTED_KEYS", "SYSTEM_REVOCATION_KEYS")
"""Symbols that name files of the distribution, which the source lacks."""
TOOLS_FIRST = frozenset({"ARCH", "AS", "CLANG", "GCC", "HAVE", "LD", "LLD", "OBJTOOL", "PAHOLE", "RUSTC", "TOOLCHAIN"})
TOOLS = frozenset({"BTF", "CLANG", "GCC", "PAHOLE"})
"""Words of symbols (the first word, any word) that describe tools and architecture, and not a choice."""
LAST_MINOR = {2: 39, 3: 19, 4: 20, 5: 19, 6: 19}
"""The last minor release of each major one. 3.0 followed 2.6.39, 7.0 followed 6.19."""
USUAL_LAST_MINOR = 19


class NoRunningConfig(UserError):
    message = "the configuration of the running kernel cannot be read: none of {paths} exists"
    hint = "name the configuration by --config FILE"


class NoSource(UserError):
    message = "this host has no kernel source for {running}: {directory} has no linux-source-*"
    hint = "{way}; or name another source by --source SPEC"


class StrangeRelease(UserError):
    message = "`{release}` is not a release of Linux: expected two numbers at the beginning, such as 6.12"
    hint = "name the nearest source by --source SPEC"


def running_config(release: str | None = None) -> Path:
    """Return the path of the running kernel's configuration. Raises NoRunningConfig."""
    candidates = [Path(candidate.format(release=release or os.uname().release)) for candidate in PLACES]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise NoRunningConfig(paths=", ".join(map(str, candidates)))
    return path


def config_of(path: Path) -> dict[str, str]:
    """Read the values of a configuration by symbol; it may be compressed. Raises what a base configuration raises."""
    return read_config(resolve_base(f"file:{path}").text)


def additions(config: Mapping[str, str]) -> tuple[dict[str, KconfigValue], dict[str, str]]:
    """Return the values on top of a host's configuration that the agent needs in a guest, and the reasons. Pure.

    Measurements don't depend on them, unless a driver is a module in one kernel and built into the other.
    """
    values: dict[str, KconfigValue] = {}
    reasons: dict[str, str] = {}
    for need in WANTED:
        if config.get(need.symbol, "n") != "y":
            values[need.symbol], reasons[need.symbol] = True, need.why
    if config.get("DEBUG_INFO") == "y":
        values["DEBUG_INFO_NONE"] = True
        reasons["DEBUG_INFO_NONE"] = "debug information takes time to build; symbols are enough"
    for symbol in KEYS:
        if config.get(symbol, '""') != '""':
            values[symbol], reasons[symbol] = "", "the file is the distribution's"
    return values, reasons


def dropped_options(
    host: Mapping[str, str], built: Mapping[str, str], requested: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return the options that are built into the host's kernel and not into the other, in alphabetical order. Pure."""
    missing_options = {symbol for symbol, value in host.items() if value == "y" and built.get(symbol, "n") != "y"}
    return tuple(sorted(symbol for symbol in missing_options - set(requested) if not _describes_tools(symbol)))


def _describes_tools(symbol: str) -> bool:
    words = symbol.split("_")
    return (
        words[0] in TOOLS_FIRST or not TOOLS.isdisjoint(words) or symbol.startswith(("CC_HAS", "CC_IS", "DEBUG_INFO"))
    )


def compiler_of(config: Mapping[str, str]) -> str:
    """Return the compiler of a configuration: `gcc (Debian 12.2.0-14) 12.2.0`."""
    return config.get("CC_VERSION_TEXT", '"unknown"').strip('"')


def release_number(release: str) -> int:
    """Return the number of a Linux release: that of 6.19 is one less than that of 7.0. Pure. Raises StrangeRelease.

    The unstable releases before 3.0 count as one series.
    """
    match = re.match(r"(\d{1,3})\.(\d{1,3})", release)
    if match is None:
        raise StrangeRelease(release=release)
    major, minor = int(match[1]), int(match[2])
    return sum(LAST_MINOR.get(earlier, USUAL_LAST_MINOR) + 1 for earlier in range(2, major)) + minor


def nearest_source(running: str, directory: Path = USR_SRC) -> str:
    """Return the `debian:` source of the host that is nearest to the running kernel; of two equally near ones the
    newer.

    Raises NoSource and StrangeRelease.
    """
    names = [path.name for path in directory.glob("linux-source-*")]
    packages = [name.removesuffix(suffix) for name in names for suffix in PACKED if name.endswith(suffix)]
    releases = {
        package: release_number(package.removeprefix("linux-source-"))
        for package in packages
        if PACKAGE.fullmatch(package) and re.match(r"linux-source-\d+\.\d+", package)
    }
    if not releases:
        raise NoSource(running=running, directory=directory, way=install_advice("linux-source-6.12"))
    running_number = release_number(running)
    return "debian:" + min(releases, key=lambda package: (abs(releases[package] - running_number), -releases[package]))
