"""The README's table of findings, made of the pages that it links to (tools/findings.py)."""

from __future__ import annotations

from pathlib import Path

import findings
import pytest

PAGE = """\
| kernel | speed | worst |
| --- | ---: | --- |
| **tuned** (all three) | **+29.1 %** | none |
| tuned-more | +36.1 % (+35 % to +37 %) | one |

| kernel | size |
| --- | --- |
| tuned | 5,600 B (37 % less) |

The geometric mean of 33 benchmarks
is -0.13 %, equivalent within a margin.
"""


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.md"
    path.write_text(PAGE)
    return path


def test_a_cell_is_found_by_how_its_row_begins_and_by_its_column(page: Path) -> None:
    assert findings.cell(page, "tuned", "speed") == "+29.1 %"
    assert findings.cell(page, "tuned", "size") == "5,600 B (37 % less)"


def test_percentages_span_from_the_least_to_the_largest(page: Path) -> None:
    assert findings.span(findings.percents(page, ["tuned", "tuned-more"], ["speed"])) == "29 to 36 %"


def test_a_sentence_is_found_over_the_ends_of_lines(page: Path) -> None:
    assert findings.words(page, findings.MEAN) == "-0.13 %, equivalent"


@pytest.mark.parametrize(("row", "column"), [("tuned", "weight"), ("untuned", "speed"), ("tune", "speed")])
def test_a_cell_that_is_no_longer_there_is_said(page: Path, row: str, column: str) -> None:
    with pytest.raises(findings.NotThere, match=f"has no row {row} with a column {column}"):
        findings.cell(page, row, column)


def test_a_figure_of_the_readme_that_the_page_does_not_have_is_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    readme = tmp_path / "README.md"
    readme.write_text(findings.README.read_text().replace("20 to 36 %", "20 to 63 %"))
    monkeypatch.setattr(findings, "README", readme)
    assert len(findings.stale(write=False)) == 1
    assert findings.stale(write=True) == findings.stale(write=False) == []
    assert "20 to 36 %" in readme.read_text()
