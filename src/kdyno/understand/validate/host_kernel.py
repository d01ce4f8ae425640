"""The kernel that runs here, as something to build again: its configuration, and the source that is nearest to it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from kdyno.base.errors import UserError
from kdyno.base.packages import way_to_install
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
"""What must be built in; the guest has no modules."""
KEYS = ("SYSTEM_TRUSTED_KEYS", "SYSTEM_REVOCATION_KEYS")
"""Files of the distribution's own, which the source doesn't have."""
TOOLS_FIRST = frozenset({"ARCH", "AS", "CLANG", "GCC", "HAVE", "LD", "LLD", "OBJTOOL", "PAHOLE", "RUSTC", "TOOLCHAIN"})
TOOLS = frozenset({"BTF", "CLANG", "GCC", "PAHOLE"})
"""Words of symbols (the first one, any one) that tell of tools and architecture, not of what was chosen."""
LAST_MINOR = {2: 39, 3: 19, 4: 20, 5: 19, 6: 19}
"""The last minor release of each major one. 3.0 followed 2.6.39, 7.0 followed 6.19."""
USUAL_LAST_MINOR = 19


class NoRunningConfig(UserError):
    message = "this host doesn't tell its kernel's configuration: there is none of {paths}"
    hint = "name it: --config FILE"


class NoSource(UserError):
    message = "there is no kernel source here for {running}: no linux-source-* in {directory}"
    hint = "{way}; or name another source: --source SPEC"


class StrangeRelease(UserError):
    message = "`{release}` is no release of Linux: it should begin with two numbers, as 6.12 does"
    hint = "name the source that is nearest: --source SPEC"


def running_config(release: str | None = None) -> Path:
    """Where the configuration of the running kernel can be read. Raises NoRunningConfig."""
    candidates = [Path(candidate.format(release=release or os.uname().release)) for candidate in PLACES]
    path = next((candidate for candidate in candidates if candidate.is_file()), None)
    if path is None:
        raise NoRunningConfig(paths=", ".join(map(str, candidates)))
    return path


def config_of(path: Path) -> dict[str, str]:
    """Symbols and values of a configuration, which may be compressed. Raises what a base configuration would."""
    return read_config(resolve_base(f"file:{path}").text)


def additions(config: Mapping[str, str]) -> tuple[dict[str, KconfigValue], dict[str, str]]:
    """What has to be asked for on top of a host's configuration to run the agent in a guest, and why. Pure.

    Nothing that is measured depends on it, but where a driver is a module in the one kernel and built in in the other.
    """
    asked: dict[str, KconfigValue] = {}
    why: dict[str, str] = {}
    for need in WANTED:
        if config.get(need.symbol, "n") != "y":
            asked[need.symbol], why[need.symbol] = True, need.why
    if config.get("DEBUG_INFO") == "y":
        asked["DEBUG_INFO_NONE"] = True
        why["DEBUG_INFO_NONE"] = "debug information takes time to build; symbols are enough"
    for symbol in KEYS:
        if config.get(symbol, '""') != '""':
            asked[symbol], why[symbol] = "", "the file is the distribution's"
    return asked, why


def dropped(host: Mapping[str, str], built: Mapping[str, str], asked: Iterable[str] = ()) -> tuple[str, ...]:
    """Options that the host's kernel has built in and the other has not, in alphabetical order. Pure."""
    gone = {symbol for symbol, value in host.items() if value == "y" and built.get(symbol, "n") != "y"}
    return tuple(sorted(symbol for symbol in gone - set(asked) if not _tells_of_tools(symbol)))


def _tells_of_tools(symbol: str) -> bool:
    words = symbol.split("_")
    return (
        words[0] in TOOLS_FIRST or not TOOLS.isdisjoint(words) or symbol.startswith(("CC_HAS", "CC_IS", "DEBUG_INFO"))
    )


def compiler_of(config: Mapping[str, str]) -> str:
    """What a configuration was made for: `gcc (Debian 12.2.0-14) 12.2.0`."""
    return config.get("CC_VERSION_TEXT", '"unknown"').strip('"')


def release_number(release: str) -> int:
    """Which release of Linux this is, counted from some first one: 6.19 is one before 7.0. Pure. Raises StrangeRelease.

    The unstable releases before 3.0 are counted as if they had been one series.
    """
    match = re.match(r"(\d{1,3})\.(\d{1,3})", release)
    if match is None:
        raise StrangeRelease(release=release)
    major, minor = int(match[1]), int(match[2])
    return sum(LAST_MINOR.get(before, USUAL_LAST_MINOR) + 1 for before in range(2, major)) + minor


def nearest_source(running: str, directory: Path = USR_SRC) -> str:
    """The `debian:` source that the host has and that is fewest releases from the running kernel; of two that are
    equally near, the newer. Raises NoSource and StrangeRelease."""
    names = [path.name for path in directory.glob("linux-source-*")]
    packages = [name.removesuffix(suffix) for name in names for suffix in PACKED if name.endswith(suffix)]
    releases = {
        package: release_number(package.removeprefix("linux-source-"))
        for package in packages
        if PACKAGE.fullmatch(package) and re.match(r"linux-source-\d+\.\d+", package)
    }
    if not releases:
        raise NoSource(running=running, directory=directory, way=way_to_install("linux-source-6.12"))
    wanted = release_number(running)
    return "debian:" + min(releases, key=lambda package: (abs(releases[package] - wanted), -releases[package]))
