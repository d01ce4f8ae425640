"""ministat: the mean and the standard deviation of each file that it compared."""

from __future__ import annotations

import re

from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import last_place
from kdyno.measure.readers.source import FileSource

TITLE = "ministat output"
_HEADER = re.compile(r"^ +N +Min +Max +Median +Avg +Stddev\s*$", re.MULTILINE)
_LEGEND = re.compile(r"^(?P<mark>[x+*%#@O]) (?P<name>\S.*)$")
_NUMBER = r"\d+(?:\.\d+)?(?:e[-+]?\d+)?"
_ROW = re.compile(
    rf"^(?P<mark>[x+*%#@O]) +(?P<n>\d{{1,9}})(?: +{_NUMBER}){{3}} +(?P<mean>{_NUMBER}) +(?P<sd>{_NUMBER})\s*$"
)


def recognises(source: FileSource) -> bool:
    return bool(_HEADER.search(source.head))


def read(source: FileSource) -> ProgramOutput:
    """Read a mean from every row; what it says of their difference is what kdyno finds out."""
    names: dict[str, str] = {}
    series = []
    for line in source.text.splitlines():
        if row := _ROW.match(line):
            mean, sd = float(row["mean"]), float(row["sd"])
            series.append(
                FileSeries(
                    "value",
                    "",
                    (mean,),
                    sd=sd / mean if mean else None,
                    n=int(row["n"]),
                    variant=names.get(row["mark"], row["mark"]),
                    step=last_place(row["mean"]),
                )
            )
        elif legend := _LEGEND.match(line):
            names[legend["mark"]] = legend["name"].rstrip()
    return ProgramOutput(*positive(series))
