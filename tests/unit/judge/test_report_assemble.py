"""The assembled report, and its JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import jsonschema
import pytest

from kdyno.cli.schemas import schema
from kdyno.judge.verdicts.assemble import CONSOLE_BYTES, assemble
from kdyno.judge.verdicts.model import RunReport, to_json
from kdyno.report.data import COLUMNS, write_csv
from kdyno.store.artefacts import Artefacts
from kdyno.store.records import RunRecord
from kdyno.store.store import Store
from tests.unit import specimen


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return specimen.report(tmp_path_factory.mktemp("report"))


def test_the_report_has_every_comparison_and_says_what_went_wrong(report: RunReport) -> None:
    assert len(report.comparisons) == 2 * 35
    assert report.others == ("gcc-12-O3", "clang-19-thinlto")
    *first, layout = report.notices
    assert first == [
        "no /dev/kvm here: this run uses TCG, and its clock is virtual",
        "1 of 36 boots failed: verdicts are about the boots that survived",
    ]
    assert layout.startswith("layout wasn't sampled: ")
    [console] = report.consoles
    assert (console.variant, console.block) == ("gcc-12-O3", 5)
    assert "Kernel panic" in console.text
    assert "\x1b" not in console.text


def sharing(*names: str) -> RunRecord:
    """A run in which these variants boot the baseline's image, with a command line of their own."""
    run = specimen.run_record()
    variants = [
        variant.model_copy(update={"images": run.variants[0].images}) if variant.name in names else variant
        for variant in run.variants
    ]
    return run.model_copy(update={"variants": tuple(variants)})


def test_where_both_sides_are_one_image_nothing_is_said_of_link_order(tmp_path: Path) -> None:
    run = sharing("gcc-12-O3", "clang-19-thinlto")
    assert run.relinked == ()
    assert not any("layout" in notice for notice in specimen.report(tmp_path, run).notices)


def test_where_some_variants_are_the_baselines_image_the_others_are_named(tmp_path: Path) -> None:
    report = specimen.report(tmp_path, sharing("gcc-12-O3"))
    assert report.notices[-1] == (
        "layout wasn't sampled: clang-19-thinlto is one link order, whose own effect is part of the difference; "
        "`layouts = 6` in the experiment separates the two"
    )


def test_a_variant_that_is_the_baseline_under_another_name_is_called_that(tmp_path: Path) -> None:
    run = sharing("gcc-12-O3")
    recipe = run.variants[0].recipe
    same = [
        variant.model_copy(update={"recipe": recipe}) if variant.name == "gcc-12-O3" else variant
        for variant in run.variants
    ]
    notices = specimen.report(tmp_path, run.model_copy(update={"variants": tuple(same)})).notices
    expected = f"gcc-12-O3 is the same kernel as {run.baseline}, and has the same settings: there is nothing that "
    assert [notice for notice in notices if "the same kernel" in notice] == [f"{expected}could differ"]
    words = recipe.model_copy(update={"cmdline": ("quiet",)})
    same[1] = same[1].model_copy(update={"recipe": words})
    assert run.model_copy(update={"variants": tuple(same)}).same_as_baseline == ()


def only_the_failed_boot(directory: Path) -> RunReport:
    run = specimen.run_record()
    return specimen.report(directory, run, [boot for boot in specimen.boot_records(run) if boot.status == "failed"])


def test_a_run_under_way_says_that_it_is_unfinished(tmp_path: Path) -> None:
    run = specimen.run_record()
    boots = [boot.model_copy(update={"samples": ()}) for boot in specimen.boot_records(run, failed=None)[:20]]
    report = specimen.report(tmp_path, run, boots)
    assert "unfinished: 19 of 36 boots done; verdicts may still change" in report.notices


def test_a_run_without_boots_has_a_report(tmp_path: Path) -> None:
    report = specimen.report(tmp_path, boots=[])
    assert report.benchmarks == ()
    assert [mean.verdict for mean in report.geometric_means] == [None, None]


def test_a_benchmark_that_no_boot_could_run_is_shown_with_the_reason(tmp_path: Path) -> None:
    run = specimen.run_record(blocks=2)
    boots = [
        boot.model_copy(update={"broken": {"lat_new.thing": "exit status 1"}})
        for boot in specimen.boot_records(run, failed=None)
        if boot.status == "ok"
    ]
    report = specimen.report(tmp_path, run, boots)
    reasons = {comparison.reason for comparison in report.comparisons if comparison.benchmark == "lat_new.thing"}
    assert reasons == {"broken in gcc-12: exit status 1"}


def test_a_console_that_is_gone_or_damaged_is_said_in_its_place(tmp_path: Path) -> None:
    report = only_the_failed_boot(tmp_path)
    with Store(f"sqlite:///{tmp_path / 'store.sqlite'}") as store:
        gone = assemble(store, report.run.id, Artefacts(tmp_path / "elsewhere"))
    assert gone.consoles[0].text.startswith("[not available: artefact ")


def test_only_the_end_of_a_long_console_is_in_the_report(tmp_path: Path) -> None:
    report = only_the_failed_boot(tmp_path)
    [failed] = [boot for boot in report.boots if boot.status == "failed"]
    assert failed.console
    artefacts = Artefacts(tmp_path / "more")
    (tmp_path / "long").write_bytes(b"x" * CONSOLE_BYTES + b"\nthe end")
    sha256 = artefacts.put(tmp_path / "long")
    with Store(f"sqlite:///{tmp_path / 'long.sqlite'}") as store:
        store.begin(report.run, specimen.cells(report.run, [failed]))
        store.add_boot(failed.model_copy(update={"console": sha256}), [])
        [console] = assemble(store, report.run.id, artefacts).consoles
    assert console.text.startswith("[8 bytes left out]\nxxx")
    assert console.text.endswith("\nthe end")


def test_the_json_obeys_its_schema_and_comes_back_as_the_same_report(report: RunReport) -> None:
    text = to_json(report)
    jsonschema.validate(json.loads(text), schema("report"))
    assert RunReport.model_validate_json(text) == report


def test_the_json_is_plain_ascii_whatever_a_guest_said(report: RunReport) -> None:
    text = to_json(report)
    assert text.isascii()
    assert not set(text) & {chr(code) for code in range(32) if chr(code) != "\n"}


def test_the_reproduce_line_hands_the_experiment_to_kdyno_unchanged(report: RunReport) -> None:
    import subprocess

    before_the_pipe = report.reproduce.removesuffix(" | kdyno run --again -")
    output = subprocess.run(["sh", "-c", before_the_pipe], check=True, capture_output=True, text=True).stdout
    assert output == report.run.experiment


def test_the_csv_has_one_line_for_each_sample(report: RunReport) -> None:
    out = io.StringIO()
    write_csv(report, out)
    lines = list(csv.DictReader(io.StringIO(out.getvalue())))
    assert tuple(lines[0]) == COLUMNS
    assert len(lines) == sum(len(boot.samples) for boot in report.boots)
    for line in lines[:50]:
        assert float(line["value"]) == int(line["elapsed"]) / int(line["work"])
    assert {line["lane"] for line in lines} == {"model"}


def test_names_from_a_guest_do_not_break_the_csv(report: RunReport) -> None:
    renamed = [benchmark.model_copy(update={"unit": 'a,"b"\n\x1b[2J'}) for benchmark in report.benchmarks]
    out = io.StringIO()
    write_csv(report.model_copy(update={"benchmarks": tuple(renamed)}), out)
    assert {line["unit"] for line in csv.DictReader(io.StringIO(out.getvalue()))} == {'a,"b"'}
