"""XML as a tree, without what makes a small file large: a document type, in which alone entities can be declared."""

from __future__ import annotations

from typing import NoReturn
from xml.etree.ElementTree import Element, ParseError, fromstring
from xml.parsers import expat

from kdyno.measure.readers.json_values import Unfit

MOST_DEPTH = 50
"""Levels of nested elements."""


def tree(text: str) -> Element:
    """Return the root of a document. Raise Unfit if it is not XML, has a document type, or is nested too deeply."""
    try:
        _require_harmless(text)
        return fromstring(text)
    except expat.ExpatError as error:
        raise Unfit(_locate_fault(error.lineno, error.offset)) from error
    except ParseError as error:
        raise Unfit(_locate_fault(*error.position)) from error


def text_of(parent: Element, name: str) -> str:
    """Return the text of the first child of this name as one line; empty if there is none."""
    return " ".join((parent.findtext(name) or "").split())


def _locate_fault(line: int, column: int) -> str:
    """Return where a text stops being XML, in kdyno's own words."""
    return f"invalid XML from line {line}, column {column + 1} on"


def _require_harmless(text: str) -> None:
    depth = 0

    def starts(_name: str, _attributes: dict[str, str]) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise Unfit("it is nested too deeply")

    def ends(_name: str) -> None:
        nonlocal depth
        depth -= 1

    parser = expat.ParserCreate()
    parser.StartElementHandler = starts
    parser.EndElementHandler = ends
    parser.StartDoctypeDeclHandler = _refuse
    parser.Parse(text, True)


def _refuse(_name: str, _system: str | None, _public: str | None, _internal: bool) -> NoReturn:
    raise Unfit("it has a document type, which results don't need")
