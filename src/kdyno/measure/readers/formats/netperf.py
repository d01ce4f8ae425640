"""netperf: the last number of the row of results; for datagrams, what was received. With -k, THROUGHPUT."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping

from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.sheet import is_written_number
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "netperf output"
_TEST = re.compile(r"^(?:MIGRATED )?(?P<name>[A-Z][A-Z/ -]*[A-Z]) TEST (?:from|to)\b")
_UNIT = re.compile(r"(?P<ten>10\^\d)?(?P<data>[KMG]?(?:bits|bytes)) ?/ ?s(?:ec(?:ond)?)?\b", re.IGNORECASE)
_TRANSACTIONS = "transactions/s"
_PREFIXES = {"10^3": "k", "10^6": "M", "10^9": "G"}
_ROW = re.compile(r"^\s*\d+(?:\.\d+)?(?:\s+-?\d+(?:\.\d+)?)*\s*$")
_KEY = re.compile(r"^(?P<key>[A-Z][A-Z_]+)=(?P<value>.*)$")
_UNITS = {"Trans/s": _TRANSACTIONS, "Requests/s": _TRANSACTIONS}
LEAST_COLUMNS = {"stream": 5, "request": 6}
"""Numbers in a row of results; shorter ones belong to the other host."""


def recognises(source: FileSource) -> bool:
    lines = source.head.splitlines()
    return any(map(_TEST.match, lines)) or any(line.startswith("THROUGHPUT=") for line in lines)


def read(source: FileSource) -> ProgramOutput:
    values: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, unit, text in _results(source):
        values[f"netperf {name}", unit].append(text)
    series = [printed_series(name, unit, texts, "higher") for (name, unit), texts in values.items()]
    return ProgramOutput(*positive(series))


def _results(source: FileSource) -> Iterator[tuple[str, str, str]]:
    """Yield (test, unit, number) of every run."""
    name, unit, lines = "", "", list[list[str]]()
    keys: dict[str, str] = {}
    for line in source.text.splitlines():
        if pair := _KEY.match(line):
            if pair["key"] in keys:  # the next run's
                yield from _of_keys(name, keys)
                keys = {}
            keys[pair["key"]] = pair["value"].strip()
        elif test := _TEST.match(line):
            yield from _of_keys(name, keys)
            if name and (number := _result(name, lines)):
                yield name, unit, number
            keys = {}
            name, unit, lines = test["name"], _TRANSACTIONS if "REQUEST" in test["name"] else "", []
        elif found := _UNIT.search(line):
            unit = unit or _unit(found)
        elif name and _ROW.match(line):
            lines.append(line.split())
    if name and (number := _result(name, lines)):
        yield name, unit, number
    yield from _of_keys(name, keys)


def _of_keys(name: str, keys: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield (test, unit, number) of a run that was printed as KEY=VALUE, if it has a throughput."""
    number, unit = keys.get("THROUGHPUT", ""), keys.get("THROUGHPUT_UNITS", "")
    if not is_written_number(number):
        return
    facts = " ".join(filter(None, (keys.get("PROTOCOL", ""), keys.get("DIRECTION", ""))))
    found = _UNIT.search(unit)
    yield name or facts or "omni", _UNITS.get(unit) or (_unit(found) if found else format_unit(unit)), number


def _unit(match: re.Match[str]) -> str:
    data = "b" if "bit" in match["data"].lower() else "B"
    prefix = _PREFIXES.get(match["ten"] or "", match["data"][0] if match["data"][0] in "KMG" else "")
    return format_unit(f"{prefix}{data}/s")


def _result(name: str, rows: list[list[str]]) -> str:
    """Return the number that a run is judged by; empty if the run has none."""
    if "UDP" in name and "STREAM" in name:
        return rows[1][-1] if len(rows) > 1 and len(rows[1]) > 2 else ""  # the second row is the receiver's
    least = LEAST_COLUMNS["request" if "REQUEST" in name else "stream"]
    return next((row[-1] for row in rows if len(row) >= least), "")
