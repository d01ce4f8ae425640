"""`kdyno coverage` on a toy kernel that was compiled and linked as Linux is; records of it are made by hand."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kdyno.cli.main import main
from kdyno.cli.schemas import schema
from tests.unit.coverage_specimen import Toy, make_toy
from tests.unit.pmu_specimen import write


@pytest.fixture(scope="module", name="toy", params=["-gdwarf-4", "-gdwarf-5"])
def toy_with_lines(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Toy:
    return make_toy(tmp_path_factory.mktemp("linux"), "-g1", request.param)


class Command:
    """The command with what it needs of a kernel that isn't kdyno's own."""

    def __init__(self, toy: Toy, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.toy, self.folder, self.capsys = toy, folder, capsys

    def __call__(self, *words: str, status: int = 0) -> str:
        common = ("--vmlinux", str(self.toy.vmlinux), "--source", str(self.toy.tree), "--state", str(self.folder / "s"))
        given = main(["coverage", *words, *common, "-q"])
        captured = self.capsys.readouterr()
        assert given == status, captured.err
        return captured.err if status else captured.out

    def record(self, name: str, runs: dict[str, int], boot: dict[str, int] | None = None) -> str:
        return str(self.toy.record(self.folder / name, runs, boot))


@pytest.fixture
def coverage(toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(toy, tmp_path, capsys)


def checked(text: str, name: str) -> Any:
    value = json.loads(text)
    jsonschema.Draft202012Validator(schema(name)).validate(value)
    return value


def test_lines_functions_files_and_directories_have_their_counts(coverage: Command) -> None:
    printed = coverage(coverage.record("r.kpmu", {"work": 7, "twice": 2}), "--json")
    report = checked(printed, "coverage")
    functions = {
        function["name"]: (function["file"], function["line"], function["calls"]) for function in report["functions"]
    }
    assert functions == {
        "work": ("kernel/work.c", 4, 7),
        "twice": ("kernel/work.c", 9, 2),
        "idle": ("kernel/idle.c", 2, 0),
        "boot": ("drivers/boot.c", 2, 0),
    }
    files = {file["path"]: file["totals"] for file in report["files"]}
    assert files["include/linux/step.h"]["executed"] == files["include/linux/step.h"]["lines"] > 0
    assert (files["kernel/idle.c"]["executed"], files["kernel/idle.c"]["functions"]) == (0, 1)
    folders = {directory["path"]: directory["totals"]["functions_executed"] for directory in report["directories"]}
    assert folders == {"drivers": 0, "include": 0, "include/linux": 0, "kernel": 2}


def test_what_is_inlined_twice_into_a_function_is_executed_twice(coverage: Command, tmp_path: Path) -> None:
    trace = tmp_path / "out.info"
    coverage(coverage.record("r.kpmu", {"work": 7, "twice": 2}), "--lcov", str(trace))
    files = {part.partition("\n")[0]: part for part in trace.read_text().split("SF:")[1:]}
    header = files[str(coverage.toy.tree / "include/linux/step.h")]
    assert "DA:3,11\n" in header  # 7 times in work, 2 times 2 in twice
    source = files[str(coverage.toy.tree / "kernel/work.c")]
    assert "FN:4,work\n" in source and "FNDA:7,work\n" in source and "DA:10,2\n" in source
    assert re.search(r"^LF:(\d+)\nLH:\1$", source, re.MULTILINE)


def test_pages_show_each_source_with_its_counts_and_run_nothing(coverage: Command, tmp_path: Path) -> None:
    pages = tmp_path / "pages"
    coverage(coverage.record("r.kpmu", {"work": 7}), "--html", str(pages))
    assert {str(path.relative_to(pages)) for path in pages.rglob("*.html")} == {
        "index.html",
        *(f"src/{name}.html" for name in ("kernel/work.c", "kernel/idle.c", "drivers/boot.c", "include/linux/step.h")),
    }
    page = (pages / "src/kernel/work.c.html").read_text()
    assert re.search(r"<i class=f id=L5[^>]*> +5 +7  \treturn step\(n\) \+ 1; /\* &lt;b&gt;&amp;amp; \*/</i>", page)
    assert re.search(r"<i class=n id=L10[^>]*> +10 +0  ", page)
    assert 'href="../../index.html"' in page and "default-src &#39;none&#39;" in page.replace("'", "&#39;")
    everything = "".join(path.read_text() for path in pages.rglob("*.html"))
    assert "<script" not in everything and "http" not in everything.replace("http-equiv", "")


def test_the_boot_counts_if_that_is_asked_for(coverage: Command) -> None:
    record = coverage.record("r.kpmu", {"work": 7}, boot={"boot": 3, "work": 1})
    for options, expected in (((), {"work": 7}), (("--boot",), {"work": 8, "boot": 3})):
        report = checked(coverage(record, "--json", *options), "coverage")
        calls = {function["name"]: function["calls"] for function in report["functions"] if function["calls"]}
        assert calls == expected


def test_unused_names_what_neither_workload_nor_boot_executes_by_size(coverage: Command) -> None:
    record = coverage.record("r.kpmu", {"work": 7}, boot={"boot": 3})
    document = checked(coverage(record, "--unused", "--json"), "coverage-unused")
    assert [function["name"] for function in document["functions"]] == ["twice", "idle"]
    assert [(file["path"], file["functions"]) for file in document["files"]] == [("kernel/idle.c", 1)]
    assert [(symbol["name"], symbol["files"]) for symbol in document["symbols"]] == [("IDLE", ["kernel/idle.c"])]
    assert re.search(r"IDLE +\d+ +1\n", coverage(record, "--unused"))


def test_a_difference_names_what_only_one_of_two_executes(coverage: Command, tmp_path: Path) -> None:
    both = [coverage.record("a.kpmu", {"work": 7, "idle": 1}), coverage.record("b.kpmu", {"work": 9, "twice": 2})]
    pages = tmp_path / "pages"
    document = checked(coverage("--diff", *both, "--json", "--html", str(pages)), "coverage-diff")
    assert [(function["name"], function["calls"]) for function in document["functions"]] == [
        ("twice", [0, 2]),
        ("idle", [1, 0]),
    ]
    assert {file["path"] for file in document["files"]} == {"kernel/idle.c", "kernel/work.c"}
    page = (pages / "src/kernel/work.c.html").read_text()
    assert re.search(r"<i class=f id=L5> +5 +7 +9  ", page) and re.search(r"<i class=b id=L10> +10 +0 +2  ", page)
    assert "only in A" in coverage("--diff", *both)


def test_bad_input_is_one_message_each(coverage: Command, tmp_path: Path) -> None:
    toy = coverage.toy
    record = coverage.record("r.kpmu", {"work": 7})
    empty = str(toy.record(tmp_path / "empty.kpmu", {}))
    other = str(write(tmp_path / "other.kpmu", replace(toy.recorded({"work": 7}), image="cd" * 32)))
    (tmp_path / "torn.kpmu").write_bytes(Path(record).read_bytes()[:-9])
    for words, expected in (
        ((empty,), "has no kernel code in these regions and contexts"),
        ((record, "--boot"), "does not have the code that ran outside of the benchmarks' loops"),
        ((record, "--unused"), "record it again: an older plugin wrote it"),
        ((record, "--region", "lat_pipe"), "the record has no region lat_pipe"),
        ((other,), "is not the vmlinux that ran"),
        ((record, "--workload", "lat_pipe"), "--workload cannot be combined with"),
        (("nothing",), "there is nothing called nothing: no file or directory, no image in"),
        ((record, record), "coverage expects one, not 2"),
        (("--diff", record), "coverage expects two, not 1"),
        ((record, "--lcov", str(tmp_path / "no" / "file")), "its directory does not exist"),
    ):
        assert expected in coverage(*words, status=1), words
    assert "cut short" in coverage(str(tmp_path / "torn.kpmu"), status=3)


def test_a_record_of_an_unknown_kernel_needs_its_vmlinux(
    toy: Toy, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = toy.record(tmp_path / "r.kpmu", {"work": 7})
    assert main(["coverage", str(record), "--state", str(tmp_path / "s"), "-q"]) == 1
    assert "name the vmlinux by --vmlinux FILE, and its source by --source DIR" in capsys.readouterr().err
    words = ["--vmlinux", str(toy.vmlinux), "--html", str(tmp_path / "h"), "--state", str(tmp_path / "s"), "-q"]
    assert main(["coverage", str(record), *words]) == 1
    assert "name the source by --source DIR" in capsys.readouterr().err


def test_a_kernel_without_lines_says_how_to_get_them(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    toy = make_toy(tmp_path / "linux")
    coverage = Command(toy, tmp_path, capsys)
    error = coverage(coverage.record("r.kpmu", {"work": 7}), status=1)
    assert "has no line tables" in error and "lines = true in the recipe" in error
