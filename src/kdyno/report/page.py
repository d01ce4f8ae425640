"""The common parts of every page with plots: plotly and the script that calls it, the style, and the policy.

What a reader doesn't see at once is packed, as gzip in base 85, and the script unpacks it when it is needed.

Every text from a guest or a file is escaped. If one were not, the page's policy would stop it: a browser runs the two
scripts and uses the style whose hashes the policy names, and nothing else.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from kdyno.report import filters
from kdyno.report.figures import style
from kdyno.report.packing import pack, read_template, source_hash, unpacking_script

PLOTLY = "plotly-basic.min.js"
"""plotly.js with scatter plots and bars alone (npm: plotly.js-basic-dist-min), a quarter of the whole; as released."""
REFERENCE = "$"
"""The key of an object that refers to a common part of plots; plotly has no such key."""
FEWEST_LETTERS = 24
"""The length from which on a common part is stored once, as JSON."""
STYLE_OF_MAPS = re.compile(r'getElementById\("([0-9a-f]{64})"\)')
"""The id of a style element that plotly.js makes if there is none; no plot here is a map."""


class PackedFigures:
    """The plots of one page. They are packed together, and what several have in common is stored once."""

    def __init__(self) -> None:
        self._figures: list[str] = []

    def add(self, figure: str) -> int:
        """Keep a plot as JSON, and return its number, by which the script finds it."""
        self._figures.append(figure)
        return len(self._figures) - 1

    @property
    def packed(self) -> str:
        """The plots and their common parts, packed: see `share`."""
        return pack(json.dumps(share([json.loads(figure) for figure in self._figures]), separators=(",", ":")))


class PackedBodies:
    """The contents of the closed panels of one page, packed together."""

    def __init__(self) -> None:
        self._bodies: list[str] = []

    def add(self, body: str) -> int:
        """Keep a part of the page, and return its number."""
        self._bodies.append(str(body))
        return len(self._bodies) - 1

    @property
    def packed(self) -> str:
        """A JSON list of the parts, packed."""
        return pack(json.dumps(self._bodies))


@dataclass(frozen=True)
class PageParts:
    """The scripts and styles of the page, and the policy that allows them alone."""

    plotly: str
    """Its source; the script makes an element of it when the first plot is drawn."""
    script: Markup
    style: Markup
    style_id: str
    """A style element that keeps plotly from making one that the policy forbids."""
    figures: PackedFigures
    bodies: PackedBodies

    @property
    def packed_plotly(self) -> str:
        return pack(self.plotly)

    @property
    def policy(self) -> Markup:
        scripts = " ".join(map(source_hash, (self.plotly, self.script)))
        # plotly makes an empty style element and fills it by code, which needs a hash of nothing; and it writes style
        # attributes, which can't be hashed. They can load nothing: see default-src.
        styles = " ".join(map(source_hash, (self.style, "")))
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
    plotly = read_template(PLOTLY)
    of_maps = STYLE_OF_MAPS.search(plotly)
    keys = [f".key i.v{place} {{ background: {colour}; }}" for place, colour in enumerate(style.VARIANT_COLOURS)]
    return PageParts(
        plotly=plotly,
        script=Markup(
            f"const CONFIG = {json.dumps(style.CONFIG)};\nconst THEMED = {json.dumps(style.THEMED)};\n"
            f"{unpacking_script()}{read_template('panels.js')}"
        ),
        style=Markup("\n".join([read_template("style.css"), *keys])),
        style_id=of_maps[1] if of_maps else "style",
        figures=PackedFigures(),
        bodies=PackedBodies(),
    )


def share(items: Sequence[Any]) -> dict[str, Any]:
    """Return JSON values and what they have in common: `{"shared": [...], "items": [...]}`.

    A list, a text or an object that occurs more than once is one entry of `shared`, and `{"$": n}` is in its places.
    gzip sees repetitions within 32 kB alone, and the plots of a page are megabytes apart.
    """
    count_by_text: Counter[str] = Counter()

    def count(part: Any) -> None:
        key = _key_of(part)
        if key is not None:
            count_by_text[key] += 1
        if key is None or count_by_text[key] == 1:
            for inner in _inner_parts(part):
                count(inner)

    shared: list[Any] = []
    place_by_text: dict[str, int] = {}

    def refer(part: Any) -> Any:
        key = _key_of(part)
        if key is None or count_by_text[key] == 1:
            return copy(part)
        if key not in place_by_text:
            shared.append(copy(part))
            place_by_text[key] = len(shared) - 1
        return {REFERENCE: place_by_text[key]}

    def copy(part: Any) -> Any:
        if isinstance(part, dict):
            return {name: refer(inner) for name, inner in part.items()}
        return [refer(inner) for inner in part] if isinstance(part, list) else part

    for item in items:
        count(item)
    return {"items": [refer(item) for item in items], "shared": shared}


def _key_of(part: Any) -> str | None:
    """Return a part as text if it is long enough to be shared, else None."""
    if not isinstance(part, dict | list | str):
        return None
    key = json.dumps(part, separators=(",", ":"))
    return key if len(key) >= FEWEST_LETTERS else None


def _inner_parts(part: Any) -> Iterable[Any]:
    if isinstance(part, dict):
        return part.values()
    return part if isinstance(part, list) else ()
