"""Pages in a browser. The HTML report draws, sorts, filters and is accessible; its policy refuses what is smuggled in.
The site of the documents is accessible.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect, sync_playwright

from kdyno.report.html import render
from tests.unit import foreign_specimen, specimen

SMUGGLED = """
<script>document.title = "run"</script>
<img src="x" onerror="document.title = 'run'">
<svg onload="document.title = 'run'"></svg>
<a id="trap" href="javascript:document.title = 'run'">trap</a>
<style>h1 { display: none }</style>
<base href="https://example.invalid/">
<iframe src="https://example.invalid/"></iframe>
<link rel="stylesheet" href="https://example.invalid/style.css">
"""
BLOCKED = (
    "Executing inline script violates",
    "Executing inline event handler violates",
    "Applying inline style violates",
    "Setting the document's base URI",
    "Framing 'https://example.invalid/' violates",
    "Loading the stylesheet 'https://example.invalid/style.css' violates",
)
RULES = {"runOnly": ["wcag2a", "wcag2aa", "best-practice"]}
"""What axe checks: WCAG 2, levels A and AA, and what its authors recommend."""
BUTTONS_OF_CODE = ".md-code__nav"
"""The theme's script makes a landmark without a name for the buttons of each code block."""
A4_UPRIGHT, A4_ACROSS = 718, 1046
"""The widths of printed pages in pixels, within margins of 10 mm."""
ROOT = Path(__file__).parents[2]


@dataclass
class Opened:
    """A page in the browser."""

    page: Any
    console: list[str] = field(default_factory=list)

    def names(self) -> list[str]:
        """Return the benchmarks of the table of verdicts that are visible, in their order."""
        names: list[str] = self.page.locator("#overview tbody tr:visible a").all_inner_texts()
        return names


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"], timeout=120_000)
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return render(specimen.report(tmp_path_factory.mktemp("report"), specimen.run_record(blocks=4)))


def natural(name: str) -> list[int | str]:
    """Return a key that sorts numbers in names by their values."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", name)]


def open_page(browser: Any, html: str, directory: Path, width: int = 1280, **settings: Any) -> Opened:
    path = directory / "page.html"
    path.write_text(html, encoding="utf-8")
    page = browser.new_context(viewport={"width": width, "height": 900}, **settings).new_page()
    page.set_default_timeout(120_000)
    opened = Opened(page)
    page.on("console", lambda message: opened.console.append(message.text))
    page.on("pageerror", lambda error: opened.console.append(str(error)))
    page.goto(path.as_uri())
    expect_count(page, ".drawn:not(.js-plotly-plot)", 0)
    return opened


def expect_count(page: Any, selector: str, count: int) -> None:
    """Wait until a page has so many elements. Its policy forbids what waits for a function: that is a text to run."""
    expect(page.locator(selector)).to_have_count(count, timeout=120_000)


def violations(page: Any, *but: str) -> list[tuple[str, str]]:
    """Return the rules of axe that a page breaks, each with its first element, outside the elements `but`."""
    context = {"include": [["html"]], "exclude": [[selector] for selector in but]}
    result = Axe().run(page, context=context, options=RULES).response
    assert len(result["passes"]) > 15
    return [(rule["id"], rule["nodes"][0]["html"]) for rule in result["violations"]]


def test_plots_draw_and_the_table_sorts_and_filters(browser: Any, tmp_path: Path, html: str) -> None:
    alike = '<tr class="alike" data-name="lat_syscall.null">'
    opened = open_page(browser, html.replace('<tr data-name="lat_syscall.null">', alike), tmp_path)
    page = opened.page
    expect_count(page, ".lazy.js-plotly-plot", 6)  # one panel is open
    assert page.locator(".trace").count() > 100

    panel = page.locator(f"#{page.locator('.panel:not([open])').first.get_attribute('id')}")
    table = panel.locator("table", has_text="mean, ")
    panel.locator("summary").first.click()
    expect(table.locator("tbody tr")).to_have_count(3)
    expect(table.locator("tbody td")).to_have_count(3 * table.locator("thead th").count())
    assert [row.split("\t")[:2] for row in table.locator("tbody tr").all_inner_texts()] == [
        [variant, "4"] for variant in ("gcc-12", "gcc-12-O3", "clang-19-thinlto")
    ]
    panel.locator("summary").first.click()

    first = opened.names()
    sort = page.locator("#overview thead button").first
    sort.focus()
    page.keyboard.press("Enter")
    assert opened.names() == sorted(first, key=natural)
    page.keyboard.press("Enter")
    assert opened.names() == sorted(first, key=natural, reverse=True)
    assert page.locator("#overview th[aria-sort]").get_attribute("aria-sort") == "descending"

    page.locator("#filter").fill("syscall")
    assert opened.names() == [name for name in sorted(first, key=natural, reverse=True) if "syscall" in name]
    page.locator("#filter").fill("")
    page.locator("#hide").check()
    assert {*first} - {*opened.names()} == {"lat_syscall.null"}
    effect = page.locator("#overview [data-factor]").first
    page.locator("#factors").check()
    assert effect.inner_text().endswith("×")
    page.locator("#factors").uncheck()
    assert effect.inner_text().endswith("%")
    assert opened.console == []


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_the_page_is_accessible_and_fits_its_window(
    browser: Any, tmp_path: Path, html: str, width: int, scheme: str
) -> None:
    page = open_page(browser, html, tmp_path, width, color_scheme=scheme, bypass_csp=True).page
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("variants", [3, 12])
def test_the_table_of_verdicts_fits_the_paper(browser: Any, tmp_path: Path, variants: int) -> None:
    width = A4_ACROSS if variants > 4 else A4_UPRIGHT
    page = open_page(browser, render(foreign_specimen.several(variants)), tmp_path, width).page
    page.emulate_media(media="print")
    boxes = [cell.bounding_box() for cell in page.locator("#overview :is(td, th)").all()]
    assert len(boxes) == 5 * (variants + 1)
    assert max(box["x"] + box["width"] for box in boxes) <= width + 1


def test_more_variants_than_the_paper_is_wide_are_printed_one_after_the_other(browser: Any, tmp_path: Path) -> None:
    page = open_page(browser, render(foreign_specimen.several(20)), tmp_path, A4_ACROSS).page
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("#overview")).to_be_hidden()
    expect(page.locator(".verdicts:visible")).to_have_count(19)
    assert page.evaluate("document.documentElement.scrollWidth") == A4_ACROSS


def test_what_is_smuggled_in_is_refused(browser: Any, tmp_path: Path, html: str) -> None:
    opened = open_page(browser, html.replace("<h1>", f"{SMUGGLED}<h1>"), tmp_path)
    assert opened.page.title() == "quickstart · kdyno"
    for words in BLOCKED:
        assert any(text.startswith(words) for text in opened.console), words


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(directory)]
    subprocess.run(command, cwd=ROOT, check=True)
    return directory


@pytest.mark.parametrize(
    ("name", "width", "scheme"),
    [("index", 1280, "light"), ("ab", 1280, "dark"), ("formats", 390, "dark"), ("glossary", 390, "light")],
)
def test_the_site_of_the_documents_is_accessible_and_fits_its_window(
    browser: Any, site: Path, name: str, width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 900}
    page = browser.new_context(viewport=viewport, color_scheme=scheme, bypass_csp=True).new_page()
    page.set_default_timeout(120_000)
    page.goto((site / f"{name}.html").as_uri())
    page.wait_for_selector("html.js")
    assert violations(page, BUTTONS_OF_CODE) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width
