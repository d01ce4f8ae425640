"""Real kernels: built once into a state directory that all these tests share, booted in QEMU."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from kdyno.measure.workload.needs import OF_PROGRAMS, OF_ROOT

ROOT = Path(__file__).parent.parent.parent
PATCHES = ROOT / "tests" / "data" / "patches"

HEAD = """\
name = "{name}"
source = "debian:linux-source-6.12"
baseline = "{baseline}"
blocks = {blocks}
"""
ROOT_KCONFIG = {"HYPERVISOR_GUEST": False, "INET": False, "SECCOMP": False} | (OF_PROGRAMS | OF_ROOT).kconfig
"""Symbols of a kernel that can have a root of packages, without some that its tests can do without. Its objects are
compiled once, as long as its tests name a seed or an order of its link.
"""
WITH_ROOT = f"""
opt = "O2"
lines = true
kconfig = {{ {", ".join(f"{symbol} = {str(value).lower()}" for symbol, value in ROOT_KCONFIG.items())} }}
"""


@dataclass(frozen=True)
class Kdyno:
    """The command as a user runs it, with the shared images and a store of its own."""

    state: Path
    store: str
    directory: Path
    environment: dict[str, str] = field(default_factory=dict)

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "kdyno", *words, "--state", str(self.state), "--store", self.store]

    def __call__(self, *words: str, command: Sequence[str] = (), status: int = 0) -> subprocess.CompletedProcess[str]:
        """Run it to its end; the exit status must be the one expected."""
        tail = ["--", *command] if command else []
        done = subprocess.run(
            [*self.command(*words), *tail],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **self.environment},
        )
        assert done.returncode == status, f"{words}: exit {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done

    def experiment(self, name: str, text: str, *, baseline: str, blocks: int) -> str:
        """Write an experiment file on Debian's 6.12; returns its path."""
        path = self.directory / f"{name}.toml"
        path.write_text(HEAD.format(name=name, baseline=baseline, blocks=blocks) + text)
        return str(path)


@pytest.fixture(scope="session")
def state() -> Path:
    """KDYNO_TEST_STATE, else a cache of the user's: kept between runs and checkouts, so that kernels are built once.

    Not in the checkout: Kbuild takes no path with a space.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(os.environ.get("KDYNO_TEST_STATE") or Path(cache) / "kdyno-tests")


@pytest.fixture
def kdyno(state: Path, tmp_path: Path) -> Iterator[Kdyno]:
    yield Kdyno(state, f"sqlite:///{tmp_path}/store.sqlite", tmp_path)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests here are e2e; a build of a kernel may take long on a slow machine."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.e2e)
            item.add_marker(pytest.mark.timeout(3600))
