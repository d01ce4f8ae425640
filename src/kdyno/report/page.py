"""The common parts of every page with plots: plotly and the script that calls it, the style, and the policy.

What a reader doesn't see at once is packed, as gzip in base64, and the script unpacks it when it is needed.

Every text from a guest or a file is escaped. If one were not, the page's policy would stop it: a browser runs the two
scripts and uses the style whose hashes the policy names, and nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass
from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kdyno.report import filters
from kdyno.report.figures import style

TEMPLATES = files("kdyno.report") / "templates"
PLOTLY = "plotly-basic.min.js"
"""plotly.js with scatter plots and bars alone (npm: plotly.js-basic-dist-min), a quarter of the whole; as released."""
STYLE_OF_MAPS = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
"""The id of a style element that plotly.js makes if there is none; no plot here is a map."""


class PackedList:
    """Plots of one page, or parts of it, as JSON. They are packed together: apart they would be most of the page."""

    def __init__(self) -> None:
        self._items: list[str] = []

    def add(self, item: str) -> int:
        """Keep a JSON text, and return its number, by which the script finds it."""
        self._items.append(item)
        return len(self._items) - 1

    def add_html(self, part: str) -> int:
        """Keep a part of the page, and return its number."""
        return self.add(json.dumps(str(part)))

    @property
    def packed(self) -> str:
        """A JSON list of all that was kept, packed."""
        return pack(f"[{','.join(self._items)}]")


@dataclass(frozen=True)
class PageParts:
    """The scripts and styles of the page, and the policy that allows them alone."""

    plotly: str
    """Its source; the script makes an element of it when the first plot is drawn."""
    script: Markup
    style: Markup
    style_id: str
    """A style element that keeps plotly from making one that the policy forbids."""
    figures: PackedList
    bodies: PackedList
    """The contents of closed panels."""

    @property
    def packed_plotly(self) -> str:
        return pack(self.plotly)

    @property
    def policy(self) -> Markup:
        scripts = " ".join(map(_hash, (self.plotly, self.script)))
        # plotly makes an empty style element and fills it by code, which needs a hash of nothing; and it writes style
        # attributes, which can't be hashed. They can load nothing: see default-src.
        styles = " ".join(map(_hash, (self.style, "")))
        return Markup(
            f"default-src 'none'; script-src {scripts}; style-src-elem {styles}; style-src-attr 'unsafe-inline'; "
            "img-src data: blob:; base-uri 'none'; form-action 'none'"
        )


def environment() -> Environment:
    """Return the place of the templates, and the way in which they show texts."""
    made = Environment(
        loader=PackageLoader("kdyno.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=filters.cleaned,
    )
    made.filters |= filters.FILTERS
    return made


def parts() -> PageParts:
    """Return the parts of this kdyno."""
    script, css = ((TEMPLATES / name).read_text(encoding="utf-8") for name in ("panels.js", "style.css"))
    plotly = (TEMPLATES / PLOTLY).read_text(encoding="utf-8")
    of_maps = STYLE_OF_MAPS.search(plotly)
    keys = [f".key i.v{place} {{ background: {colour}; }}" for place, colour in enumerate(style.VARIANT_COLOURS)]
    return PageParts(
        plotly=plotly,
        script=Markup(
            f"const CONFIG = {json.dumps(style.CONFIG)};\nconst THEMED = {json.dumps(style.THEMED)};\n{script}"
        ),
        style=Markup("\n".join([css, *keys])),
        style_id=of_maps[1] if of_maps else "style",
        figures=PackedList(),
        bodies=PackedList(),
    )


def pack(text: str) -> str:
    """Return a text as gzip in base64, equal for equal texts."""
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _hash(text: str) -> str:
    """Return the name that a policy gives an element, by its content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
