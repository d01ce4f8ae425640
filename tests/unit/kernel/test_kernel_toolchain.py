"""Toolchains: found by name, identified by content, and a missing one says what to install."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from kdyno.base.packages import install_advice
from kdyno.base.state import State
from kdyno.kernel import ccache, toolchain
from kdyno.kernel.toolchain import Toolchain, ToolchainIdentity, find


@pytest.fixture
def bin_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A PATH with nothing on it but what a test puts there."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    return folder


def program(folder: Path, name: str, script: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


CLANG = 'echo "Debian clang version 19.1.7 (3~deb12u1)"'


def made(name: str, make: tuple[str, ...]) -> Toolchain:
    family = name.partition("-")[0]
    identity = ToolchainIdentity(name=name, family=family, version="1", banner="", digest="")
    return Toolchain(identity=identity, command=name, make=make)


def test_gcc_is_found_with_its_version_and_a_digest(state: State) -> None:
    toolchain = find("gcc", state)
    assert toolchain.identity.family == "gcc"
    assert toolchain.identity.version.split(".")[0].isdigit()
    assert toolchain.identity.banner.startswith("gcc")
    assert len(toolchain.identity.digest) == 64
    assert toolchain.make == ("CC=gcc",)


def test_clang_brings_all_of_its_llvm(bin_only: Path, state: State) -> None:
    for name in ("clang-19", *(f"{tool}-19" for tool in toolchain.LLVM_TOOLS)):
        program(bin_only, name, CLANG)
    program(bin_only, "ldd", "true")
    clang = find("clang-19", state)
    assert clang.identity.version == "19.1.7"
    assert clang.make == ("LLVM=-19",)


def test_clang_without_its_linker_says_what_to_install(bin_only: Path, state: State) -> None:
    program(bin_only, "clang-19", CLANG)
    with pytest.raises(toolchain.LlvmToolsMissing, match=r"ld\.lld-19, llvm-ar-19") as raised:
        find("clang-19", state)
    assert raised.value.advice == install_advice("clang-19", "lld-19", "llvm-19")


@pytest.mark.parametrize(
    ("name", "packages"), [("gcc-14", "gcc-14"), ("clang-20", "clang-20 lld-20 llvm-20"), ("clang", "clang lld llvm")]
)
def test_a_missing_compiler_names_the_others_and_what_to_install(
    bin_only: Path, state: State, name: str, packages: str
) -> None:
    program(bin_only, "gcc-12", "true")
    program(bin_only, "gcc-ar-12", "true")
    with pytest.raises(toolchain.CompilerMissing, match=f"no {name} here; installed: gcc-12$") as raised:
        find(name, state)
    assert raised.value.advice == install_advice(*packages.split())


def test_another_compiler_of_the_same_version_has_another_digest(bin_only: Path, state: State) -> None:
    digests = set()
    for patch_level in ("1", "2"):
        script = f"case $1 in -dump*) echo 12.2.0;; --version) echo gcc 12.2.0;; esac # build {patch_level}"
        program(bin_only, "gcc", script)
        toolchain = find("gcc", state)
        assert toolchain.identity.version == "12.2.0"
        digests.add(toolchain.identity.digest)
    assert len(digests) == 2


def test_a_gcc_that_is_clang_in_disguise_is_not_taken_for_gcc(bin_only: Path, state: State) -> None:
    program(bin_only, "gcc", 'case $1 in -dump*) echo 4.2.1;; *) echo "Apple clang version 15.0.0";; esac')
    with pytest.raises(toolchain.CompilerUnclear, match="Apple clang"):
        find("gcc", state)


def test_ccache_stands_before_the_compiler() -> None:
    gcc, clang = made("gcc-12", ("CC=gcc-12",)), made("clang-19", ("LLVM=-19",))
    assert ccache.make_words(("ARCH=x86_64", *gcc.make), gcc) == ("ARCH=x86_64", "CC=ccache gcc-12")
    assert ccache.make_words(clang.make, clang) == ("LLVM=-19", "CC=ccache clang-19")


def test_without_ccache_there_is_nothing_to_tell_it(bin_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ccache.environment(Path("/b")) == {}
    program(bin_only, "ccache", "true")
    monkeypatch.setenv("CCACHE_DISABLE", "1")
    assert ccache.environment(Path("/b")) == {}


def test_the_users_ccache_settings_are_kept(bin_only: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(bin_only, "ccache", "true")
    monkeypatch.delenv("CCACHE_DISABLE", raising=False)
    monkeypatch.setenv("CCACHE_DIR", "/theirs")
    words = ccache.environment(Path("/b"))
    assert (words["CCACHE_DIR"], words["CCACHE_BASEDIR"], words["CCACHE_NOHASHDIR"]) == ("/theirs", "/b", "1")


def test_installed_compilers_are_listed_without_their_helpers() -> None:
    names = toolchain.installed()
    assert "gcc" in names
    assert not [name for name in names if "ranlib" in name]
    assert all(shutil.which(name) for name in names), os.get_exec_path()
