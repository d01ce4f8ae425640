"""The Phoronix Test Suite's composite.xml: Result elements, each with one Entry for each identifier; and its CSV and
its text, with one figure for each.
"""

from __future__ import annotations

import csv
import re
from itertools import islice
from xml.etree.ElementTree import Element

from kdyno.base.measurement import Direction
from kdyno.measure.readers import xml_values as xml
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.json_values import Unfit
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "Phoronix Test Suite output"
DIRECTIONS: dict[str, Direction] = {"LIB": "lower", "HIB": "higher"}
MOST_LINES = 50_000
REPEATED = "the Phoronix Test Suite repeats a test until its values agree, so their spread may be larger than it looks"


_RESULT = re.compile(r"(?P<name>.+?)(?: \((?P<unit>[^()]+)\))?")
_SCALE = re.compile(r"^\s*(?P<unit>\S[^|<>]{0,60}?) [<>] (?P<better>Lower|Higher) Is Better\s*$")
_BAR = re.compile(r"^\s*(?P<identifier>\S.*?) \.* ?(?P<value>\d+(?:\.\d+)?) \|=*\s*$")
LINE_LENGTH = 300
_RESULT_ROW = re.compile(r'^"[^"\n]*",(?:LIB|HIB),', re.MULTILINE)


def recognises(source: FileSource) -> bool:
    if "<PhoronixTestSuite" in source.head or _RESULT_ROW.search(source.head):
        return True
    return any(_SCALE.match(line[:LINE_LENGTH]) for line in source.head.splitlines())


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every result, a variant from every identifier; graphs of sensors are left out. Raise
    Broken.
    """
    if source.form == "xml":
        return _read_xml(source)
    return _read_csv(source) if _RESULT_ROW.search(source.head) else _read_text(source)


def _read_text(source: FileSource) -> ProgramOutput:
    """Read the bars below each line such as `Seconds < Lower Is Better`; the lines above it are the test's name."""
    series: list[FileSeries] = []
    titles: list[str] = []
    scale: re.Match[str] | None = None
    for line in (line[:LINE_LENGTH] for line in source.text.splitlines()):
        if match := _SCALE.match(line):
            scale = match
        elif scale and (bar := _BAR.match(line)):
            series.append(
                FileSeries(
                    ", ".join(titles) or "result",
                    format_unit(scale["unit"]),
                    (float(bar["value"]),),
                    variant=bar["identifier"].rstrip(),
                    direction="lower" if scale["better"] == "Lower" else "higher",
                    step=last_place(bar["value"]),
                )
            )
        else:
            titles = [*([] if scale or not line.strip() else titles), *([line.strip()] if line.strip() else [])]
            scale = None
    return ProgramOutput(*positive(series))


def _read_csv(source: FileSource) -> ProgramOutput:
    """Read the rows below the last line of identifiers. Raise Broken."""
    identifiers: list[str] = []
    series: list[FileSeries] = []
    for cells in islice(csv.reader(source.text.splitlines()), MOST_LINES):
        if len(cells) > 2 and not cells[0].strip() and not cells[1].strip() and all(cells[2:]):
            identifiers = cells[2:]
        elif len(cells) > 2 and cells[1] in DIRECTIONS:
            if len(cells) - 2 > len(identifiers):
                raise Broken(
                    file=source.shown, format=TITLE, why="the line of identifiers above its results is missing"
                )
            match = _RESULT.fullmatch(cells[0])
            name, unit = (match["name"], match["unit"] or "") if match else ("result", "")
            for identifier, text in zip(identifiers, cells[2:], strict=False):
                if is_printed_number(text):
                    series.append(
                        FileSeries(
                            name,
                            format_unit(unit),
                            (float(text),),
                            variant=identifier,
                            direction=DIRECTIONS[cells[1]],
                            step=last_place(text),
                        )
                    )
    return ProgramOutput(*positive(series))


def _read_xml(source: FileSource) -> ProgramOutput:
    try:
        root = xml.tree(source.text)
    except Unfit as error:
        raise Broken(file=source.shown, format=TITLE, why=str(error)) from error
    series, notes = [], []
    for result in root.iterfind("Result"):
        benchmark = _name(result)
        unit, direction = format_unit(xml.text_of(result, "Scale")), DIRECTIONS.get(xml.text_of(result, "Proportion"))
        for entry in result.iterfind("Data/Entry"):
            variant, printed = xml.text_of(entry, "Identifier"), _printed_values(entry)
            if not printed:
                notes.append(f"{benchmark} of {variant} has no single values: left out")
                continue
            series.append(
                FileSeries(
                    benchmark,
                    unit,
                    tuple(map(float, printed)),
                    variant=variant,
                    direction=direction,
                    step=min(map(last_place, printed)),
                )
            )
    usable, unusable = positive(series)
    repeated = (REPEATED,) if any(len(one.values) > 1 for one in usable) else ()
    return ProgramOutput(usable, (*notes, *unusable, *repeated))


def _name(result: Element) -> str:
    """Return the name of the test, its version, and its settings: `Timed GCC Compilation 13.2, Time To Compile`."""
    title = " ".join(filter(None, (xml.text_of(result, "Title"), xml.text_of(result, "AppVersion"))))
    return ", ".join(filter(None, (title, xml.text_of(result, "Description")))) or "result"


def _printed_values(entry: Element) -> list[str]:
    """Return the single values as written; if only their mean is there, the mean. Sensors have several, between
    commas.
    """
    raw = [text.strip() for text in xml.text_of(entry, "RawString").split(":") if text.strip()]
    printed = raw or [xml.text_of(entry, "Value")]
    return printed if all(map(is_printed_number, printed)) else []
