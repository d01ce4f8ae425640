"""Lints on a real kernel: what they say of the demo's vmlinux, and of its own files with one thing planted in each."""

from __future__ import annotations

import json
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.state import State
from kdyno.kernel.build import build, plan_build
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import fetch
from kdyno.runs.experiment.models import Experiment
from tests.e2e.conftest import Kdyno

EXPERIMENT = Experiment(
    name="lint",
    source="debian:linux-source-6.12",
    baseline="plain",
    variants={"plain": Recipe(opt="O2", lines=True)},
    blocks=2,
)
VALUE = """\
static __always_inline int cmpxchg_of_a_value(atomic_t v, int old, int new)
{
	asm volatile(LOCK_PREFIX "cmpxchgl %2,%1" : "+a" (old), "+m" (v.counter) : "r" (new) : "memory");
	return old;
}

int _atomic_dec_and_lock(atomic_t *atomic, spinlock_t *lock)
{
	int counter;

	while ((counter = atomic_read(atomic)) != 1)
		if (cmpxchg_of_a_value(*atomic, counter, counter - 1) == counter)
			return 0;
"""
PLANTS = {
    "lock-on-stack-copy": VALUE,
    "simd-in-kernel": """\
int _atomic_dec_and_lock(atomic_t *atomic, spinlock_t *lock)
{
	asm volatile("movups (%0), %%xmm0" : : "r" (lock) : "memory");
""",
    "unknown-call": """\
unsigned __int128 planted(unsigned __int128 a, unsigned __int128 b);
unsigned __int128 planted(unsigned __int128 a, unsigned __int128 b) { return a / b; }
int _atomic_dec_and_lock(atomic_t *atomic, spinlock_t *lock)
{
""",
    "always-inline-emitted": """\
static __always_inline int _planted(void) { return 0; }
int (*planted_pointer)(void) = _planted;
int _atomic_dec_and_lock(atomic_t *atomic, spinlock_t *lock)
{
""",
    "alternatives": """\
int _atomic_dec_and_lock(atomic_t *atomic, spinlock_t *lock)
{
	asm volatile(ALTERNATIVE("nopl (%%rax)", "loop .", 1) : : : "memory");
	asm volatile(ALTERNATIVE("jmp 1f; 1:", "jrcxz _atomic_dec_and_lock", 1) : : : "memory");
""",
}
"""What takes the place of the start of _atomic_dec_and_lock in lib/dec_and_lock.c."""
START = "int _atomic_dec_and_lock(atomic_t *atomic, spinlock_t *lock)\n{\n"
TRANSLATED = {
    "-mpreferred-stack-boundary=3": "-mstack-alignment=8",
    "-mindirect-branch=thunk-extern": "-mretpoline-external-thunk",
}
UNKNOWN_TO_CLANG = {
    "-mindirect-branch-register",
    "-mindirect-branch-cs-prefix",
    "-mskip-rax-setup",
    "-mno-fp-ret-in-387",
    "-fno-allow-store-data-races",
    "-fconserve-stack",
    "-falign-jumps=1",
    "-falign-loops=1",
}


@pytest.fixture(scope="session")
def image(state: Path) -> Image:
    source = fetch(EXPERIMENT.source, State(state), print)
    plan = plan_build(EXPERIMENT.variants["plain"], source, "dyno", State(state))
    return build(plan, State(state), lambda _done, _total, _line: None)


@pytest.fixture(scope="session")
def objects(state: Path, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An object directory with one object of the same configuration, and the command that made it."""
    tree = fetch(EXPERIMENT.source, State(state), print).tree
    made = tmp_path_factory.mktemp("objects")
    (made / ".config").write_bytes(image.config.read_bytes())
    for goal in ("olddefconfig", "prepare", "lib/dec_and_lock.o"):
        command = ["make", "-s", "-j2", f"--directory={tree}", f"O={made}", "KCFLAGS=-g1", goal]
        subprocess.run(command, check=True, capture_output=True)
    return made


def lint(kdyno: Kdyno, *words: str) -> list[dict[str, Any]]:
    findings: list[dict[str, Any]] = json.loads(kdyno("kernel", "lint", *words, "--json").stdout)["findings"]
    return findings


def test_of_an_untouched_kernel_nothing_is_found(kdyno: Kdyno, image: Image) -> None:
    assert lint(kdyno, image.record.key) == []


@pytest.mark.long
@pytest.mark.parametrize("compiler", ["gcc-12", "clang-19"])
@pytest.mark.parametrize("planted", PLANTS)
def test_each_lint_finds_what_was_planted_in_a_file_of_the_kernel(
    planted: str, compiler: str, kdyno: Kdyno, state: Path, objects: Path, tmp_path: Path
) -> None:
    tree = fetch(EXPERIMENT.source, State(state), print).tree
    text = (tree / "lib/dec_and_lock.c").read_text()
    changed = tmp_path / "dec_and_lock.c"
    changed.write_text(text.replace(START, PLANTS[planted], 1))
    command = (objects / "lib/.dec_and_lock.o.cmd").read_text().splitlines()[0].split(" := ", 1)[1]
    words = [word for word in shlex.split(command)[1:] if not word.startswith("-Wp,")]
    if compiler == "clang-19":
        known = [word for word in words if word not in UNKNOWN_TO_CLANG and not word.startswith("-W")]
        words = [*(TRANSLATED.get(word, word) for word in known), "-w"]
    made = tmp_path / "planted.o"
    words = [str(changed) if word.endswith("lib/dec_and_lock.c") else word for word in words]
    words[words.index("-o") + 1] = str(made)
    subprocess.run([compiler, *words], cwd=objects, check=True, capture_output=True)
    source = tmp_path / "tree"
    for name in ("Kconfig", "include/linux/types.h", "arch/x86/Kconfig", "lib/dec_and_lock.c"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        (source / name).write_text(changed.read_text() if name.endswith(".c") else "")
    findings = lint(kdyno, str(made), "--source", str(source))
    assert {finding["lint"] for finding in findings} == {planted}
    assert all(finding["line"] for finding in findings)
