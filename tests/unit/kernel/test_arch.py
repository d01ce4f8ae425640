"""Architectures: a kernel for ARCH=um is a program, whose source has the benchmarks that it runs on itself."""

from __future__ import annotations

import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from kdyno.base.state import State
from kdyno.kernel import own_patches, paths
from kdyno.kernel.arch import ARCHES, UM, X86_64
from kdyno.kernel.image import ArchName
from kdyno.kernel.kconfig import resolve_base
from kdyno.kernel.paths import NoUserModeLinux, TooOldForPaths, patch_of
from kdyno.kernel.plan import plan_build
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from tests.unit.kernel.test_own_patches import of_version
from tests.unit.kernel_toy import TINY

SIGNALS = (Path(__file__).parents[2] / "data" / "um-signal.c").read_text()
IRQFLAGS = """
extern int signals_enabled;
void block_signals(void);
static inline void arch_local_irq_restore(unsigned long flags)
{
	um_set_signals(flags);
}
static inline void arch_local_irq_disable(void)
{
	block_signals();
}
"""
OS_HEADER = "extern void block_signals(void);\nextern void unblock_signals(void);\n"
BARRIER = '#define barrier() asm volatile("" : : : "memory")\nint signals_enabled = 1;\n'
CALLER = """
void unblock_signals(void)
{
	signals_enabled = 1;
}
int main(void)
{
	int masked;

	arch_local_irq_restore(0);
	masked = !signals_enabled;
	arch_local_irq_restore(1);
	arch_local_irq_disable();
	return masked + 2 * signals_enabled;
}
"""


@pytest.fixture
def um_source(source: KernelSource, monkeypatch: pytest.MonkeyPatch) -> KernelSource:
    """The toy with the files that the benchmarks hook into; it has no code for user processes."""
    for name in paths.HOOKS:
        file = source.tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("# first\n# last")
    texts = (*zip(paths.INTERRUPTS, (IRQFLAGS, OS_HEADER), strict=True), (paths.SIGNALS, SIGNALS))
    for name, text in texts:
        file = source.tree / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    with (source.tree / "Kconfig").open("a") as kconfig:
        kconfig.write('source "init/Kconfig"\n')
    monkeypatch.setattr(paths, "_nouser", lambda _release: "")
    return source


def test_each_architecture_has_a_base_configuration_of_its_own() -> None:
    names: list[ArchName] = ["x86_64", "um"]
    assert list(ARCHES) == names
    assert len({arch.base for arch in ARCHES.values()}) == len(ARCHES)
    assert all(resolve_base(arch.base).kind == "fragment" for arch in ARCHES.values())


def test_a_base_of_one_architecture_stands_for_that_of_another_and_other_files_stay() -> None:
    assert UM.base_for("dyno") == UM.base_for("paths") == "paths"
    assert X86_64.base_for("paths") == "dyno"
    assert UM.base_for("file:/tmp/config") == "file:/tmp/config"


def test_the_patch_adds_the_benchmarks_and_a_line_at_the_end_of_each_hook(um_source: KernelSource) -> None:
    text = patch_of(of_version(um_source, "6.12.117"))
    subprocess.run(["git", "apply", "-p1", "-"], cwd=um_source.tree, input=text, text=True, check=True)
    for name, line in paths.HOOKS.items():
        assert (um_source.tree / name).read_text() == f"# first\n# last\n{line}\n"
    own = Path(str(files("kdyno") / "data" / "paths"))
    for name in ("main.c", "pipe.c", "kdyno_paths.h", "Kconfig", "Makefile"):
        assert (um_source.tree / paths.DIRECTORY / name).read_bytes() == (own / name).read_bytes()


def test_interrupts_are_masked_inline_and_what_enables_them_is_a_call_of_every_compiler(
    um_source: KernelSource,
) -> None:
    text = patch_of(of_version(um_source, "6.12.117"))
    subprocess.run(["git", "apply", "-p1", "-"], cwd=um_source.tree, input=text, text=True, check=True)
    irqflags, header = ((um_source.tree / name).read_text() for name in paths.INTERRUPTS)
    assert "\tblock_signals();" not in irqflags and irqflags.count("signals_enabled = 0;") == 2
    assert "extern void unblock_signals(void) __attribute__((__noinline__));" in header
    program = f"{header}{BARRIER}{irqflags}{CALLER}"
    file = um_source.tree / "caller"
    subprocess.run(["gcc", "-O3", "-x", "c", "-", "-o", file], input=program, text=True, check=True)
    assert subprocess.run([file], check=False).returncode == 1
    calls = subprocess.run(["objdump", "-d", "--disassemble=main", file], capture_output=True, text=True, check=True)
    assert calls.stdout.count("<unblock_signals>") == 1


def test_a_source_that_masks_interrupts_otherwise_keeps_its_code(um_source: KernelSource) -> None:
    for name in paths.INTERRUPTS:
        file = um_source.tree / name
        file.write_text(file.read_text().replace("extern int signals_enabled;", "int um_get_signals(void);"))
    assert not any(name in patch_of(of_version(um_source, "6.12.117")) for name in paths.INTERRUPTS)


def test_the_rare_part_of_unblock_signals_becomes_a_function_that_does_the_same(um_source: KernelSource) -> None:
    text = patch_of(of_version(um_source, "6.12.117"))
    subprocess.run(["git", "apply", "-p1", "-"], cwd=um_source.tree, input=text, text=True, check=True)
    patched = (um_source.tree / paths.SIGNALS).read_text()
    short = patched.partition("void unblock_signals(void)")[2].partition("\n}\n")[0]
    assert "while" not in short and "while (1)" in patched and patched.count("int save_pending;") == 1
    program = um_source.tree / "signals"
    subprocess.run(["gcc", "-O2", "-x", "c", "-", "-o", program], input=patched, text=True, check=True)
    assert subprocess.run([program], check=False).returncode == 15


def test_a_source_whose_unblock_signals_looks_otherwise_keeps_it(um_source: KernelSource) -> None:
    signals = um_source.tree / paths.SIGNALS
    signals.write_text(SIGNALS.replace("save_pending;", "pending;"))
    assert paths.SIGNALS not in patch_of(of_version(um_source, "6.12.117"))


def test_all_code_of_the_benchmarks_gets_into_the_patch(um_source: KernelSource) -> None:
    text = patch_of(of_version(um_source, "6.12.117"))
    directory = Path(str(files("kdyno") / "data" / "paths"))
    for path in directory.glob("*.[ch]"):
        assert f"+++ b/{paths.DIRECTORY}/{path.name}\n" in text


@pytest.mark.parametrize(("version", "file"), [("6.1.3", "6.1"), ("6.5", "6.1"), ("6.13-rc1", "6.12"), ("7.9", "7.2")])
def test_a_version_gets_the_patch_of_the_nearest_older_one(version: str, file: str) -> None:
    directory = Path(str(files("kdyno") / "data" / "paths" / "nouser"))
    assert paths._nouser(own_patches.release_of(version)) == (directory / f"{file}.patch").read_text()


def test_a_source_that_is_too_old_or_has_no_user_mode_linux_is_refused(source: KernelSource) -> None:
    with pytest.raises(TooOldForPaths, match=r"for Linux 6\.1 and newer"):
        patch_of(of_version(source, "5.15.3"))
    with pytest.raises(NoUserModeLinux, match="can't be built for ARCH=um"):
        patch_of(of_version(source, "6.12.1"))


@pytest.mark.parametrize(
    ("compiler", "words"),
    [("gcc", ("ARCH=um", "SUBARCH=x86_64")), ("clang-19", ("ARCH=um", "SUBARCH=x86", "OBJCOPY=objcopy"))],
)
def test_a_plan_names_the_architecture_and_has_its_flags_before_those_of_the_recipe(
    um_source: KernelSource, state: State, compiler: str, words: tuple[str, ...]
) -> None:
    recipe = Recipe(toolchain=compiler, cflags=("-fno-ipa-cp",) if compiler == "gcc" else ("-fno-unroll-loops",))
    plan = plan_build(recipe, of_version(um_source, "6.12.1"), "paths", state, arch=UM)
    assert plan.make[: len(words)] == words
    flags = next(word for word in plan.make if word.startswith("KCFLAGS=")).removeprefix("KCFLAGS=").split()
    assert flags[: len(UM.kcflags)] == list(UM.kcflags) and flags[-1] == recipe.cflags[-1]
    assert plan.asked["KDYNO_PATHS"] == "y"
    assert (plan.arch, len(plan.patches)) == (UM, 1)


def test_the_linker_of_a_compiler_that_links_is_named_in_a_directory(um_source: KernelSource, state: State) -> None:
    source = of_version(um_source, "6.12.1")
    plan = plan_build(Recipe(layout_seed=3), source, "paths", state, arch=UM)
    assert {"LD=lkd", "KDYNO_LINK=lkd"} <= set(plan.make)
    assert plan.environment["KDYNO_LD"] == "ld"
    without = plan_build(Recipe(), source, "paths", state, arch=UM)
    assert not any("lkd" in word for word in without.make)


def test_the_same_recipe_is_another_image_on_another_architecture(um_source: KernelSource, state: State) -> None:
    source = of_version(um_source, "6.12.1")
    keys = {plan_build(Recipe(), source, TINY, state, arch=arch).key for arch in ARCHES.values()}
    assert len(keys) == len(ARCHES)
