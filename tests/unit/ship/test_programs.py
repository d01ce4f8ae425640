"""Programs that come with a kernel's headers: whatever directory they were built in, they are the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

from kdyno.ship.deb import library_packages
from kdyno.ship.module_programs import needed_libraries, programs, strip_programs

SOURCE = "int main(void) { return 42; }\n"


def build(directory: Path, *libraries: str) -> Path:
    """Build a program with debug information in a directory, and return it."""
    directory.mkdir()
    (directory / "objtool.c").write_text(SOURCE)
    words = ["gcc", "-g", "-Wl,--build-id", "-Wl,--no-as-needed", "-o", "objtool", "objtool.c", *libraries]
    subprocess.run(words, cwd=directory, check=True)
    return directory / "objtool"


def test_programs_of_two_directories_are_equal_and_run(tmp_path: Path) -> None:
    one, other = build(tmp_path / "one"), build(tmp_path / "the other")
    assert one.read_bytes() != other.read_bytes()
    strip_programs(tmp_path)
    assert one.read_bytes() == other.read_bytes()
    assert subprocess.run([one], check=False).returncode == 42


def test_files_that_are_no_programs_stay_as_they_are(tmp_path: Path) -> None:
    program = build(tmp_path / "built")
    script, link = tmp_path / "script", tmp_path / "link"
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    object_file = tmp_path / "module.o"
    object_file.write_bytes(program.read_bytes())
    object_file.chmod(0o644)
    before = object_file.read_bytes()
    link.symlink_to(tmp_path / "nowhere")
    (tmp_path / "empty").touch(0o755)
    strip_programs(tmp_path)
    assert (script.read_text(), object_file.read_bytes(), link.is_symlink()) == ("#!/bin/sh\n", before, True)


def test_the_libraries_of_programs_are_named_and_their_packages_too(tmp_path: Path) -> None:
    build(tmp_path / "with", "-lelf")
    assert needed_libraries(tmp_path) == ["libelf.so.1"]
    assert "libelf1" in library_packages(list(programs(tmp_path)), tmp_path)


def test_headers_without_programs_need_nothing(tmp_path: Path) -> None:
    assert needed_libraries(tmp_path) == []
    assert library_packages([], tmp_path) == ""
