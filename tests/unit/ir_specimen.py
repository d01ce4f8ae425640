"""A program without any runtime that clang instruments as it does a kernel, and that writes out its own counters."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

COMPILER = "clang-19"
INSTRUMENT = ("-fprofile-generate", "-mllvm", "-disable-vp=true")
SOURCES = {
    "one.c": """
volatile int sink;
__attribute__((noinline)) void rare(int n) { sink = n; }
__attribute__((noinline)) void usual(int n) { sink = -n; }
static __attribute__((noinline)) int step(int n) { int i; for (i = 0; i < n; i++) sink ^= i; return i; }
__attribute__((noinline)) int choose(int n) { if (n == 7) rare(n); else usual(n); return sink; }
__attribute__((noinline)) int never(int n) { if (n == 7) rare(n); return sink; }
int other(int n);
int work(int n)
{
    for (int i = 0; i < n; i++) choose(i);
    return step(40) + other(n) + (n == 1 ? never(n) : 0);
}
""",
    "two.c": """
extern volatile int sink;
static __attribute__((noinline)) int step(int n) { if (n > 50) sink = n; else sink = 2 * n; return sink; }
__attribute__((weak)) int other(int n) { return step(n) + step(n + 9) + step(3); }
""",
    "start.c": """
extern const char __start___llvm_prf_cnts[], __stop___llvm_prf_cnts[];
int work(int n);
static long call(long number, long one, const void *two, long three)
{
    long result;
    __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(one), "S"(two), "d"(three) : "rcx", "r11", "memory");
    return result;
}
__attribute__((force_align_arg_pointer)) void _start(void)
{
    work(100);
    call(1, 1, __start___llvm_prf_cnts, __stop___llvm_prf_cnts - __start___llvm_prf_cnts);
    call(60, 0, 0, 0);
}
""",
}
ENTRIES = {"rare": 1, "usual": 99, "choose": 100, "never": 0, "work": 1, "other": 1, "one.c;step": 1, "two.c;step": 3}
"""How often each function is called."""


def build(directory: Path, *flags: str, instrument: Sequence[str] = INSTRUMENT) -> Path:
    """The linked program; start.c alone has no counters."""
    for name, text in SOURCES.items():
        (directory / name).write_text(text)
        run(directory, COMPILER, "-O2", *(() if name == "start.c" else instrument), *flags, "-c", name)
    path = directory / "program"
    run(directory, "ld", "-o", path, *(f"{Path(name).stem}.o" for name in SOURCES))
    return path


def run(directory: Path, *words: str | Path) -> bytes:
    return subprocess.run(words, cwd=directory, check=True, capture_output=True).stdout
