"""What mkdocs calls while it makes the site (mkdocs.yml): the groups of docs/README.md become the navigation, and links
to files of the repository outside of docs/ become plain text, because the site holds only its pages.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parent.parent / "docs"
GROUP = re.compile(
    r"^## (?P<group>.+)$|^\*\*(?P<part>.+)\*\*$|^- \[(?P<title>[^\]]+)\]\((?P<page>[^)]+)\)", re.MULTILINE
)
LINK = re.compile(r"\[(?P<text>[^\]]*)\]\((?P<target>(?!https?:|#)[^)#\s]+)(?P<anchor>#[^)]*)?\)")
FENCE = re.compile(r"(^```.*?^```)", re.MULTILINE | re.DOTALL)


def groups() -> list[dict[str, Any]]:
    """Return the navigation: for each heading of the table of contents the parts below it, and their pages."""
    navigation: list[dict[str, Any]] = [{"Contents": "README.md"}]
    pages: list[dict[str, str]] = []
    for match in GROUP.finditer((DOCS / "README.md").read_text(encoding="utf-8")):
        if match["group"]:
            # A part of the navigation has no explanation: "Guides: what do I type" is "Guides".
            navigation.append({match["group"].partition(":")[0]: []})
        elif match["part"]:
            pages = []
            [(_, parts)] = navigation[-1].items()
            parts.append({match["part"]: pages})
        elif (DOCS / match["page"]).is_file():
            pages.append({match["title"]: match["page"]})
    return navigation


def on_config(config: Any) -> Any:
    config.nav = groups()
    return config


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Return the text of a page with the links that the site can follow."""
    directory = posixpath.dirname(page.file.src_uri)

    def follow(match: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(directory, match["target"]))
        if not target.startswith("../") and (DOCS / target).is_file():
            return match[0]
        return f"{match['text']} (`{target.removeprefix('../')}`)"

    parts = FENCE.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(follow, part) for part in parts)


def on_post_page(output: str, **_: Any) -> str:
    """Return a page of the site whose search, a dialog, has a name: the theme gives it none."""
    dialog = 'data-md-component="search" role="dialog"'
    return output.replace(dialog, f'{dialog} aria-label="Search"')
