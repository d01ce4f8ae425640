"""A program that gcc instruments, its .gcda file, and where gcc puts its functions when it compiles by such a file."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from kdyno.profile.gcda import NEWEST, OLDEST

PROGRAM = """
#include <stdlib.h>
volatile int sink;
__attribute__((noinline)) void five(int n) { if (n & 1) sink = n; else sink = n * 3; }
__attribute__((noinline)) void hundred(int n) { if (n & 1) sink = n; else sink = n * 5; }
__attribute__((noinline)) void times(int n) { for (int i = 0; i < n; i++) sink += i % 7 ? i : 1; }
__attribute__((noinline)) void three_ways(int n) { switch (n % 3) { case 0: sink = 1; case 1: sink += n; } sink ^= n; }
__attribute__((noinline)) void never(int n) { sink = n * n; sink = 3; }
int main(int count, char **words)
{
    for (int i = 0; i < 5; i++) five(i);
    for (int i = 0; i < 100; i++) hundred(i);
    for (int i = 0; i < 5; i++) three_ways(i);
    times(atoi(words[1]));
    if (count > 5) never(count);
    return 0;
}
"""
NAME = "program"
COMPILERS = [name for number in range(OLDEST, NEWEST + 1) if shutil.which(name := f"gcc-{number}")] or ["gcc"]
"""Every gcc of this host whose files kdyno reads."""


def instrument(compiler: str, directory: Path) -> None:
    (directory / f"{NAME}.c").write_text(PROGRAM)
    run(directory, compiler, "-O2", "-fprofile-arcs", "-c", f"{NAME}.c")
    run(directory, compiler, f"{NAME}.o", "-lgcov", "-o", NAME)


def counted(directory: Path, times: int) -> bytes:
    """The .gcda file of one run more of the program."""
    run(directory, str(directory / NAME), str(times))
    return (directory / f"{NAME}.gcda").read_bytes()


def as_kernel(content: bytes) -> bytes:
    """A file of libgcov's, with counters, as a kernel writes it: without summary and end."""
    return content[:16] + content[32:-4]


def sections(compiler: str, directory: Path, profile: bytes, *flags: str) -> dict[str, str]:
    """The section of each function, compiled by a profile."""
    (directory / f"{NAME}.gcda").write_bytes(profile)
    words = ("-O2", "-fprofile-use", "-Wmissing-profile", "-Werror", *flags, "-c", f"{NAME}.c")
    run(directory, compiler, *words)
    listing = run(directory, "objdump", "-t", f"{NAME}.o")
    return {name: section for section, name in re.findall(r" F (\S+)\s+\S+ (\S+)$", listing, re.MULTILINE)}


def run(directory: Path, *words: str) -> str:
    return subprocess.run(words, cwd=directory, check=True, capture_output=True, text=True).stdout
