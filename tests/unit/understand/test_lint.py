"""`kdyno kernel lint` on small files in the idiom of the kernel, compiled by both compilers."""

from __future__ import annotations

import gzip
import json
import lzma
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from kdyno.understand.lint.always_inline import declared_names, defined_without
from kdyno.understand.lint.costly import costly_rules, rules_for
from kdyno.understand.lint.model import LINTS, FileRefused, LintFinding, LintReport
from kdyno.understand.lint.sarif import sarif
from kdyno.understand.lint.targets import is_kernel_code, read_symbols
from tests.unit.built_kernel import bz_image

DATA = Path(__file__).parents[2] / "data" / "lint"
FAMILIES = Path(__file__).parents[3] / "src" / "kdyno" / "data" / "families"
FLAGS = ("-O2", "-g1", "-gdwarf-4", "-mno-red-zone", "-mcmodel=kernel", "-fno-pic", "-fcf-protection=none", "-w")
COMPILERS = ("gcc-12", "clang-19")

Compile = Callable[[str, str], str]


@pytest.fixture(name="compile_c", scope="session")
def compile_c_fixture(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    def compile_c(name: str, compiler: str) -> str:
        root = tmp_path_factory.mktemp("tree")
        (root / "kernel").mkdir()
        (root / "o").mkdir()
        shutil.copyfile(DATA / f"{name}.c", root / "kernel" / f"{name}.c")
        # As Kbuild does: in the object directory.
        command = [compiler, *FLAGS, "-c", f"../kernel/{name}.c", "-o", f"{name}.o"]
        subprocess.run(command, cwd=root / "o", check=True)
        return str(root / "o" / f"{name}.o")

    return compile_c


def lint(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> Any:
    capsys.readouterr()
    assert main(["kernel", "lint", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def findings(report: dict[str, Any]) -> list[tuple[str, str]]:
    return [(finding["lint"], finding["function"]) for finding in report["findings"]]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_the_miscompiled_atomic_of_2004_is_found_by_file_function_line_and_instruction(
    compiler: str, compile_c: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    report = lint(capsys, compile_c("lock", compiler))
    assert findings(report) == [("lock-on-stack-copy", "planted_dec_and_lock")]
    (finding,) = report["findings"]
    assert (finding["source"], finding["line"], finding["level"]) == ("kernel/lock.c", 6, "error")
    assert finding["instruction"].startswith("lock cmpxchg [rsp")


def test_clang_copies_an_operand_in_register_or_memory_and_gcc_does_not(
    compile_c: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings(lint(capsys, compile_c("register_or_memory", "gcc-12"))) == []
    report = lint(capsys, compile_c("register_or_memory", "clang-19"))
    assert findings(report) == [("lock-on-stack-copy", "planted_dec")]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_each_other_lint_finds_its_plant_and_nothing_else(
    compiler: str, compile_c: Compile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    source = tree(tmp_path, {"kernel/others.c": (DATA / "others.c").read_text()})
    report = lint(capsys, compile_c("others", compiler), "--source", str(source), "--family", "skylake")
    assert sorted(findings(report)) == [
        # The entry of planted_data_patched: what it names is data, which is in no function.
        ("alternatives", ""),
        ("alternatives", "planted_half_patched"),
        ("alternatives", "planted_loop"),
        ("always-inline-emitted", "planted_inline"),
        ("costly-instruction", "planted_remainder"),
        ("simd-in-kernel", "planted_vector"),
        ("unknown-call", "planted_divide"),
    ]
    (call,) = (finding for finding in report["findings"] if finding["lint"] == "unknown-call")
    assert call["instruction"] == "call __udivti3"
    assert all(finding["source"] == "kernel/others.c" for finding in report["findings"] if finding["function"])


@pytest.mark.parametrize("compiler", COMPILERS)
def test_vectors_between_begin_and_end_are_fine(
    compiler: str, compile_c: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    assert findings(lint(capsys, compile_c("guarded", compiler))) == []


def test_a_name_that_neither_objects_nor_symbols_have_is_unknown(
    compile_c: Compile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    symbols = tmp_path / "System.map"
    symbols.write_text("ffffffff81000000 T kernel_fpu_begin_mask\n")
    path = compile_c("guarded", "gcc-12")
    report = lint(capsys, path, "--symbols", str(symbols))
    assert [finding["message"] for finding in report["findings"]] == [
        "calls kernel_fpu_end, which neither these objects nor the given symbols define"
    ]
    symbols.write_text("ffffffff81000000 T kernel_fpu_begin_mask\nffffffff81000010 T kernel_fpu_end\n")
    assert findings(lint(capsys, path, "--symbols", str(symbols))) == []
    symbols.write_text("no symbols\n")
    assert main(["kernel", "lint", path, "--symbols", str(symbols)]) == 1
    assert "the symbols in" in capsys.readouterr().err


def test_a_directory_is_walked_for_code_of_the_running_kernel(
    compile_c: Compile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    content = Path(compile_c("lock", "gcc-12")).read_bytes()
    commands = {"kernel/a.o": "gcc -D__KERNEL__ a.c", "boot/b.o": "gcc -D__KERNEL__ -m16 b.c", "scripts/c.o": "gcc c.c"}
    for name, command in commands.items():
        path = tmp_path / "o" / name
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        path.with_name(f".{path.name}.cmd").write_text(f"savedcmd_{name} := {command}\n\nsource := x\n")
    report = lint(capsys, str(tmp_path / "o"))
    assert [finding["file"] for finding in report["findings"]] == [str(tmp_path / "o/kernel/a.o")]
    assert report["files"] == 1
    assert is_kernel_code(tmp_path / "o" / "without.o"), "nothing speaks against it"
    (tmp_path / "empty").mkdir()
    assert main(["kernel", "lint", str(tmp_path / "empty")]) == 1
    assert "has no objects or modules of a kernel" in capsys.readouterr().err


def test_an_object_that_cant_be_read_is_one_message_and_the_others_are_looked_through(
    compile_c: Compile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "bad.o").write_bytes(b"\x7fELF, but cut off")
    report = lint(capsys, str(tmp_path / "bad.o"), compile_c("lock", "gcc-12"), status=1)
    assert [file["file"] for file in report["not_read"]] == [str(tmp_path / "bad.o")]
    assert len(report["findings"]) == 1


def test_ci_may_fail_on_errors_and_warnings_and_not_on_notes(
    compile_c: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    path = compile_c("others", "gcc-12")
    lint(capsys, path, "--fail-on-finding", status=2)
    lint(capsys, path, "--only", "costly-instruction", "--family", "skylake", "--fail-on-finding")
    lint(capsys, compile_c("guarded", "gcc-12"), "--fail-on-finding")


def test_people_read_place_level_and_instruction(compile_c: Compile, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["kernel", "lint", compile_c("lock", "gcc-12")]) == 0
    captured = capsys.readouterr()
    assert "kernel/lock.c:6: error: atomic on a copy on the stack" in captured.out
    assert "1 file: 1 error, 0 warnings, 0 notes" in captured.out
    assert "costly-instruction was not run: it requires --family NAME or --costs FILE" in captured.err


def test_what_is_asked_for_in_vain_is_refused(compile_c: Compile, capsys: pytest.CaptureFixture[str]) -> None:
    path = compile_c("guarded", "gcc-12")
    for words, why in (
        (["--only", "nonsense"], "nonsense is not the name of a lint"),
        (["--only", "costly-instruction"], "costly-instruction needs --family NAME"),
        (
            ["--only", "simd-in-kernel", "--family", "skylake"],
            "--family is about costly-instruction, which --only leaves",
        ),
        (["--only", "simd-in-kernel", "--costs", "nowhere.toml"], "--costs is about costly-instruction, which --only"),
        (["--family", "i386"], "has no list of costly instructions of i386"),
        (["--source", str(DATA)], "is not a kernel source tree"),
    ):
        assert main(["kernel", "lint", path, *words]) == 1
        assert why in capsys.readouterr().err
    assert main(["kernel", "lint", "no-such-image"]) == 1
    assert "there is nothing called no-such-image" in capsys.readouterr().err


def test_the_json_is_as_its_schema_says(compile_c: Compile, capsys: pytest.CaptureFixture[str]) -> None:
    report = lint(capsys, compile_c("others", "gcc-12"))
    jsonschema.validate(report, schema("lint"))
    assert report["not_run"] == {
        "always-inline-emitted": "--source TREE",
        "costly-instruction": "--family NAME or --costs FILE",
    }


def test_sarif_has_a_rule_and_a_place_below_the_root_for_each_finding(
    compile_c: Compile, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "lint.sarif"
    lint(capsys, compile_c("lock", "gcc-12"), "--sarif", str(file))
    log = json.loads(file.read_text())
    assert (log["version"], len(log["runs"])) == ("2.1.0", 1)
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(LINTS)
    (result,) = run["results"]
    assert rules[result["ruleIndex"]]["id"] == result["ruleId"] == "lock-on-stack-copy"
    assert result["level"] == "error"
    place = result["locations"][0]["physicalLocation"]
    assert place == {"artifactLocation": {"uri": "kernel/lock.c", "uriBaseId": "SRCROOT"}, "region": {"startLine": 6}}
    assert place["artifactLocation"]["uriBaseId"] in run["originalUriBaseIds"]


def test_sarif_names_the_object_where_there_is_no_line_and_escapes_odd_paths() -> None:
    finding = LintFinding(
        lint="simd-in-kernel", level="error", file="a b:c.o", source=None, line=None, function="f", address="0x0",
        section=".text", instruction="fninit", message="uses x87",
    )  # fmt: skip
    absolute = finding.model_copy(update={"source": "/x y/z.c", "line": 0})
    report = LintReport(files=2, findings=(finding, absolute), not_read=(), not_run={})
    first, second = (result["locations"][0]["physicalLocation"] for result in sarif(report)["runs"][0]["results"])
    assert first == {"artifactLocation": {"uri": "a%20b%3Ac.o"}}
    assert second == {"artifactLocation": {"uri": "file:///x%20y/z.c"}}, "line 0 is no line"


def test_sarif_shows_hostile_names_without_links_and_controls() -> None:
    finding = LintFinding(
        lint="simd-in-kernel", level="error", file="x.o", source=None, line=None, function="[f](https://x.invalid)\x1b[2J\x07",
        address="0x0", section=".text", instruction="mov [rdi]", message="uses x87",
    )  # fmt: skip
    refused = FileRefused(refused="[g](https://x.invalid)\x9b", why="no")
    [run] = sarif(LintReport(files=1, findings=(finding,), not_read=(refused,), not_run={}))["runs"]
    [result], [notification] = run["results"], run["invocations"][0]["toolExecutionNotifications"]
    for text in (result["message"]["text"], notification["message"]["text"]):
        assert r"\](https" in text and not re.search(r"(?<!\\)[\[\]]", text)
        assert text.isprintable()
    assert result["locations"][0]["logicalLocations"][0]["name"].isprintable()


def tree(path: Path, sources: dict[str, str]) -> Path:
    """A tree that passes for a kernel's source."""
    for name in ("Kconfig", "include/linux/types.h", "arch/x86/Kconfig"):
        (path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "tree" / name).write_text("")
    for name, text in sources.items():
        (path / "tree" / name).parent.mkdir(parents=True, exist_ok=True)
        (path / "tree" / name).write_text(text)
    return path / "tree"


def test_the_scanner_knows_how_kernels_declare_always_inline() -> None:
    text = b"""
        #define FORCE_INLINE __always_inline
        #define MAKE(op) \\
            static __always_inline int op##_made(void) { }
        int plain(void) { }
        static __always_inline int one(void) { }
        static __always_inline __attribute__((__const__)) unsigned long
        two(unsigned long x)
        { }
        static inline __attribute__((__always_inline__)) void *three(void);
        static inline __attribute__((always_inline)) typeof(int) four(int (*f)(int)) { }
        /* __always_inline int five(void) */ int six(void) { }
        static __always_inline struct s seven; int eight(void) { }
    """
    assert declared_names(text) == {"one", "two", "three", "four"}


def test_a_name_that_is_also_defined_without_always_inline_does_not_count(tmp_path: Path) -> None:
    source = tree(
        tmp_path,
        {
            "include/linux/a.h": "static __always_inline int both(int (*f)(int))\n{ return f(1); }\n",
            "lib/b.c": "int both(int (*f)(int))\n{ return 0; }\nint main(void) { return both(0); }\n",
            "lib/c.S": "SYM_FUNC_START(assembled)\n",
            "arch/arm/d.c": "int other(void)\n{ }\n",
            "lib/e.c": "int caller(void) { if (other()) { } return 1; }\nextern int other(void);\n",
        },
    )
    assert defined_without(source, {"both", "other", "assembled"}) == {"both", "assembled"}
    assert defined_without(source, set()) == set()


def test_rules_name_families_and_sources() -> None:
    families = {path.stem for path in FAMILIES.glob("*.toml")}
    for rule in costly_rules():
        assert rule.cost.keys() <= families, rule.name
    assert {rule["cost"] for rule in rules_for("skylake") if rule["name"] == "64-bit division"} == {"about 76 cycles"}


def test_symbols_are_read_from_tables_of_symbols(tmp_path: Path) -> None:
    path = tmp_path / "System.map"
    path.write_text("0000000000000000 D __per_cpu_start\nffffffff81000000 T _text\n")
    symbols = read_symbols(path)
    assert symbols.names == ("__per_cpu_start", "_text")
    assert symbols.functions == ((0xFFFFFFFF81000000, True, "_text"),)


@pytest.fixture(name="linked", scope="session")
def linked_fixture(compile_c: Compile) -> Path:
    """A kernel in small: linked to where kernels are, with its symbols."""
    objects = compile_c("lock", "gcc-12"), compile_c("others", "gcc-12")
    vmlinux = Path(objects[0]).with_name("vmlinux")
    words = ["--unresolved-symbols=ignore-all", "-z", "noexecstack", "-Ttext=0xffffffff81000000", "-o", str(vmlinux)]
    subprocess.run(["ld", *words, *objects], check=True, capture_output=True)
    return vmlinux


def stripped(linked: Path, tmp_path: Path) -> Path:
    path = tmp_path / "stripped"
    subprocess.run(["strip", "-s", "-o", str(path), str(linked)], check=True)
    return path


def test_a_kernel_without_symbols_is_one_line_and_no_finding_is_on_a_section(
    linked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stripped(linked, tmp_path)
    report = lint(capsys, str(path), "--family", "skylake")
    functions = [finding["function"] for finding in report["findings"]]
    assert not any(name.startswith(".") for name in functions)
    assert {finding["lint"] for finding in report["findings"]} <= {"alternatives"}
    [bare] = report["without_functions"]
    assert bare["file"] == str(path)
    assert bare["lints"] == ["lock-on-stack-copy", "simd-in-kernel", "costly-instruction"]
    assert main(["kernel", "lint", str(path)]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "no symbols" in line]
    assert len(said) == 1 and "--symbols System.map" in said[0]


def test_a_table_of_symbols_gives_a_stripped_kernel_its_functions_back(
    linked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, symbols = stripped(linked, tmp_path), tmp_path / "System.map"
    symbols.write_text(subprocess.run(["nm", "-n", str(linked)], check=True, capture_output=True, text=True).stdout)
    with_symbols = findings(lint(capsys, str(linked)))
    assert ("lock-on-stack-copy", "planted_dec_and_lock") in with_symbols
    report = lint(capsys, str(path), "--symbols", str(symbols))
    assert findings(report) == with_symbols and report["without_functions"] == []


def test_a_kernel_that_boots_is_unpacked(linked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = tmp_path / "vmlinuz"
    kernel.write_bytes(bz_image(gzip.compress(linked.read_bytes(), mtime=0)))
    assert findings(lint(capsys, str(kernel))) == findings(lint(capsys, str(linked)))
    kernel.write_bytes(bz_image(gzip.compress(linked.read_bytes(), mtime=0)[:-20]))
    assert main(["kernel", "lint", str(kernel)]) == 1
    assert "can't be unpacked: it is damaged" in capsys.readouterr().err


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_kernel_that_is_a_program_is_checked_without_its_c_library(
    compiler: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    program = tmp_path / "linux"
    subprocess.run([compiler, "-O2", "-static", "-o", str(program), DATA / "program.c"], check=True)
    report = lint(capsys, str(program))
    found = {function for name, function in findings(report) if name == "simd-in-kernel"}
    assert found <= {"planted_cold", "planted_simd", "main"} and {"planted_cold", "planted_simd"} <= found
    assert {function for _, function in findings(report)} == found
    [left_out] = report["left_out"]
    assert left_out["file"] == str(program) and left_out["functions"] > 300
    assert main(["kernel", "lint", str(program)]) == 0
    assert (
        f"{left_out['functions']:,} functions of the C library, which are not the kernel's" in capsys.readouterr().err
    )


def test_a_helper_that_is_killed_is_said_to_be_killed(
    linked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    helper = tmp_path / "kdyno-lint"
    helper.write_text("#!/bin/sh\nkill -9 $$\n")
    helper.chmod(0o755)
    monkeypatch.setattr("kdyno.understand.lint.run.find_lint", lambda: helper)
    assert main(["kernel", "lint", str(linked)]) == 3
    said = capsys.readouterr().err
    assert "killed by signal 9" in said and "memory" in said and "pip install" not in said


@pytest.mark.parametrize(
    ("script", "says"),
    [
        (
            "printf '{\"begun\":\"'; head -c 2000000 /dev/zero | tr '\\0' x; printf '\"}\\n'",
            "a record: it is no JSON: ",
        ),
        ("echo '{ no JSON'", "a record: it is no JSON: "),
        ('echo \'{"refused":"a.o"}\'', "it is missing"),
        ('echo \'{"refused":[], "why":7}\'', "it is missing"),
        ('printf \'{"begun":"a.o\'; kill -9 $$', "killed by signal 9"),
        ('printf \'{"begun":"a.o\'; exit 3', "failed: status 3"),
        ("yes error | head -n 100000; exit 1", "failed: error error"),
        ("printf '\\033]0;title\\007'; exit 1", "failed: status 1"),
    ],
)
def test_whatever_the_helper_says_ends_in_one_message(
    script: str,
    says: str,
    linked: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    helper = tmp_path / "kdyno-lint"
    helper.write_text(f"#!/bin/sh\n{script}\n")
    helper.chmod(0o755)
    monkeypatch.setattr("kdyno.understand.lint.run.find_lint", lambda: helper)
    assert main(["kernel", "lint", str(linked)]) == 3
    said = capsys.readouterr().err
    assert says in said and said.count("kdyno: ") == 1 and said.count("hint: ") == 1
    assert len(said) < 3000 and "\x1b" not in said


def test_packed_modules_of_a_directory_are_unpacked_and_named_as_they_are_there(
    tmp_path: Path, compile_c: Compile, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled = compile_c("lock", "gcc-12")
    module = Path(compiled).read_bytes()
    packed = {"a.ko": module, "b.ko.xz": lzma.compress(module), "net/c.ko.gz": gzip.compress(module, mtime=0)}
    (tmp_path / "modules" / "net").mkdir(parents=True)
    for name, content in packed.items():
        (tmp_path / "modules" / name).write_bytes(content)
    report = lint(capsys, str(tmp_path / "modules"))
    assert [finding["file"] for finding in report["findings"]] == [str(tmp_path / "modules" / name) for name in packed]
    assert findings(lint(capsys, str(tmp_path / "modules/b.ko.xz"))) == findings(lint(capsys, compiled))

    (tmp_path / "modules" / "b.ko.xz").write_bytes(lzma.compress(module)[:-9])
    assert main(["kernel", "lint", str(tmp_path / "modules")]) == 1
    printed = capsys.readouterr()
    assert f"not checked: {tmp_path}/modules/b.ko.xz: it is compressed (xz)" in printed.err
    assert printed.out.count("lock-on-stack-copy") == 2
