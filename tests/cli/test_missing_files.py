"""What an experiment names and this host lacks is said before a source is unpacked, which may take a minute."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.cli.conftest import Lab

FAKELINUX = Path(__file__).parent.parent / "fakelinux"
MISSING = {
    "a missing patch": ('patches = ["none.patch"]', "can't read the patch"),
    "an empty patch": ('patches = ["empty.patch"]', "holds no patch"),
    "a missing fragment": ('fragments = ["none.config"]', "can't read the Kconfig fragment"),
    "a missing delegation": ('delegation = "none.toml"', "can't read the delegation plan"),
    "a missing profile": ('profile = { use = ["pgo"], from = "none.profile" }', "none.profile"),
    "a missing toolchain": ('toolchain = "gcc-99"', "there is no gcc-99 here"),
    "a word that has a knob": ('cflags = ["-O3"]', '"-O3" has a knob of its own'),
    "a word that the compiler refuses": ('cflags = ["-fno-such-thing"]', 'refuses "-fno-such-thing"'),
}


@pytest.fixture
def tarball(lab: Lab) -> str:
    """A source that has to be unpacked."""
    tree = shutil.copytree(FAKELINUX, lab.directory / "linux", ignore=shutil.ignore_patterns("__pycache__"))
    path = lab.directory / "linux.tar"
    subprocess.run(["tar", "-cf", path, "-C", lab.directory, tree.name], check=True)
    (lab.directory / "empty.patch").write_text("")
    return path.name


def experiment(lab: Lab, tarball: str, *, config: str = "make:tinyconfig", recipe: str = "") -> str:
    path = lab.directory / "toy.toml"
    path.write_text(
        f'name = "toy"\nsource = "{tarball}"\nconfig = "{config}"\nbaseline = "plain"\n'
        f'[variants.plain]\n[variants.other]\n{recipe}\n[workload]\ntests = ["lat_syscall"]\n'
    )
    return str(path)


@pytest.mark.parametrize("verb", ["plan", "build", "run"])
@pytest.mark.parametrize("missing", MISSING)
def test_what_a_recipe_lacks_is_said_before_the_source_is_unpacked(
    lab: Lab, tarball: str, verb: str, missing: str
) -> None:
    recipe, complaint = MISSING[missing]
    result = lab(verb, experiment(lab, tarball, recipe=recipe))
    assert (result.status, result.out) == (1, "")
    assert complaint in result.err
    assert "unpacking" not in result.err
    assert not list(lab.state.glob("sources/*"))


def test_a_base_configuration_that_is_missing_is_said_before_the_source_is_unpacked(lab: Lab, tarball: str) -> None:
    result = lab("plan", experiment(lab, tarball, config="file:none.config"))
    assert result.status == 1
    assert "can't read" in result.err and "none.config" in result.err
    assert not list(lab.state.glob("sources/*"))


@pytest.mark.parametrize("verb", ["check", "show"])
def test_a_delegation_plan_that_is_missing_is_said_before_the_source_is_unpacked(
    lab: Lab, tarball: str, verb: str
) -> None:
    (lab.directory / "bad.toml").write_text("rule = 1\n")
    for plan in ("none.toml",) * (verb == "check") + ("bad.toml",):
        result = lab("delegation", verb, str(lab.directory / plan), "--source", str(lab.directory / tarball))
        assert (result.status, result.out) == (1, "") and plan in result.err
        assert not list(lab.state.glob("sources/*"))


def test_without_a_lack_the_source_is_unpacked(lab: Lab, tarball: str) -> None:
    assert lab("plan", experiment(lab, tarball, recipe='opt = "O3"'), "-q").status == 0
    assert list(lab.state.glob("sources/*"))
