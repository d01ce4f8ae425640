from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from kdyno.report.files import NotWritable, write_atomically
from kdyno.report.html import render, write_html
from kdyno.report.model import RunReport
from tests.unit import specimen

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>{{7*7}}\x1b[2J"


class Page(HTMLParser):
    """Collects the tags, the text and the scripts of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self._open = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open != "style":
            self.text += data

    @property
    def body(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return specimen.report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(report: RunReport) -> Page:
    return Page(render(report))


def test_notices_and_lane_are_the_first_words_of_the_page(page: Page) -> None:
    start = page.body.removeprefix("quickstart · kdyno").strip()
    assert start.startswith("no /dev/kvm here: this run uses TCG, and its clock is virtual 1 of 36 boots failed")
    assert "lane: model — instructions executed by an emulated CPU (virtual time), not time quickstart run" in start


def test_the_page_loads_nothing(page: Page) -> None:
    assert not [tag for tag, attributes in page.tags if tag == "link" or {"src", "href"} & attributes.keys()]
    policies = [attributes.get("content") or "" for tag, attributes in page.tags if tag == "meta"]
    assert any("default-src 'none'" in policy for policy in policies)


def test_plotly_is_on_the_page_once_and_every_plot_is_drawn(page: Page) -> None:
    assert sum(len(script) > 1_000_000 for script in page.scripts) == 1
    drawn = [script for script in page.scripts if "Plotly.newPlot(" in script and len(script) < 1_000_000]
    assert len(drawn) == 3


def test_the_console_of_a_failed_boot_is_text(page: Page) -> None:
    assert "<script>alert('boo')</script> [bold]not markup[/bold]" in page.body
    assert "{{ 7*7 }}" in page.body


def test_the_page_says_where_everything_came_from(page: Page) -> None:
    for fact in (
        "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0",
        "bzImage 5.4 MB",
        "built in 382 s",
        "HZ_100=y",
        "mitigations=off",
        "qemu-system-x86_64 -machine microvm",
        "20250301",
        "AMD EPYC 7B13",
        "| kdyno run -",
        "unsupported in clang-19-thinlto: no CONFIG_UNIX",
    ):
        assert fact in page.body


def test_hostile_names_everywhere_add_no_tag_and_no_script(report: RunReport, page: Page) -> None:
    def poisoned(value: object) -> object:
        if isinstance(value, dict):
            return {key: poisoned(each) for key, each in value.items()}
        if isinstance(value, list):
            return [poisoned(each) for each in value]
        return f"{value}{HOSTILE}" if isinstance(value, str) and value in names else value

    names = {benchmark.name for benchmark in report.benchmarks} | {*report.others, "instr", "quickstart"}
    names |= {"6.12.117-kdyno", "no CONFIG_UNIX", "AMD EPYC 7B13", "QEMU was killed"}
    dumped = poisoned(report.model_dump(mode="json"))
    html = render(RunReport.model_validate(dumped))
    found = Page(html)
    assert [tag for tag, _ in found.tags] == [tag for tag, _ in page.tags]
    assert [set(attributes) for _, attributes in found.tags] == [set(attributes) for _, attributes in page.tags]
    assert "\x1b" not in html
    assert "<img src=x onerror=alert(1)></script><script>alert(2)</script>{{7*7}}" in found.body
    plots = [script for script in found.scripts if len(script) < 1_000_000]
    assert not [script for script in plots if re.search("<img|</script", script)]


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, report: RunReport) -> None:
    path = tmp_path / "report.html"
    write_html(report, path)
    assert path.read_text().endswith("</html>")
    with pytest.raises(UnicodeEncodeError):
        write_atomically(path, "half \udc80")
    assert path.read_text().endswith("</html>")
    assert [each.name for each in tmp_path.iterdir()] == ["report.html"]


def test_a_directory_that_is_not_there_is_a_user_error(tmp_path: Path) -> None:
    with pytest.raises(NotWritable, match="No such file or directory"):
        write_atomically(tmp_path / "no" / "report.html", "")
    (tmp_path / "taken").mkdir()
    with pytest.raises(NotWritable):
        write_atomically(tmp_path / "taken", "")


@pytest.mark.parametrize("blocks", [1, 2])
def test_small_runs_have_a_page(tmp_path: Path, blocks: int) -> None:
    run = specimen.run_record(blocks=blocks)
    assert "Provenance" in render(specimen.report(tmp_path, run))


def test_a_run_without_boots_or_with_one_variant_has_a_page(tmp_path: Path) -> None:
    assert "no verdict" in render(specimen.report(tmp_path, boots=[]))
    (tmp_path / "one").mkdir()
    assert "Provenance" in render(specimen.report(tmp_path / "one", specimen.run_record(variants=("gcc-12",))))
