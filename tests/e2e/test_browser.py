"""The HTML report in a browser: its plots draw, its policy forbids nothing of it, and all that is smuggled in."""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from kdyno.report.html import render
from tests.unit import specimen

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


@dataclass(frozen=True)
class Opened:
    """What became of a page."""

    dom: str
    console: list[str]


def opened(html: str, directory: Path) -> Opened:
    if shutil.which("chromium") is None:
        pytest.skip("chromium is not installed")
    page = directory / "page.html"
    page.write_text(html, encoding="utf-8")
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=20000", "--enable-logging=stderr"]
    done = subprocess.run(
        ["chromium", *options, f"--user-data-dir={directory / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    dom = re.sub(r"<script.*?</script>", "", done.stdout, flags=re.DOTALL)
    return Opened(dom, re.findall(r'CONSOLE:\d+\S* "(.*)', done.stderr))


@pytest.fixture(scope="module")
def html(tmp_path_factory: pytest.TempPathFactory) -> str:
    return render(specimen.report(tmp_path_factory.mktemp("report"), specimen.run_record(blocks=4)))


def test_plots_draw_and_the_console_stays_empty(tmp_path: Path, html: str) -> None:
    page = opened(html, tmp_path)
    assert page.console == []
    drawn = re.findall(r'<div class="(?:drawn|lazy)[^"]*js-plotly-plot', page.dom)
    assert len(drawn) == html.count('class="drawn"') + 6  # one panel is open
    assert page.dom.count('class="trace') > 100


def test_what_is_smuggled_in_is_refused(tmp_path: Path, html: str) -> None:
    page = opened(html.replace("<h1>", f"{SMUGGLED}<h1>"), tmp_path)
    assert "<title>quickstart · kdyno</title>" in page.dom
    for words in BLOCKED:
        assert any(text.startswith(words) for text in page.console), words
    assert "js-plotly-plot" in page.dom
