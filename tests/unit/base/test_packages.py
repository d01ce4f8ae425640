"""The table of Debian packages has all that the code calls, and set-up, doctor and the table agree; other names."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from kdyno.base import packages
from kdyno.base.packages import (
    Names,
    Requirement,
    counterparts,
    detect_names,
    missing_packages,
    requirements,
    way_to_install,
)
from kdyno.base.state import State
from kdyno.kernel.unpack import COMPRESSION
from kdyno.measure.workload.definition import definition, own_names
from kdyno.understand.doctor import RUST_NEEDED, examine
from tests.unit.os_release import DEBIAN, FEDORA, JAMMY, LMDE, MINT, UBUNTU

ROOT = Path(__file__).parents[3]
RUNNERS = {"attempt", "check_output", "output", "Popen", "run", "spawned", "stream_lines"}
"""Functions whose first argument is a command."""
ESSENTIAL = {
    "bash",
    "cat",
    "cp",
    "dpkg-deb",
    "dpkg-query",
    "env",
    "head",
    "ldd",
    "mv",
    "rm",
    "setpriv",
    "sh",
    "true",
    "unshare",
    "yes",
}
"""What Debian has installed always: packages marked Essential."""
BINUTILS = {"as", "objcopy", "objdump", "readelf", "strip"}
"""They come with `ld` and `nm`, which the table has."""
OPTIONAL = {"sudo", "lintian", "npm", "ssh-keygen"}
"""`kdyno doctor --install` looks for the first and says what to do without it; `kdyno ship` calls the second if it is
there, and says that it isn't; `tools/update-scripts` says what it lacks. The last comes with ssh."""
NOT_IN_DEBIAN = {"zig"}
"""Only a delegation plan that names it needs it, and says where it is to be had."""


def modules() -> Iterator[tuple[Path, ast.Module]]:
    scripts = [path for path in (ROOT / "tools").iterdir() if path.read_text().startswith("#!/usr/bin/env python")]
    for path in (*ROOT.glob("src/**/*.py"), *ROOT.glob("tests/**/*.py"), *scripts):
        if "fakelinux" not in path.parts:
            yield path, ast.parse(path.read_text(encoding="utf-8"))


def first_words(command: ast.expr, named: dict[str, list[ast.expr]]) -> Iterator[str]:
    """The programs that a command starts with, where the code says so in so many letters."""
    match command:
        case ast.List(elts=[ast.Constant(value=str(program)), *_]):
            yield program
        case ast.List(elts=[ast.Name(id=name), *_]):
            values = [value.value for value in named.get(name, []) if isinstance(value, ast.Constant)]
            yield from (program for program in values if isinstance(program, str))
        case ast.List(elts=[ast.Starred(value=first), *_]) | ast.BinOp(left=first):
            yield from first_words(first, named)
        case ast.Name(id=name):
            for value in named.pop(name, []):
                yield from first_words(value, named)


def calls(module: ast.Module) -> Iterator[str]:
    """The programs that a module calls or looks for."""
    named: dict[str, list[ast.expr]] = {}
    for node in ast.walk(module):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            named.setdefault(node.targets[0].id, []).append(node.value)
    for node in ast.walk(module):
        if isinstance(node, ast.Call) and node.args:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            match name, node.args[0]:
                case "which", ast.Constant(value=str(program)):
                    yield program
                case "find_tool", ast.Constant(value=str(program)):
                    yield f"{program}-19"  # as Debian's packages call it
                case _, command if name in RUNNERS:
                    yield from first_words(command, dict(named))


def test_every_program_that_the_code_calls_is_in_the_table() -> None:
    listed = {row.program for row in requirements()} | ESSENTIAL | BINUTILS | OPTIONAL | NOT_IN_DEBIAN
    called = {(program, path.name) for path, module in modules() for program in calls(module)}
    programs = {program for program, _ in called}
    assert {"git", "tar", "patch", "ccache", "cp", "nm", "qemu-system-x86_64"} <= programs, (
        "the search finds too little"
    )
    assert not {(program, file) for program, file in called if program not in listed and "/" not in program}


def test_every_decompressor_is_in_the_table() -> None:
    assert set(COMPRESSION.values()) <= {row.program for row in requirements()}


@pytest.mark.parametrize("row", list(requirements()), ids=lambda row: Path(row.program).name)
def test_set_up_has_installed_what_the_table_says(row: Requirement) -> None:
    other = counterparts(detect_names()).get(row.package)
    if other and not other.names:
        pytest.skip(f"this distribution has no {row.package}")
    if row.when not in ("rust", "lints"):  # these may be rustup's, and in no PATH of this process
        assert row.path(), f"{row.program} isn't here: tools/setup test"


def test_what_each_row_says_is_known_and_short() -> None:
    for row in requirements():
        assert row.when in {"needed", "wanted", "extra", "tests", "setup", "rust", "lints"}
        assert 5 < len(row.purpose) < 70


def test_the_doctor_names_the_package_of_a_missing_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    findings = {finding.name: finding for finding in examine(State(tmp_path / "state"))}
    assert (findings["flex"].status, findings["flex"].mend) == ("missing", way_to_install("flex"))
    assert (findings["clang-19"].status, findings["clang-19"].mend) == ("optional", way_to_install("clang-19"))
    assert (findings["rust"].status, findings["rust"].mend) == ("optional", way_to_install("cargo-web", "rustc-web"))


@pytest.mark.parametrize(
    ("os_release", "names"),
    [
        (DEBIAN, "debian"),
        (LMDE, "debian"),
        (UBUNTU, "ubuntu-24.04"),
        (MINT, "ubuntu-24.04"),
        (JAMMY, "unknown"),
        (FEDORA, "unknown"),
        ('NAME="without an end', "unknown"),
        (None, "unknown"),
    ],
)
def test_whose_names_packages_have_is_read_off_os_release(tmp_path: Path, os_release: str | None, names: Names) -> None:
    path = tmp_path / "os-release"
    if os_release is not None:
        path.write_text(os_release)
    assert detect_names(path) == names


def test_each_package_with_another_name_on_ubuntu_is_one_that_kdyno_or_a_workload_asks_for() -> None:
    asked = {row.package for row in requirements()}.union(*(definition(name).packages for name in own_names()))
    assert set(counterparts("ubuntu-24.04")) <= asked
    for other in counterparts("ubuntu-24.04").values():
        assert other.names != (other.package,)
        assert all(re.fullmatch(r"[a-z0-9][a-z0-9.+-]+", name) for name in other.names)
    assert counterparts("debian") == counterparts("unknown") == {}


@pytest.mark.parametrize(
    ("os_release", "asked", "way"),
    [
        (DEBIAN, ["flex", "cargo-web"], "sudo apt-get install -y flex cargo-web"),
        (UBUNTU, ["flex", "cargo-web"], "sudo apt-get install -y flex cargo-1.89"),
        (MINT, ["mmdebstrap"], "sudo apt-get install -y mmdebstrap debian-archive-keyring gpg"),
        (UBUNTU, ["chromium"], "this host has no package chromium: sudo snap install chromium"),
        (
            UBUNTU,
            ["chromium", "flex"],
            "sudo apt-get install -y flex; this host has no package chromium: sudo snap install chromium",
        ),
        (
            FEDORA,
            ["flex", "lz4"],
            "install flex (builds the kernel's Kconfig reader; Debian's package flex has it), "
            "lz4 (compresses bzImage of the dyno configuration; Debian's package lz4 has it)",
        ),
        (FEDORA, ["gcc-99"], "install the content of Debian's package gcc-99"),
    ],
)
def test_a_hint_is_a_command_where_names_are_known_and_a_description_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, os_release: str, asked: list[str], way: str
) -> None:
    pretend(monkeypatch, tmp_path, os_release)
    assert way_to_install(*asked) == way


def test_doctor_describes_each_program_by_itself_where_names_are_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, tmp_path, FEDORA)
    monkeypatch.setenv("PATH", str(tmp_path))
    findings = {finding.name: finding for finding in examine(State(tmp_path / "state"))}
    assert findings["nm"].mend == "install nm (reads the symbols of kernels; Debian's package binutils has it)"
    assert not [finding for finding in findings.values() if "sudo apt-get" in finding.mend]


def test_a_package_is_installed_if_what_stands_for_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, tmp_path, UBUNTU)
    dpkg_query = tmp_path / "dpkg-query"
    dpkg_query.write_text("#!/bin/sh\ncase $4 in linux-tools-generic | flex) printf installed ;; *) exit 1 ;; esac\n")
    dpkg_query.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    assert missing_packages(["linux-perf", "flex", "mmdebstrap", "postgresql-15"]) == ["mmdebstrap", "postgresql-15"]


def pretend(monkeypatch: pytest.MonkeyPatch, directory: Path, os_release: str) -> None:
    """Let this host be another."""
    path = directory / "os-release"
    path.write_text(os_release)
    monkeypatch.setattr(packages, "OS_RELEASE", path)


def test_the_needed_rust_is_the_same_everywhere() -> None:
    needed = ".".join(map(str, RUST_NEEDED))
    assert re.search(r'rust-version = "(.*)"', (ROOT / "Cargo.toml").read_text())[1] == needed  # type: ignore[index]
    assert f"\nRUST={needed}\n" in (ROOT / "tools/setup").read_text()
