"""Template filters of the HTML report, which show facts as text."""

from __future__ import annotations

import html
import re
import shlex
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

from kdyno.base.text import clean, clean_lines, confidence, limit, percent
from kdyno.store.records import VariantRecord


def cleaned(value: Any) -> Any:
    """Clean every text on its way into the page; HTML markup and numbers are unchanged."""
    if isinstance(value, str) and not isinstance(value, Markup):
        return clean_lines(value)
    return value


def changed(variant: VariantRecord) -> dict[str, str]:
    """Return the knobs of a variant that were turned, as text."""
    recipe = variant.recipe
    knobs = recipe.model_dump(mode="json", exclude_defaults=True)
    return {"toolchain": recipe.toolchain} | {name: _knob(value) for name, value in knobs.items()}


def _knob(value: Any) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name}={_knob(part)}" for name, part in value.items())
    if isinstance(value, list):
        return " ".join(str(item) for item in value)
    return {True: "y", False: "n"}.get(value, str(value)) if isinstance(value, bool) else str(value)


def moment(when: datetime) -> str:
    return when.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1e6 else f"{count / 1e3:.0f} kB"


def command(words: tuple[str, ...]) -> str:
    return clean(shlex.join(words))


def quoted(text: str) -> Markup:
    """Return a text for the content of an element, its quotation marks as they are: as references they are five times
    as long.
    """
    return Markup(html.escape(clean_lines(text), quote=False))


def breakable(name: str) -> Markup:
    """Return a name that a narrow column breaks between its words."""
    return Markup(re.sub(r"([_.])", r"\1<wbr>", str(escape(clean_lines(name)))))


FILTERS = {
    "limit": limit,
    "percent": percent,
    "confidence": confidence,
    "moment": moment,
    "bytes": size,
    "command": command,
    "quoted": quoted,
    "breakable": breakable,
}
