"""Which symbol adds which files, as makefiles of the kernel say it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from kdyno.understand.coverage.kbuild import files_of_symbols

FILES = ("net/core/dev.c", "net/core/sock.c", "net/ipv4/tcp.c", "net/ipv4/cubic.c", "arch/x86/pci/early.c")


def symbol_files(tmp_path: Path, makefiles: Mapping[str, str], files: tuple[str, ...] = FILES) -> dict[str, set[str]]:
    for name, text in makefiles.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return files_of_symbols(tmp_path, files)


def test_a_symbol_adds_its_objects_and_all_below_its_directories(tmp_path: Path) -> None:
    makefiles = {
        "Kbuild": "obj-$(CONFIG_NET)\t+= net/ # all of it\n",
        "net/Makefile": "obj-y := core/ \\\n\tipv4/\n",
        "net/ipv4/Makefile": "obj-$(CONFIG_TCP) += tcp.o \\\n    cubic.o\nobj-$(CONFIG_MISSING) += missing.o\n",
    }
    assert symbol_files(tmp_path, makefiles) == {
        "NET": {"net/core/dev.c", "net/core/sock.c", "net/ipv4/tcp.c", "net/ipv4/cubic.c"},
        "TCP": {"net/ipv4/tcp.c", "net/ipv4/cubic.c"},
    }


def test_an_object_made_of_several_has_their_files(tmp_path: Path) -> None:
    makefiles = {
        "net/core/Makefile": "obj-$(CONFIG_CORE) += all.o\nall-y := dev.o all.o\nall-$(CONFIG_SOCK) += sock.o\n",
    }
    assert symbol_files(tmp_path, makefiles) == {
        "CORE": {"net/core/dev.c", "net/core/sock.c"},
        "SOCK": {"net/core/sock.c"},
    }


def test_a_makefile_of_an_architecture_names_directories_from_the_top(tmp_path: Path) -> None:
    assert symbol_files(tmp_path, {"arch/x86/Makefile": "drivers-$(CONFIG_PCI) += arch/x86/pci/\n"}) == {
        "PCI": {"arch/x86/pci/early.c"}
    }


@pytest.mark.parametrize("line", ["ifdef CONFIG_A", "ifeq ($(CONFIG_A),y)", "ifneq ($(CONFIG_A),)"])
def test_lines_below_a_condition_belong_to_its_symbol(tmp_path: Path, line: str) -> None:
    text = f"{line}\nobj-y += dev.o\nelse\nobj-y += sock.o\nendif\nobj-y += sock.o\n"
    assert symbol_files(tmp_path, {"net/core/Makefile": text}) == {"A": {"net/core/dev.c"}}


def test_what_makefiles_hold_besides_is_passed_over(tmp_path: Path) -> None:
    text = "\0\xff$(shell false)\nendif\nelse\nobj-$(CONFIG_A) += $(wildcard *.o) ../../../etc/passwd.o dev.o\n"
    assert symbol_files(tmp_path, {"net/core/Makefile": text}) == {"A": {"net/core/dev.c"}}


def test_objects_that_are_made_of_each_other_end(tmp_path: Path) -> None:
    text = "obj-$(CONFIG_A) += a.o\na-y := b.o\nb-y := a.o dev.o\n"
    assert symbol_files(tmp_path, {"net/core/Makefile": text}) == {"A": {"net/core/dev.c"}}


def test_objects_that_share_their_parts_are_looked_at_once(tmp_path: Path) -> None:
    """Twenty levels of two that each name the next two are a million ways to the last."""
    lines = ["obj-$(CONFIG_A) += a0.o"]
    lines += [f"{side}{level}-y := a{level + 1}.o b{level + 1}.o" for level in range(20) for side in "ab"]
    (tmp_path / "Makefile").write_text("\n".join(lines))
    assert files_of_symbols(tmp_path, ["a20.c", "b7.c"]) == {"A": {"a20.c", "b7.c"}}
