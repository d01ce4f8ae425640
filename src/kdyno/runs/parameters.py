"""Kernel parameters that a kernel doesn't have. Linux passes them to init without a word, and they change nothing."""

from __future__ import annotations

import mmap
import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from kdyno.base.text import format_list
from kdyno.runs.images import Images
from kdyno.runs.prepare import Prepared

OF_THE_LOADER = frozenset({"nokaslr", "kaslr"})
"""Parameters of the program that unpacks a kernel (arch/x86/boot/compressed), which is no part of vmlinux."""
FOR_INIT = "--"
"""Words after it are for init."""


def unknown_parameters(words: Iterable[str], vmlinux: Path) -> list[str]:
    """Return the names of parameters that are nowhere in a kernel.

    The texts of a kernel hold each name, with `=` or NUL behind it; `-` and `_` are the same to it (kernel/params.c).
    Those with a dot may be of a module, and those of sysctl are told by the kernel itself.
    """
    names = []
    for word in words:
        if word == FOR_INIT:
            break
        name = word.partition("=")[0]
        if "." not in name and name not in OF_THE_LOADER:
            names.append(name)
    if not names:
        return []
    with vmlinux.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        return [name for name in dict.fromkeys(names) if not _pattern(name).search(content)]


def _pattern(name: str) -> re.Pattern[bytes]:
    parts = [re.escape(part).encode() for part in re.split("[-_]", name)]
    return re.compile(b"[-_]".join(parts) + rb"[=\0]")


def parameter_notices(prepared: Prepared, images: Images) -> tuple[str, ...]:
    """Return a notice for each variant that sets parameters which its kernel doesn't have."""
    notices = []
    for variant, recipe in prepared.experiment.variants.items():
        for image in images.get(variant, ())[:1]:
            if unknown := _unknown_in(image.directory / "vmlinux", recipe.words):
                notices.append(
                    f"words that the kernel of {variant} doesn't know, and that change nothing: {format_list(unknown)}"
                )
    return tuple(notices)


def _unknown_in(vmlinux: Path, words: Sequence[str]) -> list[str]:
    return unknown_parameters(words, vmlinux) if words and vmlinux.is_file() else []
