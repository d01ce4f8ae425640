"""kdyno as pip installs it: a wheel, in an environment of its own, far from the checkout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdyno import __version__

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "src" / "kdyno"
PROGRAMS = ("agent", "probe", "pgod", "loads", "debuginfo", "delegate", "lint", "blocks", "layout")
PLUGINS = ("kdyno/kdyno_pmu.abi3.so", "kdyno/kdyno_calls.abi3.so")
MANUAL = "share/man/man1/kdyno.1"


def packaged(file: Path) -> bool:
    """Return whether a file of the package's directory belongs into a wheel: what Python and cargo left doesn't."""
    return file.is_file() and "__pycache__" not in file.parts and file.suffix != ".so"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this checkout, which gets no `build` directory: an earlier one's files would end up in the wheel."""
    place = tmp_path_factory.mktemp("wheel")
    settings = place / "settings.cfg"
    settings.write_text(f"[build]\nbuild_base = {place / 'build'}\n[egg_info]\negg_base = {place}\n", encoding="utf-8")
    words = ["wheel", str(ROOT), "--no-deps", "--no-build-isolation", "--no-index", "-q", "-w", str(place / "made")]
    pip(*words, DIST_EXTRA_CONFIG=str(settings))
    [made] = (place / "made").glob("*.whl")
    return made


def pip(*words: str, **environment: str) -> None:
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", *words]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **environment}, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@dataclass(frozen=True)
class Installed:
    """A wheel that was installed, and a directory to run it from."""

    environment: Path
    directory: Path

    def __call__(self, *words: str, statuses: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
        """Run kdyno with nothing of this process's environment but the host's programs."""
        done = subprocess.run(
            [self.environment / "bin" / "kdyno", *words],
            cwd=self.directory,
            env={"HOME": str(self.directory), "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode in statuses, done.stdout + done.stderr
        return done


@pytest.fixture(scope="module")
def kdyno(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installed:
    """The wheel in an environment that borrows the libraries of this one, so that nothing is fetched."""
    environment, directory = tmp_path_factory.mktemp("environment"), tmp_path_factory.mktemp("elsewhere")
    venv.create(environment)
    python = environment / "bin" / "python"
    pip("--python", str(python), "install", "--no-deps", "--no-index", "-q", str(wheel))
    [libraries] = environment.glob("lib/python3*/site-packages")
    (libraries / "borrowed.pth").write_text(f"{sysconfig.get_path('purelib')}\n", encoding="utf-8")
    asked = subprocess.run(
        [python, "-c", "import kdyno; print(kdyno.__file__)"], cwd=directory, capture_output=True, text=True, check=True
    )
    assert Path(asked.stdout.strip()).is_relative_to(environment), "the checkout's own package was found"
    return Installed(environment, directory)


def test_a_wheel_holds_every_file_of_the_package_its_programs_plugin_and_manual(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    files = {f"kdyno/{file.relative_to(PACKAGE)}" for file in PACKAGE.rglob("*") if packaged(file)}
    assert len(files) > 300
    data = f"kdyno-{__version__}.data"
    beside = {*PLUGINS, f"{data}/data/{MANUAL}", *(f"{data}/scripts/kdyno-{program}" for program in PROGRAMS)}
    assert (files | beside) - names == set()
    assert {name for name in names if not name.startswith(f"kdyno-{__version__}.dist-info/")} - files - beside == set()


def test_what_is_installed_says_its_version_and_has_its_manual_and_programs_beside_it(kdyno: Installed) -> None:
    assert kdyno("--version").stdout == f"kdyno {__version__}\n"
    assert (kdyno.environment / MANUAL).read_bytes() == (ROOT / "man" / "kdyno.1").read_bytes()
    agent = kdyno.environment / "bin" / "kdyno-agent"
    assert os.access(agent, os.X_OK)
    assert b"ELF" in agent.read_bytes()[:4]


def test_doctor_finds_the_wheels_own_programs_and_ends_as_its_findings_say(kdyno: Installed) -> None:
    done = kdyno("doctor", "--json", statuses=(0, 3))
    findings = {finding["name"]: finding for finding in json.loads(done.stdout)}
    for name in ("kdyno-agent", "kdyno-delegate", "PMU plugin"):
        assert Path(findings[name]["detail"]).is_relative_to(kdyno.environment)
    assert (done.returncode == 3) == any(finding["status"] == "missing" for finding in findings.values())


def test_shipped_workloads_are_listed(kdyno: Installed) -> None:
    names = {line.split()[0] for line in kdyno("workload", "list").stdout.splitlines() if line.strip()}
    assert {file.stem for file in (PACKAGE / "data" / "workloads").glob("*.toml")} <= names


def test_the_shipped_experiment_is_planned_which_needs_the_source_it_names(kdyno: Installed) -> None:
    kdyno("init")
    plan = json.loads(kdyno("plan", "quickstart.toml", "--json").stdout)
    assert {build["decision"] for build in plan["builds"]} == {"build"}
    assert len(plan["boots"]) == 24
