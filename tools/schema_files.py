"""The files of schemas/. What several formats define alike is in defs.json once, and the others refer to it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from kdyno.cli.schemas import DIALECT, FORMATS, closed, headed, type_of

SCHEMAS = Path(__file__).parent.parent / "schemas"
SHARED = "defs"
HERE = "#/$defs/"
WIDTH = 100


class TwoShapes(Exception):
    """One name for two things: another reader exists for what verbs print, or the name represents two classes."""


def schema_files() -> dict[str, dict[str, Any]]:
    """Return the content of each file, by its name without `.json`. Raise TwoShapes."""
    roots, definitions = all_schemas()
    needed = {name: reached(root, definitions) for name, root in roots.items()}
    users = Counter(definition for names in needed.values() for definition in names)
    shared = {name for name, count in users.items() if count > 1}
    files = {name: headed(name, linked(root, shared)) for name, root in roots.items()}
    for name, file in files.items():
        if own := needed[name] - shared:
            file["$defs"] = {definition: linked(definitions[definition], shared) for definition in sorted(own)}
    common = {"title": "what several formats have", "$defs": {name: definitions[name] for name in sorted(shared)}}
    return files | {SHARED: {"$schema": DIALECT} | common}


def all_schemas() -> tuple[dict[str, Any], dict[str, Any]]:
    """Return all formats, and the definitions that they refer to; pydantic puts modules before names that two classes
    have.
    """
    roots: dict[str, Any] = {}
    definitions: dict[str, Any] = {}
    for mode in ("validation", "serialization"):
        types = [(name, mode, type_of(name)) for name, row in FORMATS.items() if row.mode == mode]
        made, defined = TypeAdapter.json_schemas(types)
        for name, definition in closed(defined["$defs"]).items():
            if definitions.setdefault(name, definition) != definition:
                raise TwoShapes(f"{name} is one thing where it is read, and another where it is printed")
        roots |= {name: closed(root) for (name, _), root in made.items()}
    return {name: roots[name] for name in FORMATS}, definitions


def reached(value: Any, definitions: dict[str, Any]) -> set[str]:
    """Return the names of the definitions that a value refers to, and those refer to."""
    found: set[str] = set()
    new = set(references(value))
    while new:
        found |= new
        new = {name for definition in new for name in references(definitions[definition])} - found
    return found


def references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for part in value:
            yield from references(part)
    elif isinstance(value, dict):
        for key, part in value.items():
            if key == "$ref":
                yield part.removeprefix(HERE)
            else:
                yield from references(part)


def linked(value: Any, shared: set[str]) -> Any:
    """Return the schemas, with what is shared in its own file."""
    if isinstance(value, list):
        return [linked(part, shared) for part in value]
    if not isinstance(value, dict):
        return value
    return {
        key: f"{SHARED}.json{part}" if key == "$ref" and part.removeprefix(HERE) in shared else linked(part, shared)
        for key, part in value.items()
    }


def written(value: Any, before: str = "", indent: str = "") -> str:
    """Return JSON with as much on a line as fits."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or not value or len(before) + len(indent) + len(line) < WIDTH:
        return before + line
    inner = f"{indent}  "
    if isinstance(value, dict):
        parts = [written(part, f"{json.dumps(key)}: ", inner) for key, part in value.items()]
    else:
        parts = [written(part, "", inner) for part in value]
    first, last = "{}" if isinstance(value, dict) else "[]"
    body = ",\n".join(inner + part for part in parts)
    return f"{before}{first}\n{body}\n{indent}{last}"
