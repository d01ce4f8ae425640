"""The verdicts of a run in the formats of other programs."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import pytest
from markdown_it import MarkdownIt

from kdyno.cli.main import parse_words
from kdyno.judge.stats.verdict import WORSE
from kdyno.judge.verdicts.model import RunReport
from kdyno.report.interchange import FORMATS, junit, kcidb, markdown
from tests.unit import specimen

HOSTILE = "a|b`c``<script>x</script>\x1b[31m*&](https://example.invalid)\u202e @all #1\x07\ud800"
GFM = MarkdownIt("commonmark").enable("table")


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    """Two variants: one that is worse in a benchmark, and one boot of which failed with a hostile reason."""
    directory = tmp_path_factory.mktemp("interchange")
    run = specimen.run_record(blocks=6, variants=("gcc-12", "clang-19-thinlto"))
    boots = specimen.boot_records(run, iterations=1, spread=0.001, failed=("clang-19-thinlto", 5))
    slower = "lat_syscall.read"
    changed = [
        boot.model_copy(
            update={
                "samples": tuple(
                    sample.model_copy(update={"elapsed": (sample.elapsed or 0) * 2})
                    if sample.benchmark == slower
                    else sample
                    for sample in boot.samples
                )
            }
        )
        if boot.variant == "clang-19-thinlto"
        else boot
        for boot in boots
    ]
    return specimen.report(directory, run, changed)


@pytest.fixture(scope="module")
def hostile(report: RunReport) -> RunReport:
    """The same with a hostile name wherever there is a name that kdyno didn't choose."""
    name = HOSTILE
    changed = {"benchmark": name, "reason": HOSTILE, "sentence": HOSTILE}
    first, *others = report.comparisons
    described, *benchmarks = report.benchmarks
    return report.model_copy(
        update={
            "title": HOSTILE,
            "notices": (HOSTILE,),
            "comparisons": (first.model_copy(update=changed), *others),
            "benchmarks": (described.model_copy(update={"name": name, "unit": HOSTILE}), *benchmarks),
        }
    )


def steering(text: str) -> set[str]:
    return set(text) & set("\x1b\x07\u202e\x9b\ud800")


# Markdown.


def test_markdown_lists_what_is_worse_first_and_what_is_equivalent_in_one_line(report: RunReport) -> None:
    text = markdown.render(report)
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert rows[0][0] == "| `lat_syscall.read`"
    assert rows[0][-1] == "**more** |"
    equivalent = {row.benchmark for row in report.comparisons if row.verdict == "equivalent"}
    [line] = (line for line in text.splitlines() if line.startswith("Equivalent within 1 %: "))
    assert equivalent
    assert all(name.partition(".")[2] in line for name in equivalent)
    assert not {row[0] for row in rows} & {f"| `{name}`" for name in equivalent}


def test_hostile_texts_are_code_in_markdown_and_nothing_else(hostile: RunReport) -> None:
    text = markdown.render(hostile)
    assert not steering(text)
    page = GFM.render(text)
    assert re.findall(r"<(?!/?(?:h2|h3|p|ul|li|code|strong|table|thead|tbody|tr|th|td)\b)[^>]*>", page) == []
    outside = re.sub(r"<code>.*?</code>", "", page)
    assert "@" not in outside and "#1" not in outside and "example.invalid" not in outside
    assert "script" in page, "it is shown, not dropped"
    cells = {line.count("<td") for line in page.split("<tr>")[2:] if "<td" in line}
    assert cells == {6}


@pytest.mark.parametrize("text", ["a`b", "``", "a|b", "\\", " lead", "<i>", "&amp;", "[x](y)", "plain", "x@y", "1. #"])
def test_code_shows_the_text_itself(text: str) -> None:
    table = GFM.render(f"| {markdown.code(text)} | x |\n| --- | --- |\n")
    [shown] = re.findall(r"<code>(.*?)</code>", table)
    assert ElementTree.fromstring(f"<p>{shown}</p>").text == text.strip()


def test_a_sentence_keeps_plain_words_and_what_kdyno_quotes() -> None:
    assert markdown.sentence("set `layouts = 6` in a_b www.x.y") == "set `layouts = 6` in `a_b` `www.x.y`"


# JUnit XML.


def test_junit_has_a_case_for_each_benchmark_with_the_result_of_its_verdict(report: RunReport) -> None:
    suites = ElementTree.fromstring(junit.render(report))
    [suite] = suites
    cases = {case.get("name"): case for case in suite.iter("testcase")}
    assert cases.keys() == {comparison.benchmark for comparison in report.comparisons}
    for comparison in report.comparisons:
        elements = [element.tag for element in cases[comparison.benchmark]]
        expected = ["failure"] if comparison.verdict in WORSE else []
        expected = ["skipped"] if comparison.verdict in ("undecided", None) else expected
        assert elements == expected, comparison.benchmark
    failure = cases["lat_syscall.read"].find("failure")
    assert failure is not None and failure.get("type") == "more" and "higher" in str(failure.get("message"))
    missing = cases["lat_unix.sock"].find("skipped")
    assert missing is not None and "no CONFIG_UNIX" in str(missing.get("message"))


def test_junit_keeps_the_rules_that_both_schemas_have(hostile: RunReport) -> None:
    """Those of JUnit.xsd (Ant) and junit-10.xsd (Jenkins): order, attributes, and the form of times."""
    text = junit.render(hostile)
    assert not steering(text)
    root = ElementTree.fromstring(text)
    assert (root.tag, root.attrib) == ("testsuites", {})
    needed = {"id", "package", "name", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time"}
    for number, suite in enumerate(root):
        assert suite.attrib.keys() == needed
        assert suite.get("id") == str(number)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", str(suite.get("timestamp")))
        assert re.fullmatch(r"\d+\.\d{3}", str(suite.get("time")))
        cases = suite.findall("testcase")
        assert [part.tag for part in suite] == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(str(suite.get(name))) == len(suite.findall(f"testcase/{tag}"))
        assert int(str(suite.get("tests"))) == len(cases)
        for case in cases:
            assert case.attrib.keys() == {"classname", "name", "time"}
            assert len(case) <= 1
            for element in case:
                assert element.attrib.keys() == ({"message"} if element.tag == "skipped" else {"message", "type"})


def test_a_variant_that_never_boots_is_an_error_in_junit(report: RunReport) -> None:
    boots = tuple(
        boot.model_copy(update={"status": "failed", "reason": "panic"}) if boot.variant != report.baseline else boot
        for boot in report.boots
    )
    comparisons = tuple(one.model_copy(update={"verdict": None, "estimate": None}) for one in report.comparisons)
    dead = report.model_copy(update={"boots": boots, "comparisons": comparisons})
    [suite] = ElementTree.fromstring(junit.render(dead))
    assert suite.get("errors") == suite.get("tests")
    assert {test["status"] for test in json.loads(kcidb.render(dead))["tests"]} == {"MISS"}


# KCIDB.


def kcidb_document(report: RunReport) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(kcidb.render(report))
    return document


def test_kcidb_links_tests_to_builds_and_builds_to_checkouts(report: RunReport) -> None:
    document = kcidb_document(report)
    assert document["version"] == {"major": 5, "minor": 0}
    checkouts, builds, tests = ({one["id"]: one for one in document[kind]} for kind in ("checkouts", "builds", "tests"))
    assert {build["checkout_id"] for build in builds.values()} == checkouts.keys()
    assert {test["build_id"] for test in tests.values()} <= builds.keys()
    assert len(tests) == len(document["tests"]) == len(report.comparisons)
    by_name = {test["misc"]["kdyno"]["benchmark"]: test for test in tests.values()}
    assert by_name["lat_syscall.read"]["status"] == "FAIL"
    assert by_name["lat_unix.sock"]["status"] == "SKIP"
    assert "number" not in by_name["lat_unix.sock"]
    assert by_name["lat_syscall.read"]["number"]["unit"] == "instr"


def test_kcidb_keeps_the_patterns_of_its_schema_with_hostile_names(hostile: RunReport) -> None:
    text = kcidb.render(hostile)
    assert not steering(text)
    document = json.loads(text)
    for kind in ("checkouts", "builds", "tests"):
        for one in document[kind]:
            assert one["origin"] == "kdyno"
            assert re.fullmatch(r"[a-z0-9_]+:[^\0]*", one["id"])
    for test in document["tests"]:
        assert re.fullmatch(r"[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)*", test["path"])
        assert test["status"] in {"FAIL", "ERROR", "MISS", "PASS", "DONE", "SKIP"}
        assert None not in test.values(), "KCIDB has no null but in misc"
    assert "\0" not in text


def test_kcidb_names_the_commit_and_the_patches_of_a_source(report: RunReport) -> None:
    commit, patch = "1" * 40, "2" * 64
    variants = tuple(
        variant.model_copy(
            update={
                "images": tuple(
                    image.model_copy(
                        update={
                            "source": image.source.model_copy(update={"identity": f"git:{commit}"}),
                            "patches": (patch,) if variant.name != report.baseline else (),
                        }
                    )
                    for image in variant.images
                )
            }
        )
        for variant in report.run.variants
    )
    document = kcidb_document(report.model_copy(update={"run": report.run.model_copy(update={"variants": variants})}))
    assert [one["git_commit_hash"] for one in document["checkouts"]] == [commit, commit]
    by_sha256sum = "59ccd69adadc55b8fcd4a47973716980b5615815fc8f971d29e8aa3a41b5d053"  # of the line with the patch's
    assert [one["patchset_hash"] for one in document["checkouts"]] == ["", by_sha256sum]


def test_kcidb_refuses_a_run_without_images(report: RunReport) -> None:
    variants = tuple(variant.model_copy(update={"images": ()}) for variant in report.run.variants)
    bare = report.model_copy(update={"run": report.run.model_copy(update={"variants": variants})})
    with pytest.raises(kcidb.NoBuilds, match="its variant gcc-12 has no image"):
        kcidb.render(bare)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_is_a_value_of_the_option(name: str) -> None:
    assert parse_words(["report", "latest", "--format", name]).format == name
