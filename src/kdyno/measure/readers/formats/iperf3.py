"""iperf3 -J: the receiver's rate for all streams together; its intervals are parts of one run."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from kdyno.measure.readers import json_values as json
from kdyno.measure.readers.errors import Broken
from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.source import FileSource

TITLE = "iperf3 JSON"
_SUMS = {
    "sum_received": "",
    "sum_received_bidir_reverse": "reverse of both",
}


def recognises(source: FileSource) -> bool:
    head = source.head
    return '"start"' in head and ('"test_start"' in head or '"iperf3' in head or '"version":\t"iperf' in head)


def read(source: FileSource) -> ProgramOutput:
    """Read a run from every document of a file. Raise Broken."""
    rates: dict[str, list[float]] = defaultdict(list)
    notes: list[str] = []
    try:
        for row in json.documents(source.text):
            document = json.table(row, "the document")
            if "error" in document:
                notes.append(f"a run failed ({json.text(document['error'], 'error')}): left out")
                continue
            end = json.table(document.get("end"), "end")
            test = json.table(json.table(document.get("start"), "start").get("test_start", {}), "test_start")
            name = _name(test)
            received = {key: what for key, what in _SUMS.items() if key in end} or {"sum": ""}
            for key, what in received.items():
                rate = json.number(json.table(end.get(key), key).get("bits_per_second"), "bits_per_second")
                rates[", ".join(filter(None, (name, what)))].append(rate)
    except ValueError as error:
        raise Broken(file=source.shown, format=TITLE, why=json.why(error)) from error
    usable, unusable = positive([FileSeries(name, "b/s", tuple(v), direction="higher") for name, v in rates.items()])
    return ProgramOutput(usable, (*dict.fromkeys(notes), *unusable))


def _name(test: dict[str, Any]) -> str:
    """Return the name: `iperf3 TCP, 4 streams, reverse`."""
    protocol = json.text(test.get("protocol", ""), "protocol")
    streams = json.whole(test.get("num_streams", 1.0), "num_streams")
    facts = [f"{streams} stream{'' if streams == 1 else 's'}", *(["reverse"] if test.get("reverse") else [])]
    return ", ".join([f"iperf3 {protocol}".strip(), *facts])
