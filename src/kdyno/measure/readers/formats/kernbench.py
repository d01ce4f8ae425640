"""kernbench: the means of its runs with their standard deviations, by the number of jobs."""

from __future__ import annotations

import re

from kdyno.measure.readers.readings import FileSeries, ProgramOutput, positive
from kdyno.measure.readers.sheet import last_place
from kdyno.measure.readers.source import FileSource

TITLE = "kernbench output"
_LOAD = re.compile(r"^Average (?P<load>\S.*?) Run \(std deviation\):")
_TIME = re.compile(r"^(?P<name>Elapsed|User|System) Time (?P<mean>\d+(?:\.\d+)?) \((?P<sd>\d+(?:\.\d+)?)\)")


def recognises(source: FileSource) -> bool:
    return any(map(_LOAD.match, source.head.splitlines()))


def read(source: FileSource) -> ProgramOutput:
    """Read the times; context switches, sleeps and the share of the CPUs explain them."""
    series, load = list[FileSeries](), ""
    for line in source.text.splitlines():
        if match := _LOAD.match(line):
            load = match["load"]
        elif load and (time := _TIME.match(line)):
            mean = float(time["mean"])
            series.append(
                FileSeries(
                    f"kernbench {load}, {time['name'].lower()} time",
                    "s",
                    (mean,),
                    sd=float(time["sd"]) / mean if mean else None,
                    direction="lower",
                    step=last_place(time["mean"]),
                )
            )
    return ProgramOutput(*positive(series))
