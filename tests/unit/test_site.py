"""What the site of the documents makes of docs/ (tools/site_pages.py)."""

from __future__ import annotations

import hashlib
import tomllib
from pathlib import Path
from types import SimpleNamespace

import site_pages


def test_the_navigation_has_three_groups_with_every_page_of_docs() -> None:
    contents, *groups = site_pages.groups()
    assert contents == {"Contents": "README.md"}
    assert [name for group in groups for name in group] == ["Guides", "Concepts", "Reference"]
    parts = [part for group in groups for parts in group.values() for part in parts]
    assert all(pages for part in parts for pages in part.values())
    pages = [page for part in parts for pages in part.values() for entry in pages for page in entry.values()]
    own = {path.name for path in site_pages.DOCS.glob("*.md")} - {"README.md"}
    assert {page for page in pages if "/" not in page} == own
    assert len(pages) == len({*pages})


def test_the_script_that_search_needs_is_of_the_site_and_the_one_whose_origin_is_on_record() -> None:
    settings = (site_pages.DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")
    assert "polyfills: [iframe-worker.js]" in settings
    origin = tomllib.loads((site_pages.DOCS / "iframe-worker.toml").read_text(encoding="utf-8"))
    digest = hashlib.sha256((site_pages.DOCS / "iframe-worker.js").read_bytes()).hexdigest()
    assert digest == origin["sha256"], "tools/update-scripts"


def test_a_link_that_leaves_docs_becomes_text_and_others_stay() -> None:
    page = SimpleNamespace(file=SimpleNamespace(src_uri="decisions/README.md"))
    text = "[set-up](../setup.md#kvm), [style](../../STYLE.md), [web](https://example.org)\n```\n[a](b)\n```\n"
    assert site_pages.on_page_markdown(text, page) == (
        "[set-up](../setup.md#kvm), style (`STYLE.md`), [web](https://example.org)\n```\n[a](b)\n```\n"
    )


def test_every_page_opens_with_a_command_or_says_that_it_has_none() -> None:
    assert [page.name for page in site_pages.DOCS.glob("*.md") if not has_a_beginning(page)] == []


def has_a_beginning(page: Path) -> bool:
    """Return whether the first paragraph below the title is code, or begins by saying that the page has no command."""
    lines = page.read_text(encoding="utf-8").split("\n")
    return lines[2].startswith(("    ", "This page has no command."))
