"""`kdyno scaling`, word for word and as JSON: of files, and of a run."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from kdyno.cli.schemas import schema
from kdyno.judge.curves.names import split_count
from tests.cli.conftest import Lab
from tests.cli.replay import BLOCKS, ran
from tests.cli.test_golden import check
from tests.unit.report.test_report_html import Page, figures_of

SIEVE = Path(__file__).parents[1] / "data" / "scaling" / "sieve.csv"
METRICS = {1: 100.0, 2: 190.0, 4: 340.0}
"""Works per second by number of processes."""
WORKLOAD = '[workload]\ntype = "command"\ncommand = ["sieve"]\n' + "".join(
    f'metrics."sieve.p{n}" = {{ pattern = "p{n}: ([0-9.]+)", unit = "s", direction = "lower" }}\n' for n in METRICS
)


@pytest.fixture
def sieve(lab: Lab) -> Lab:
    """A laboratory with the file sieve.csv in its directory."""
    lab.patch.chdir(lab.directory)
    (lab.directory / "sieve.csv").write_text(SIEVE.read_text())
    return lab


@pytest.fixture
def measured(lab: Lab) -> Lab:
    """A finished run of a command that says times for 1, 2 and 4 processes; one variant is 5 % slower at n = 1."""
    lab.recording.add("slow")
    for variant, slowdown in (("baseline", 1.0), ("slow", 1.05)):
        for block in BLOCKS:
            times = {n: n / rate * (1 + 0.01 * block) * (slowdown if n == 1 else 1) for n, rate in METRICS.items()}
            output = "".join(f"p{n}: {time:.6f}\n" for n, time in times.items())
            lab.recording.change(variant, ran(output), blocks=[block])
    assert lab("run", lab.experiment("slow", more=WORKLOAD), "-q").err == ""
    return lab


def test_a_file_is_fitted_and_what_is_beyond_it_is_marked(sieve: Lab) -> None:
    check("scaling", sieve, sieve("scaling", "sieve.csv", "--to", "32"))


def test_a_run_is_read_by_the_names_of_its_benchmarks(measured: Lab) -> None:
    check("scaling-run", measured, measured("scaling", "latest"))


def test_the_page_of_a_run_has_a_curve_of_each_series_and_what_the_laws_say(measured: Lab) -> None:
    path = measured.directory / "run.html"
    assert measured("report", "latest", "--html", str(path), "-q").status == 0
    page = Page(path.read_text())
    start = page.body.index("Scaling Dots are values")
    section = page.body[start : page.body.index("Drift", start)]
    assert "sieve, baseline n processes, each does the whole work" in section and "sieve, slow" in section
    assert "Amdahl: X1" in section and "USL: X1" in section
    assert "whether USL holds can't be told from 3 different n" in section
    assert "sieve: work per time of a single process under slow against baseline: -4.8 %" in section
    plots = figures_of(page)
    curves = [plot for plot in plots if {"Amdahl", "USL", "means"} <= {trace.get("name") for trace in plot["data"]}]
    assert len(curves) == 2


def test_the_page_of_a_run_without_such_names_has_no_curves(lab: Lab) -> None:
    path = lab.directory / "run.html"
    assert lab("run", lab.experiment(), "-q", "--html", str(path)).status == 0
    assert "Scaling" not in Page(path.read_text()).body


def test_what_is_printed_as_json_obeys_its_schema(sieve: Lab) -> None:
    report = json.loads(sieve("scaling", "sieve.csv", "--json").out)
    Draft202012Validator(schema("scaling")).validate(report)
    [series] = report["series"]
    assert (series["work"], series["unit"], len(series["values"])) == ("copies", "1/s", 40)


def test_a_page_has_a_plot_with_both_laws_and_loads_nothing(sieve: Lab) -> None:
    result = sieve("scaling", "sieve.csv", "--to", "32", "--html", "page.html")
    assert result.err == "report: page.html\n"
    page = Page((sieve.directory / "page.html").read_text())
    assert not [tag for tag, attributes in page.tags if tag == "link" or "src" in attributes]
    [plot] = figures_of(page)
    assert {"Amdahl", "USL", "values", "means"} <= {trace.get("name") for trace in plot["data"]}
    dashed = [trace for trace in plot["data"] if trace.get("line", {}).get("dash") == "dash"]
    assert len(dashed) == 2 and all(min(trace["x"]) == 16 and max(trace["x"]) == 32 for trace in dashed)


def test_the_same_times_are_n_times_the_work_of_copies_and_one_work_of_jobs(sieve: Lab) -> None:
    copies, shared = (
        json.loads(sieve("scaling", "sieve.csv", "--work", work, "--json").out)["series"][0]["scaling"]["points"]
        for work in ("copies", "shared")
    )
    for one, other in zip(copies, shared, strict=True):
        assert one["throughput"] == pytest.approx(one["n"] * other["throughput"])


CURVES = "kernel,test,threads,rep,MB/s\n" + "".join(
    f"{kernel},{test},{n},{rep},{100 * n / (1 + 0.1 * (n - 1)) * speed * (1 + 0.01 * rep):.4f}\n"
    for kernel, speed in (("old", 1.0), ("new", 0.9))
    for test in ("copy", "fill")
    for n in (8, 4, 2, 1)
    for rep in (1, 2)
)


def test_a_file_may_hold_several_workloads_and_variants_in_any_order(sieve: Lab) -> None:
    (sieve.directory / "curves.csv").write_text(CURVES)
    report = json.loads(sieve("scaling", "curves.csv", "--baseline", "old", "--json").out)
    names = [(series["workload"], series["variant"], series["unit"]) for series in report["series"]]
    assert sorted(names) == [(test, kernel, "MB/s") for test in ("copy", "fill") for kernel in ("new", "old")]
    for series in report["series"]:
        assert [point["n"] for point in series["scaling"]["points"]] == [1, 2, 4, 8]
        assert series["scaling"]["amdahl"]["contention"]["value"] == pytest.approx(0.1, abs=1e-4)
    assert [tax["variant"] for tax in report["taxes"]] == ["new", "new"]
    assert all(tax["ratio"] == pytest.approx(0.9, abs=1e-4) for tax in report["taxes"])
    only = json.loads(sieve("scaling", "curves.csv", "--only", "fill", "--json").out)
    assert {series["workload"] for series in only["series"]} == {"fill"}


@pytest.mark.parametrize(
    ("content", "words", "message"),
    [
        ("n,seconds\n1,2\n2,3\n", (), "so the work of n processes must be given"),
        ("n,score\n1,2\n2,3\n", (), "nothing says whether lower or higher is better"),
        ("n,MB/s\n4,2\n4,3\n", (), "no workload measured with several numbers of processes"),
        ("n,MB/s\n1,2\n2.5,3\n", (), "'2.5' is not a number of processes"),
        ("n,MB/s\n1,2\n-2,3\n", (), "'-2' is not a number of processes"),
        ("n,MB/s\n1,2\n2,0\n", (), "line 3, column 'MB/s': '0' is not a positive number"),
        ("n,MB/s\n1,2\n2,-1\n", (), "line 3, column 'MB/s': '-1' is not a positive number"),
        ("a,MB/s\n1,2\n2,3\n", (), "no column looks like the number of processes"),
        ("n,MB/s\n1,2\n2,3\n", ("--only", "sieve"), "no workload is called 'sieve'"),
        ("n,misses\n1,2\n2,3\n", ("--lower",), "is a number of things"),
        ("n,host,MB/s\n1,a,2\n2,a,3\n1,b,5\n2,b,7\n", (), "column 'host' has 2 values"),
    ],
)
def test_a_file_that_makes_no_curve_is_refused_with_the_reason(
    sieve: Lab, content: str, words: tuple[str, ...], message: str
) -> None:
    (sieve.directory / "bad.csv").write_text(content)
    result = sieve("scaling", "bad.csv", *words)
    assert result.status == 1 and message in result.err and "hint: " in result.err, result.err


def test_a_run_without_such_names_is_refused_with_names_that_would_do(lab: Lab) -> None:
    assert lab("run", lab.experiment(), "-q").status == 0
    result = lab("scaling", "latest")
    assert result.status == 1
    assert re.search("run [0-9a-f]{12} has no workload measured with several numbers of processes", result.err)


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("sieve.p1", ("sieve", "copies", 1)),
        ("make.x.j16", ("make.x", "shared", 16)),
        ("sum.t4", ("sum", "shared", 4)),
        *((name, None) for name in ("sieve", "sieve.p", "sieve.p0", "sieve.p04", "sieve.q4", ".p4", "a.p1234567", "")),
    ],
)
def test_a_name_ends_in_a_number_of_processes_or_is_left_alone(name: str, parts: tuple[str, str, int] | None) -> None:
    taken = split_count(name)
    assert (taken and (taken.stem, taken.work, taken.n)) == parts
