"""The common parts of every page with plots: plotly and the script that calls it, the style, and the policy.

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


class Figures:
    """The plots of one page. They are packed together: apart they would be half of the page."""

    def __init__(self) -> None:
        self._figures: list[str] = []

    def add(self, figure: str) -> int:
        """Keep the JSON of a plot, and return its number, by which the script finds it."""
        self._figures.append(figure)
        return len(self._figures) - 1

    @property
    def packed(self) -> str:
        """A JSON list of all plots, as gzip in base64."""
        content = f"[{','.join(self._figures)}]".encode()
        return base64.b64encode(gzip.compress(content, mtime=0)).decode()


@dataclass(frozen=True)
class PageParts:
    """The scripts and styles of the page, and the policy that allows them alone."""

    plotly: Markup
    script: Markup
    style: Markup
    style_id: str
    """A style element that keeps plotly from making one that the policy forbids."""
    figures: Figures

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
        plotly=Markup(plotly),
        script=Markup(
            f"const CONFIG = {json.dumps(style.CONFIG)};\nconst THEMED = {json.dumps(style.THEMED)};\n{script}"
        ),
        style=Markup("\n".join([css, *keys])),
        style_id=of_maps[1] if of_maps else "style",
        figures=Figures(),
    )


def _hash(text: str) -> str:
    """Return the name that a policy gives an element, by its content."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
