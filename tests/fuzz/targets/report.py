"""Readers of foreign bytes: names in the page of a report."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kdyno.judge.verdicts.model import FileReport
from kdyno.report.html import render as render_page
from kdyno.report.page import parts
from tests.fuzz.check import Target
from tests.unit import foreign_specimen
from tests.unit.report.test_report_html import HOSTILE, Page


def page(path: Path) -> None:
    """Names of a report: whatever they are, its page has the same elements, and no script of theirs."""
    names = path.read_bytes().decode(errors="replace").split("\n")
    text = foreign_specimen.values(layouts=2).model_dump_json()
    for number, name in enumerate(NAMED):
        text = text.replace(f'"{name}"', json.dumps(name + names[number % len(names)]))
    shown = page_of(FileReport.model_validate_json(text))
    assert shown.tags == page_as_it_is().tags
    for ours, theirs in zip(page_as_it_is().scripts, shown.scripts, strict=True):
        assert "<" not in theirs or ours == theirs


@cache
def page_as_it_is() -> Shape:
    return page_of(foreign_specimen.values(layouts=2))


def page_of(report: FileReport) -> Shape:
    """The elements and scripts of a report's page, without plotly, which takes a second to look through."""
    whole = Page(render_page(report).replace(parts().packed_plotly, ""))
    return Shape([(tag, frozenset(attributes)) for tag, attributes in whole.tags], whole.scripts)


@dataclass(frozen=True)
class Shape:
    """What of a page a browser acts on."""

    tags: list[tuple[str, frozenset[str]]]
    """Elements, with the names of their attributes."""
    scripts: list[str]


NAMED = ("pipe", "tuned", "stock", "long-form CSV", "ns", "pipes.csv")
"""Names in the report whose page is looked at."""
TARGETS = (
    Target("page", page, lambda: [HOSTILE.encode()], (b"</script>", b"<!--", b"<img src="), examples=50),
)  # fmt: skip
