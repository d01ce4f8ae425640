"""Layouts of the toy kernel: one set of objects, a link order for each seed, and never the wrong one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from kdyno.base.installed import ProgramMissing
from kdyno.base.state import State
from kdyno.kernel import build_directory, lkd
from kdyno.kernel.build import BuildFailed, build, build_layouts
from kdyno.kernel.image import Image
from kdyno.kernel.images import SECTIONS, content_digest
from kdyno.kernel.inputs import InputUnreadable
from kdyno.kernel.knobs import ContradictoryAsks, order
from kdyno.kernel.plan import BuildPlan, check_early
from kdyno.kernel.recipe import Recipe
from kdyno.kernel.source import KernelSource
from kdyno.kernel.vmlinux.sections import read_sections
from tests.unit.kernel_toy import FAKELINUX, TINY, built, no_progress, plan, toy_source

SEEDS = (1, 2, 3)


@pytest.fixture(autouse=True)
def _own_ccache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCACHE_DIR", str(tmp_path_factory.getbasetemp() / "ccache"))


def plans(
    source: KernelSource, state: State, seeds: tuple[int, ...] = SEEDS, toolchain: str = "gcc"
) -> list[BuildPlan]:
    return [plan(Recipe(toolchain=toolchain, layout_seed=seed), source, state) for seed in seeds]


def functions(image: Image) -> list[str]:
    """Names of functions by address."""
    return re.findall(r"^[0-9a-f]+ [tT] (?!_text|_etext)(\w+)$", image.symbols.read_text(), re.M)


def log_of(image: Image) -> str:
    return (image.directory / "build.log").read_text()


@pytest.mark.parametrize("toolchain", ["gcc", "clang-19"])
def test_layouts_differ_in_the_order_of_functions_and_in_nothing_else(
    source: KernelSource, state: State, toolchain: str
) -> None:
    if shutil.which(toolchain) is None:
        pytest.skip(f"needs {toolchain}")
    images = build_layouts(plans(source, state, toolchain=toolchain), state, no_progress, jobs=2)
    orders = [functions(image) for image in images]
    assert len({tuple(order) for order in orders}) == len(SEEDS)
    assert {tuple(sorted(order)) for order in orders} == {tuple(sorted(orders[0]))}
    assert {image.config.read_bytes() for image in images} == {images[0].config.read_bytes()}
    assert [image.record.recipe.layout_seed for image in images] == list(SEEDS)


def order_file(directory: Path, *functions: str) -> str:
    path = directory / "functions.order"
    path.write_text("# by hand\n" + "\n".join(functions) + "\n")
    return str(path)


@pytest.mark.parametrize("toolchain", ["gcc", "clang-19"])
def test_the_functions_of_a_file_come_first_and_the_rest_as_it_was_or_as_the_seed_has_it(
    tmp_path: Path, source: KernelSource, state: State, toolchain: str
) -> None:
    if shutil.which(toolchain) is None:
        pytest.skip(f"needs {toolchain}")
    path = order_file(tmp_path, "sys_close", "nowhere", "crc32", "sys_close")
    messages: list[str] = []
    recipes = [
        Recipe(toolchain=toolchain, **settings)
        for settings in ({"order": path}, {"layout_seed": 3}, {"order": path, "layout_seed": 3})
    ]
    plans = [plan(recipe, source, state) for recipe in recipes]
    assert len({plan.key for plan in plans}) == 3
    asked, shuffled, both = build_layouts(plans, state, no_progress, jobs=2, say=messages.append)
    plain = functions(built(Recipe(toolchain=toolchain), source, state))
    first = ["sys_close", "crc32"]
    assert functions(asked) == first + [name for name in plain if name not in first]
    assert functions(both) == first + [name for name in functions(shuffled) if name not in first]
    for image in (asked, both):
        [note] = image.record.notes
        assert note.startswith("order: 2 of its 3 functions come first; 1 (33.3 %) were not placed: 0 have no section")
        assert note in messages
        assert image.record.inputs.keys() == {"order"}
    assert shuffled.record.notes == ()


def test_an_order_is_its_content_and_not_its_place(tmp_path: Path, source: KernelSource, state: State) -> None:
    (tmp_path / "elsewhere").mkdir()
    here, there = order_file(tmp_path, "crc32"), order_file(tmp_path / "elsewhere", "crc32")
    assert plan(Recipe(order=here), source, state).key == plan(Recipe(order=there), source, state).key
    other = order_file(tmp_path / "elsewhere", "sys_open")
    assert plan(Recipe(order=here), source, state).key != plan(Recipe(order=other), source, state).key


def test_an_order_of_another_kernel_fails_with_its_reason(tmp_path: Path, source: KernelSource, state: State) -> None:
    path = order_file(tmp_path, "nowhere", "neither_here")
    with pytest.raises(
        BuildFailed, match=r"none of the 2 functions that order-\w+ names has a section of its own here"
    ):
        built(Recipe(order=path), source, state)


def test_an_order_of_many_functions_that_the_kernel_has_not_is_no_trouble(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    path = order_file(tmp_path, *(f"f{number}" for number in range(200_000)), "sys_open")
    assert functions(built(Recipe(order=path), source, state))[0] == "sys_open"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b"", "it names no function"),
        (b"# nothing\n\n", "it names no function"),
        (b"f\ng) *(.data\n", r"line 2 is `g\) \*\(.data`"),
        (b"ffffffff81000000 T _text\n", "line 1 is `ffffffff81000000 T _text`"),
        (b"\x7fELF\x02\x01\xff", r"line 1 is `.ELF..\\xff`"),
        (b"f" + b"\xc3\xa4" * 1000, "line 1 is"),
    ],
)
def test_what_is_no_order_is_refused_before_the_build(
    tmp_path: Path, source: KernelSource, state: State, text: bytes, why: str
) -> None:
    (tmp_path / "bad.order").write_bytes(text)
    with pytest.raises(order.OrderUnfit, match=f"bad.order is not a valid function order: {why}"):
        plan(Recipe(order=str(tmp_path / "bad.order")), source, state)
    with pytest.raises(order.OrderUnfit):
        check_early([Recipe(order=str(tmp_path / "bad.order"))], TINY, state)


def test_an_order_that_is_not_there_names_its_path(tmp_path: Path, source: KernelSource, state: State) -> None:
    for path in (tmp_path / "nowhere.order", tmp_path):
        with pytest.raises(InputUnreadable, match=f"can't read {path}, which the recipe names as its order"):
            plan(Recipe(order=str(path)), source, state)


def test_cold_parts_get_a_place_that_the_script_lacks(tmp_path: Path, state: State) -> None:
    tree = toy_source(tmp_path, state).tree
    script = tree / "arch/x86/kernel/vmlinux.lds"
    old = script.read_text().replace("*(.text.hot .text.hot.*) *(.text .", "*(.text.hot .text .")
    script.write_text(old.replace(" *(.text.unlikely .text.unlikely.*)", " *(.text.last)"))
    source_file = tree / "fs/open.c"
    rare = "__attribute__((cold)) int {}(int x)\n{{\n\treturn x + {};\n}}\n"
    last = '__attribute__((section(".text.last"))) int last(void)\n{\n\treturn 1;\n}\n'
    source_file.write_text(rare.format("rare", 1) + source_file.read_text() + rare.format("rarer", 2) + last)
    kernel = KernelSource(identity=toy_source(tmp_path / "other", state).identity, tree=tree)
    path = order_file(tmp_path, "rarer", "sys_open")
    plans = [plan(recipe, kernel, state) for recipe in (Recipe(layout_seed=1), Recipe(order=path))]
    by_seed, by_file = build_layouts(plans, state, no_progress)
    assert functions(by_seed)[-3:] == ["rare", "rarer", "last"]
    assert functions(by_file)[:2] == ["rarer", "sys_open"]
    assert functions(by_file)[-2:] == ["rare", "last"]
    for image in (by_seed, by_file):
        assert "layout: the linker script had no place for .text.unlikely.*; lkd gave them one" in image.record.notes


@pytest.mark.parametrize("toolchain", ["gcc", "clang-19"])
def test_an_image_keeps_what_compilers_called_hot_or_cold(tmp_path: Path, state: State, toolchain: str) -> None:
    if shutil.which(toolchain) is None:
        pytest.skip(f"needs {toolchain}")
    tree = toy_source(tmp_path, state).tree
    often = "__attribute__((hot)) int often(int x)\n{\n\treturn x * 3;\n}\n"
    rare = "__attribute__((cold)) int rare(int x)\n{\n\treturn x + 1;\n}\n"
    source_file = tree / "fs/open.c"
    source_file.write_text(source_file.read_text() + often + rare)
    kernel = KernelSource(identity=toy_source(tmp_path / "other", state).identity, tree=tree)
    plain, *laid_out = [plan(Recipe(toolchain=toolchain, layout_seed=seed), kernel, state) for seed in (None, 1, 2)]
    for image in build_layouts(laid_out, state, no_progress):
        kept = read_sections(image.directory / SECTIONS)
        assert {section.section for section in kept} == {".text.hot.often", ".text.unlikely.rare"}
        assert [section.function for section in kept if section.is_hot] == ["often"]
        assert {section.object for section in kept} == {"fs/open.o"}
        assert image.record.files[SECTIONS] == content_digest(image.directory / SECTIONS)
    assert SECTIONS not in build(plain, state, no_progress).record.files


def test_only_the_first_layout_compiles(source: KernelSource, state: State) -> None:
    lines: list[str] = []
    first, *others = build_layouts(plans(source, state), state, lambda _done, _total, line: lines.append(line), jobs=1)
    assert sum("CC " in line for line in lines) == 3
    assert [line for line in lines if "LD " in line] == [f"layout {seed}: LD      vmlinux" for seed in SEEDS]
    assert {image.record.steps for image in others} == {first.record.steps}
    assert "seed 2" not in log_of(first) and "KDYNO_LAYOUT_SEED=2" not in log_of(others[1])
    for image, links in ((first, 1), (others[0], 2), (others[1], 2)):
        assert [log_of(image).count(words) for words in ("  CC ", "  LD ", "is ready")] == [3, links, links]
    assert list(state.builds.iterdir()) == []


def test_the_same_seed_gives_the_same_bytes_wherever_and_after_whichever_other(
    tmp_path: Path, source: KernelSource, state: State
) -> None:
    together = build_layouts(plans(source, state), state, no_progress, jobs=2)[2]
    elsewhere = State(tmp_path / "elsewhere")
    alone = built(Recipe(layout_seed=3), toy_source(tmp_path / "again", elsewhere), elsewhere)
    assert alone.record.key == together.record.key
    for name in ("vmlinux", "bzImage", "System.map"):
        assert (alone.directory / name).read_bytes() == (together.directory / name).read_bytes()


def test_layouts_that_are_there_are_not_built_again(source: KernelSource, state: State) -> None:
    two = build(plans(source, state)[1], state, no_progress)
    lines: list[str] = []
    asked = [*plans(source, state), plans(source, state)[0]]
    images = build_layouts(asked, state, lambda _done, _total, line: lines.append(line))
    assert [image.record.recipe.layout_seed for image in images] == [1, 2, 3, 1]
    assert images[1] == two
    assert sum("LD " in line for line in lines) == 2
    assert [plan.cached for plan in plans(source, state)] == [True, True, True]


def test_ctrl_c_keeps_the_layouts_that_were_finished(source: KernelSource, state: State) -> None:
    def progress(_done: int, _total: int | None, line: str) -> None:
        if line.startswith("layout 2: LD"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_layouts(plans(source, state), state, progress)
    assert [plan.cached for plan in plans(source, state)] == [True, False, False]
    assert list(state.builds.iterdir()) == []
    assert len(build_layouts(plans(source, state), state, no_progress)) == 3


def test_a_link_without_the_kernels_script_has_no_layout_and_fails(source: KernelSource, state: State) -> None:
    odd = plan(Recipe(layout_seed=1, kconfig={"FAKE_OTHER_SCRIPT": True}), source, state)
    with pytest.raises(
        lkd.LayoutNotMade, match=r"requested layout \(format 1, order none, seed 1; none was made\)"
    ) as raised:
        build(odd, state, no_progress)
    assert build_directory.log_file(odd.objects_key, state).is_file()
    assert str(build_directory.log_file(odd.objects_key, state)) in raised.value.advice
    assert list(state.images.iterdir()) == []


def test_a_script_that_lkd_does_not_understand_fails_with_its_reason(tmp_path: Path, state: State) -> None:
    tree = toy_source(tmp_path, state).tree
    script = tree / "arch/x86/kernel/vmlinux.lds"
    script.write_text(script.read_text().replace("*(.text .text.fixup)", "*(.text*)"))
    changed = KernelSource(identity=toy_source(tmp_path / "other", state).identity, tree=tree)
    with pytest.raises(BuildFailed, match=r"lkd: error: can't lay out vmlinux: no input `\*\(\.text \.\.\.\)`"):
        built(Recipe(layout_seed=1), changed, state)


def test_another_lkd_than_kdyno_counts_on_refuses(
    source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lkd, "FORMAT", "2")
    with pytest.raises(BuildFailed, match="KDYNO_LAYOUT_FORMAT must be 1: kdyno and lkd are of different versions"):
        built(Recipe(layout_seed=1), source, state)


def test_a_script_of_an_earlier_link_does_not_pass_for_a_new_one(tmp_path: Path) -> None:
    log = tmp_path / "log"
    made = "format 1, order order-1, seed 1, 5 sections; placed 2 of 9, 3 without a section; added .text.split.*"
    (tmp_path / lkd.SCRIPT).write_text(f"/* kdyno layout: {made} */\n...")
    one = {lkd.SEED: "1", lkd.ORDER: "../inputs/order-1"}
    lkd.check(tmp_path, one, log)
    for name, other in ((lkd.SEED, "2"), (lkd.ORDER, "../inputs/order-2")):
        with pytest.raises(lkd.LayoutNotMade, match=r"(seed 2|order-2, seed 1); format 1, order order-1, seed 1"):
            lkd.check(tmp_path, {**one, name: other}, log)
    assert lkd.notes(tmp_path) == (
        "order: 2 of its 9 functions come first; 7 (77.8 %) were not placed: 3 have no section of their own (assembly "
        "code, .init.text), 4 are not in this kernel",
        "layout: the linker script had no place for .text.split.*; lkd gave them one",
    )
    (tmp_path / lkd.SCRIPT).write_bytes(b"\xff, and nothing that lkd writes")
    with pytest.raises(lkd.LayoutNotMade, match="unreadable"):
        lkd.check(tmp_path, one, log)
    lkd.forget(tmp_path)
    with pytest.raises(lkd.LayoutNotMade, match="none was made"):
        lkd.check(tmp_path, one, log)
    assert lkd.notes(tmp_path) == ()
    lkd.check(tmp_path, {}, log)


def test_without_an_order_the_linker_is_called_as_it_is_and_half_a_request_is_refused(tmp_path: Path) -> None:
    script = tmp_path / "arch/x86/kernel/vmlinux.lds"
    script.parent.mkdir(parents=True)
    shutil.copy(FAKELINUX / "arch/x86/kernel/vmlinux.lds", script)
    link = tmp_path / "lkd"
    link.symlink_to(lkd.find_lkd())
    code = ".section .text.b\nb: ret\n.section .text.a\n.globl start_kernel\nstart_kernel: ret\n"
    subprocess.run(["as", "-o", "x.o", "-"], cwd=tmp_path, input=code, text=True, check=True)
    words = ["-T", "arch/x86/kernel/vmlinux.lds", "x.o", "-o"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("KDYNO_")}
    subprocess.run([link, *words, "by-lkd"], cwd=tmp_path, env={**environment, "KDYNO_LD": "ld"}, check=True)
    subprocess.run(["ld", *words, "by-ld"], cwd=tmp_path, check=True)
    assert (tmp_path / "by-lkd").read_bytes() == (tmp_path / "by-ld").read_bytes()
    assert not (tmp_path / lkd.SCRIPT).exists()
    for asked, why in (
        ({"KDYNO_LAYOUT_FORMAT": "1", lkd.SEED: "-1"}, "KDYNO_LAYOUT_SEED must be a number"),
        ({lkd.SEED: "1"}, "KDYNO_LAYOUT_FORMAT must be 1"),
        ({"KDYNO_LAYOUT_FORMAT": "1", lkd.ORDER: "nowhere"}, "can't read the order nowhere"),
        ({"KDYNO_LAYOUT_FORMAT": "1", lkd.ORDER: "a */ b"}, "must have a name of letters"),
    ):
        done = subprocess.run(
            [link, *words, "refused"],
            cwd=tmp_path,
            env={**environment, "KDYNO_LD": "ld", **asked},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 1
        assert done.stderr.startswith("lkd: error: can't lay out refused: ") and why in done.stderr
        assert not (tmp_path / "refused").exists()


def test_words_about_profiles_go_to_the_linker_that_compiles_and_to_no_other(tmp_path: Path) -> None:
    link = tmp_path / "lkd"
    link.symlink_to(lkd.find_lkd())
    for name in ("ld", "ld.lld-19"):
        (tmp_path / name).write_text('#!/bin/sh\necho "${0##*/} $*"\n')
        (tmp_path / name).chmod(0o755)

    def called(output: str, **linkers: str) -> str:
        named = {variable: str(tmp_path / name) for variable, name in linkers.items()}
        environment = {"PATH": os.environ["PATH"], "KDYNO_LTO_WORDS_AUTOFDO": "--lto-sample-profile=x", **named}
        return subprocess.run(
            [link, "-r", "-o", output, "a.o"], env=environment, capture_output=True, text=True, check=True
        ).stdout.strip()

    assert called("vmlinux.o", KDYNO_LD="ld") == "ld -r -o vmlinux.o a.o"
    assert called("vmlinux.o", KDYNO_LD="ld.lld-19") == "ld.lld-19 -r -o vmlinux.o a.o --lto-sample-profile=x"
    with_lto = {"KDYNO_LD": "ld", lkd.LTO_LINKER: "ld.lld-19"}
    assert called("vmlinux.o", **with_lto) == "ld.lld-19 -r -o vmlinux.o a.o --lto-sample-profile=x"
    assert called("b.o", **with_lto) == "ld.lld-19 -r -o b.o a.o"


def test_a_layout_and_full_link_time_optimisation_contradict_each_other(source: KernelSource, state: State) -> None:
    if shutil.which("clang-19") is None:
        pytest.skip("needs clang-19")
    with pytest.raises(ContradictoryAsks, match=r'lto = "full" needs CONFIG_LTO_CLANG_FULL=y, but layout_seed = 4'):
        plan(Recipe.model_validate({"toolchain": "clang-19", "lto": "full", "layout_seed": 4}), source, state)


def test_a_missing_delegate_is_said_before_the_build(
    tmp_path: Path, source: KernelSource, state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    real_which = shutil.which
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    monkeypatch.setattr("shutil.which", lambda name: None if name == lkd.BINARY else real_which(name))
    with pytest.raises(ProgramMissing, match=f"a layout needs kdyno-delegate, .* .neither in {tmp_path} nor"):
        plan(Recipe(layout_seed=1), source, state)
