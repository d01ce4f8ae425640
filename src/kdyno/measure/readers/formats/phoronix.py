"""The Phoronix Test Suite's composite.xml: Result elements, each with one Entry for each identifier."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from kdyno.base.measurement import Direction
from kdyno.measure.readers import xml_values as xml
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.json_values import Unfit
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import is_printed_number, last_place
from kdyno.measure.readers.source import FileSource
from kdyno.measure.readers.units import format_unit

TITLE = "Phoronix Test Suite XML"
DIRECTIONS: dict[str, Direction] = {"LIB": "lower", "HIB": "higher"}
REPEATED = "the Phoronix Test Suite repeats a test until its values agree, so their spread may be larger than it looks"


def recognises(source: FileSource) -> bool:
    return "<PhoronixTestSuite" in source.head


def read(source: FileSource) -> ProgramOutput:
    """Read a benchmark from every result, a variant from every identifier; graphs of sensors are left out. Raise
    Broken.
    """
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
