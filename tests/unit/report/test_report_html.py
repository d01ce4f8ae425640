from __future__ import annotations

import base64
import errno
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from kdyno.base.files import write_whole
from kdyno.judge.verdicts import selftest
from kdyno.judge.verdicts.contamination import Flag
from kdyno.judge.verdicts.model import FileReport, RunReport
from kdyno.judge.verdicts.rows import table_rows
from kdyno.report.figures.style import VARIANT_COLOURS
from kdyno.report.html import render, write_html
from kdyno.report.packing import LETTERS, pack, unpack
from kdyno.report.page import parts, share
from tests.unit import foreign_specimen, specimen

HOSTILE = "<img src=x onerror=alert(1)></script><script>alert(2)</script>{{7*7}}\x1b[2J"


def packed_script(html: str, name: str) -> str:
    """Return the content of the element in which a page holds something packed."""
    [packed] = re.findall(rf'<script type="text/plain" id="{name}">([{re.escape(LETTERS)}]*)</script>', html)
    return str(packed)


def with_bodies(html: str) -> str:
    """Return a page with the contents of its closed panels, which it holds packed."""
    if 'id="bodies"' not in html:
        return html
    bodies: list[str] = json.loads(unpack(packed_script(html, "bodies")))
    places = [f'<div data-body="{number}"></div>' for number in range(len(bodies))]
    assert all(html.count(place) == 1 for place in places)
    filled = re.sub(r'<div data-body="(\d+)"></div>', lambda place: bodies[int(place[1])], html)
    return re.sub(r'<tbody data-columns="(\d+)" data-cells="([^"]*)">', rows_of, filled)


def rows_of(packed: re.Match[str]) -> str:
    """Return the rows of a table that is packed by columns."""
    cells = packed[2].split("\n")
    lines = len(cells) // int(packed[1])
    assert len(cells) == lines * int(packed[1])
    return "<tbody>" + "".join("<tr>" + "".join(f"<td>{cell}" for cell in cells[line::lines]) for line in range(lines))


class Page(HTMLParser):
    """Collects the tags, the text and the scripts of a page whose panels are all open."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.styles: list[str] = []
        self._open = ""
        self.feed(with_bodies(html))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")
        if tag == "style":
            self.styles.append("")

    def handle_endtag(self, tag: str) -> None:  # noqa: ARG002
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open == "script":
            self.scripts[-1] += data
        elif self._open == "style":
            self.styles[-1] += data
        else:
            self.text += data

    @property
    def packed(self) -> dict[str, str]:
        """The packed elements of the page, by their ids."""
        ids = [attributes.get("id") for tag, attributes in self.tags if tag == "script"]
        return {name: script for name, script in zip(ids, self.scripts, strict=True) if name}

    @property
    def body(self) -> str:
        return " ".join(self.text.split())


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return specimen.report(tmp_path_factory.mktemp("report"))


@pytest.fixture(scope="module")
def page(report: RunReport) -> Page:
    return Page(render(report))


def figures_of(page: Page) -> list[dict[str, Any]]:
    """The plots of a page, which it holds packed, in the order of their numbers."""
    packed = json.loads(unpack(page.packed["figures"]))
    figures: list[dict[str, Any]] = [resolve(item, packed["shared"]) for item in packed["items"]]
    return figures


def resolve(part: Any, shared: list[Any]) -> Any:
    """Return a part of a plot without references, as the script of a page reads it."""
    if isinstance(part, dict):
        return (
            resolve(shared[part["$"]], shared) if "$" in part else {key: resolve(v, shared) for key, v in part.items()}
        )
    return [resolve(inner, shared) for inner in part] if isinstance(part, list) else part


def test_the_name_the_lane_and_the_verdicts_come_first_and_then_the_notes(page: Page) -> None:
    start = page.body.removeprefix("quickstart · kdyno").strip()
    assert start.startswith("quickstart run ")
    parts = (
        "lane: model — instructions executed by an emulated CPU (virtual time), not time",
        "Verdicts",
        "How to read this",
        "4 notes",
        "no /dev/kvm here: this run uses TCG, and its clock is virtual",
        "1 of 36 boots failed",
        "no self-test of this host in this lane: ",
        "Every figure of",
    )
    places = [start.index(part) for part in parts]
    assert places == sorted(places)


def test_all_variants_are_side_by_side_in_one_table_on_one_scale(report: RunReport, page: Page) -> None:
    [heading] = [index for index, (_, attributes) in enumerate(page.tags) if attributes.get("id") == "overview"]
    columns = [attributes for tag, attributes in page.tags[heading:] if "data-by" in attributes]
    assert len(columns) == 1 + len(report.variants)
    bars = [tag for tag, attributes in page.tags if tag == "svg" and not attributes]
    spans = [row.span for variant in report.others for row in table_rows(report, variant)]
    assert len(bars) == sum(span is not None for span in spans)
    scales = [attributes["href"] for tag, attributes in page.tags if tag == "use"]
    assert scales == ["#scale"] * len(bars)
    assert sum(tag == "rect" for tag, _ in page.tags) == 1


def test_the_page_loads_nothing(page: Page) -> None:
    assert not [tag for tag, attributes in page.tags if tag == "link" or "src" in attributes]
    assert all((attributes["href"] or "").startswith("#") for _, attributes in page.tags if "href" in attributes)
    policies = [attributes.get("content") or "" for tag, attributes in page.tags if tag == "meta"]
    assert any("default-src 'none'" in policy for policy in policies)


def test_plotly_is_on_the_page_once_and_every_overview_is_there_to_be_drawn(page: Page) -> None:
    assert unpack(page.packed["plotly"]) == parts().plotly
    drawn = [tag for tag, attributes in page.tags if attributes.get("class") == "drawn"]
    assert len(drawn) == 2 + 2 + 1 + 1  # forests, margins, drift, boxes


def hash_of(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def policy_of(page: Page) -> dict[str, list[str]]:
    [policy] = [attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes]
    assert policy is not None
    return {words[0]: words[1:] for words in map(str.split, policy.split(";"))}


def test_the_policy_allows_what_the_page_holds_and_nothing_else(page: Page) -> None:
    policy = policy_of(page)
    [script] = [script for script in page.scripts if script not in page.packed.values()]
    assert policy["script-src"] == [hash_of(unpack(page.packed["plotly"])), hash_of(script)]
    assert policy["style-src-elem"] == [*map(hash_of, page.styles), hash_of("")]
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == ["'none'"]
    assert policy["img-src"] == ["data:", "blob:"]
    assert set(policy) == {
        *("default-src", "script-src", "style-src-elem", "style-src-attr", "img-src", "base-uri", "form-action"),
    }


def test_the_policy_comes_before_all_that_it_rules(page: Page) -> None:
    names = [tag for tag, _ in page.tags]
    at = next(number for number, (_, attributes) in enumerate(page.tags) if "http-equiv" in attributes)
    assert at < min(names.index(tag) for tag in ("script", "style", "body", "title"))


def test_no_element_has_a_style_or_a_handler_of_its_own(page: Page) -> None:
    names = {name for _, attributes in page.tags for name in attributes}
    assert not [name for name in names if name == "style" or name.startswith("on")]


def test_each_variant_has_its_colour_in_the_key(report: RunReport, page: Page) -> None:
    keys = [attributes["class"] for tag, attributes in page.tags if tag == "i" and attributes]
    assert set(keys) == {f"v{place}" for place in range(len(report.variants))}
    assert all(
        f".key i.{key} {{ background: {colour}; }}" in page.styles[0]
        for key, colour in zip(sorted({key for key in keys if key}), VARIANT_COLOURS, strict=False)
    )


def test_each_benchmark_has_a_panel_and_only_the_largest_effect_is_open(report: RunReport, page: Page) -> None:
    panels = [attributes for tag, attributes in page.tags if tag == "details" and attributes.get("class") == "panel"]
    assert [panel["id"] for panel in panels] == [f"benchmark-{number}" for number in range(len(report.benchmarks))]
    assert sum("open" in panel for panel in panels) == 1


def test_every_plot_of_a_panel_is_json_that_plotly_reads(page: Page) -> None:
    plots = figures_of(page)
    assert len(plots) == 6 + 6 * 35
    numbers = [attributes["data-figure"] for _, attributes in page.tags if "data-figure" in attributes]
    assert numbers == [str(number) for number in range(len(plots))]
    assert all(plot["data"] and plot["layout"]["height"] for plot in plots)


def test_what_plots_have_in_common_is_stored_once_and_read_back_whole() -> None:
    long = list(range(30))
    items = [{"x": long, "y": [long, "a text of more than twenty letters"]}, "a text of more than twenty letters", None]
    packed = share(items)
    assert len(packed["shared"]) == 2
    assert json.dumps(packed).count("27, 28, 29") == 1
    assert [resolve(item, packed["shared"]) for item in packed["items"]] == items


@pytest.mark.parametrize("text", ["", "a", "\n\0é", "kernel " * 1000, "".join(map(chr, range(32, 5000)))])
def test_a_packed_text_holds_no_letter_that_means_something_in_html(text: str) -> None:
    assert unpack(pack(text)) == text
    assert not set(pack(text)) & set("<>&\"'/\\ \n")


def test_each_name_in_a_table_leads_to_its_panel(page: Page) -> None:
    ids = {attributes.get("id") for _, attributes in page.tags}
    links = [attributes["data-panel"] for tag, attributes in page.tags if tag == "a"]
    assert len(links) == 35
    assert set(links) <= ids


def test_the_page_of_a_whole_run_stays_small(report: RunReport) -> None:
    assert len(render(report)) < 1_000_000  # plotly is 0.53 MB of it


def test_what_differs_is_said_in_sentences(page: Page) -> None:
    assert re.search(r"file open2close bandwidth \d\.\d % higher, 95 % interval [\d.]+ to [\d.]+: better;", page.body)


def test_the_console_of_a_failed_boot_is_text(page: Page) -> None:
    assert "<script>alert('boo')</script> [bold]not markup[/bold]" in page.body
    assert "{{ 7*7 }}" in page.body


def test_the_page_says_where_everything_came_from(page: Page) -> None:
    for fact in (
        "gcc-12 (Debian 12.2.0-14+deb12u1) 12.2.0",
        "bzImage 5.4 MB",
        "built in 382 s",
        "HZ_100=y",
        "init_on_alloc=0",
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
            return {key: poisoned(part) for key, part in value.items()}
        if isinstance(value, list):
            return [poisoned(part) for part in value]
        return f"{value}{HOSTILE}" if isinstance(value, str) and value in names else value

    names = {benchmark.name for benchmark in report.benchmarks} | {*report.others, "instr", "quickstart"}
    names |= {"6.12.117-kdyno", "no CONFIG_UNIX", "AMD EPYC 7B13", "QEMU was killed"}
    dumped = poisoned(report.model_dump(mode="json"))
    html = render(RunReport.model_validate(dumped))
    hostile_page = Page(html)
    assert [tag for tag, _ in hostile_page.tags] == [tag for tag, _ in page.tags]
    assert [set(attributes) for _, attributes in hostile_page.tags] == [set(attributes) for _, attributes in page.tags]
    assert "\x1b" not in with_bodies(html)
    assert "<img src=x onerror=alert(1)></script><script>alert(2)</script>{{7*7}}" in hostile_page.body
    assert all(figure["data"] for figure in figures_of(hostile_page))
    plots = [script for script in hostile_page.scripts if len(script) < 1_000_000]
    assert not [script for script in plots if re.search("<img|</script", script)]


def test_a_report_is_written_whole_or_not_at_all(
    tmp_path: Path, report: RunReport, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_descriptor: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "report.html"
    write_html(report, path)
    assert path.read_text().endswith("</html>")
    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(OSError, match="Input/output error"):
        write_whole(path, "half")
    assert path.read_text().endswith("</html>")
    assert [path.name for path in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("blocks", [1, 2])
def test_small_runs_have_a_page(tmp_path: Path, blocks: int) -> None:
    run = specimen.run_record(blocks=blocks)
    assert "Provenance" in render(specimen.report(tmp_path, run))


def test_a_run_without_boots_or_with_one_variant_has_a_page(tmp_path: Path) -> None:
    assert "no verdict" in render(specimen.report(tmp_path, boots=[]))
    (tmp_path / "one").mkdir()
    assert "Provenance" in render(specimen.report(tmp_path / "one", specimen.run_record(variants=("gcc-12",))))


def test_the_last_selftest_of_the_host_stands_in_the_report(report: RunReport) -> None:
    rates = {
        name: selftest.Rate(count=2, of=200, rate=0.01, low=0.0012, high=0.036)
        for name in ("false_verdicts", "covered")
    }
    tested = selftest.Tested(
        benchmark="lat_pipe.roundtrip",
        unit="ns",
        false_positives=rates["covered"],
        spread=0.004,
        detectable=0.0036,
        **rates,
    )
    last_selftest = selftest.SelfTest(
        run="ab" * 32,
        created=specimen.NOON,
        host=report.run.host,
        lane="model",
        machine={},
        image=None,
        experiments=200,
        blocks=4,
        planned=12,
        margin=0.01,
        alpha=0.05,
        correction="holm",
        family_wise=rates["covered"],
        benchmarks=(tested,),
    )
    body = Page(render(report.model_copy(update={"selftest": last_selftest}))).body
    assert body.count(last_selftest.sentence) == 2
    assert f"lat_pipe.roundtrip{rates['covered'].text}" in body
    assert "no self-test" not in body


@pytest.fixture(scope="module")
def file_report() -> FileReport:
    return foreign_specimen.summaries()


def test_the_page_of_a_file_says_what_was_read_and_shows_nothing_of_a_run(file_report: FileReport) -> None:
    rendered = Page(render(file_report))
    assert rendered.body.startswith("compiler_patch · kdyno compiler_patch")
    for words in (
        "nothing says how many boots these values come from",
        "read as a summary table",
        "SHA-256 aaaa",
        "All pairs: Tukey HSD",
        "Analysis of variance",
    ):
        assert words in rendered.body
    for words in ("Run it again", "All 36 boots", "Every value", "Drift", "self-test"):
        assert words not in rendered.body


def test_hostile_names_in_a_file_add_no_tag_and_no_script() -> None:
    clean = foreign_specimen.values(layouts=2)
    text = clean.model_dump_json()
    for name in ("pipe", "tuned", "stock", "long-form CSV", "ns", "pipes.csv"):
        text = text.replace(f'"{name}"', json.dumps(name + HOSTILE))
    pages = [Page(render(shown)) for shown in (clean, FileReport.model_validate_json(text))]
    assert [tag for tag, _ in pages[0].tags] == [tag for tag, _ in pages[1].tags]
    assert not [script for script in pages[1].scripts if len(script) < 1_000_000 and re.search("<img|</script", script)]


def test_a_disturbed_boot_is_marked_and_said(tmp_path: Path) -> None:
    report = specimen.report(tmp_path, specimen.run_record(blocks=4))
    flag = Flag(
        variant="gcc-12", block=1, what="steal_percent", value=3.2, limit=1.0, sentence="the hypervisor took 3.2 %"
    )
    rendered = Page(render(report.model_copy(update={"flags": (flag,)})))
    assert rendered.body.count("the hypervisor took 3.2 %") == 1
    marked = [figure for figure in figures_of(rendered) if '"circle-open"' in json.dumps(figure)]
    assert len(marked) == 1 + len(report.benchmarks)


def test_layouts_are_listed_and_have_symbols_of_their_own(tmp_path: Path) -> None:
    run = specimen.run_record(blocks=6)
    several = tuple(
        variant.model_copy(
            update={
                "images": tuple(
                    variant.images[0].model_copy(
                        update={
                            "key": f"{number:064x}",
                            "recipe": variant.recipe.model_copy(update={"layout_seed": 70 + number}),
                        }
                    )
                    for number in range(3)
                )
            }
        )
        for variant in run.variants
    )
    run = run.model_copy(update={"layouts": 3, "variants": several})
    boots = [boot.model_copy(update={"layout_index": boot.block % 3}) for boot in specimen.boot_records(run)]
    html = render(specimen.report(tmp_path, run, boots))
    assert "0: seed 70, key 0000000000000000; 1: seed 71" in Page(html).body
    assert "in 3 layouts" in Page(html).body
    assert '"square", "diamond"' in json.dumps(figures_of(Page(html)))
