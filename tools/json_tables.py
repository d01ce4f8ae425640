"""The tables of docs/json.md: what each command prints with --json, and the exit codes."""

from __future__ import annotations

import re
from typing import Any

from doc_tables import DOCS, stale_table, table

from kdyno.cli.exit_codes import MEANINGS
from kdyno.cli.schemas import FORMATS, schema

PAGE = DOCS / "json.md"
COMMAND = re.compile(r"`kdyno ([^`]*--json)`")


def commands_table() -> str:
    """Return a row for each document that a command prints."""
    rows = [
        (", ".join(f"`kdyno {command}`" for command in commands), f"`{name}`", _keys(schema(name)))
        for name, row in FORMATS.items()
        if (commands := COMMAND.findall(row.what))
    ]
    return table(("command", "schema", "keys"), sorted(rows))


def _keys(document: dict[str, Any]) -> str:
    """Return the keys of a document, or of each of its parts."""
    document = _resolve(document, document)
    if items := document.get("items"):
        return f"a list; each: {_keys({'$defs': document['$defs'], **_resolve(items, document)})}"
    if "additionalProperties" in document and "properties" not in document:
        return "by name of a variant"
    return ", ".join(f"`{key}`" for key in document.get("properties", {}))


def _resolve(part: dict[str, Any], document: dict[str, Any]) -> dict[str, Any]:
    """Return what a part of a schema refers to, with the definitions of the document."""
    if "$ref" in part:
        part = document["$defs"][part["$ref"].rpartition("/")[2]]
    return {"$defs": document.get("$defs", {}), **part}


def exit_codes_table() -> str:
    return table(("code", "meaning"), [(str(int(code)), meaning) for code, meaning in sorted(MEANINGS.items())])


def stale(write: bool) -> list[str]:
    """Return what is wrong with the tables; empty if they are written anew."""
    return [
        *stale_table(PAGE, "json", commands_table(), write),
        *stale_table(PAGE, "exit-codes", exit_codes_table(), write),
    ]
