"""The formats that kdyno reads: a new one is a module beside this one and a row in the table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from kdyno.foreign import claims
from kdyno.foreign.errors import Broken
from kdyno.foreign.readers import hyperfine, lmbench, perf_stat, pyperf, stress_ng, summary_table
from kdyno.foreign.readings import LongTable, ProgramOutput, Reading
from kdyno.foreign.request import JudgeRequest
from kdyno.foreign.sheet import has_pipe_table, shape_of
from kdyno.foreign.source import Source


@dataclass(frozen=True)
class Reader:
    """One format of files."""

    name: str
    """As `--format` has it."""
    title: str
    """In reports and errors."""
    recognises: Callable[[Source, JudgeRequest], bool]
    """Whether a file is of this format, by its beginning; is asked only after the rows above have said no."""
    read: Callable[[Source, JudgeRequest], Reading]
    json: bool = False
    """Whether such a file is a JSON document."""
    lone_variant: str = "one file for each variant: NAME=FILE"
    """What to do if the files have a single variant."""


def of_program(
    name: str,
    title: str,
    recognises: Callable[[Source], bool],
    read: Callable[[Source], ProgramOutput],
    *,
    json: bool = False,
    lone_variant: str = Reader.lone_variant,
) -> Reader:
    """The row of a benchmark program, whose output leaves nothing to ask of the user."""
    return Reader(name, title, lambda source, _: recognises(source), lambda source, _: read(source), json, lone_variant)


def _read_csv(source: Source, request: JudgeRequest) -> LongTable:
    from kdyno.foreign.readers import csv_rows  # brings pandas, which takes half a second to import

    return csv_rows.read(source, request)


READERS = (
    of_program("lmbench", lmbench.TITLE, lmbench.recognises, lmbench.read),
    of_program(
        "hyperfine",
        hyperfine.TITLE,
        hyperfine.recognises,
        hyperfine.read,
        json=True,
        lone_variant="one file with several commands, or one file for each kernel: NAME=FILE",
    ),
    of_program("pyperf", pyperf.TITLE, pyperf.recognises, pyperf.read, json=True),
    of_program("perf", perf_stat.TITLE, perf_stat.recognises, perf_stat.read),
    of_program("stress-ng", stress_ng.TITLE, stress_ng.recognises, stress_ng.read),
    Reader(
        "table",
        summary_table.TITLE,
        summary_table.recognises,
        summary_table.read,
        lone_variant="name the column of the variants with --variant",
    ),
    Reader(
        "csv",
        "CSV, one value a row",
        lambda _source, _request: True,
        _read_csv,
        lone_variant="name the column of the variants with --variant, or one file for each variant: NAME=FILE",
    ),
)
"""In the order in which they are asked: whatever has columns and is nothing else is CSV."""

BY_NAME = {reader.name: reader for reader in READERS}


def recognise(source: Source, request: JudgeRequest) -> Reader:
    """Find the reader of a file. Raises Broken, NoHeader, and what Source.require_text raises."""
    source.require_text()
    json = _is_json(source)
    for reader in READERS:
        if reader.json == json and reader.recognises(source, request):
            return reader
    programs = " nor ".join(f"{reader.name}'s" for reader in READERS if reader.json)
    raise Broken(file=source.shown, format="JSON", why=f"it is neither {programs}")


def is_claims(source: Source, request: JudgeRequest) -> bool:
    """Whether a file is nothing but a list of published statistics. Raises what `recognise` raises."""
    if recognise(source, request).name not in ("csv", "table") or has_pipe_table(source.head):
        return False
    return claims.looks_like(shape_of(source).header)


def _is_json(source: Source) -> bool:
    """Whether a file begins as JSON does; so does lmbench's `[lmbench3.0 results ...]`."""
    return source.head.lstrip()[:1] in ("{", "[") and not lmbench.recognises(source)
