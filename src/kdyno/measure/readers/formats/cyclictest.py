"""cyclictest: the lines of -q, and the sums below the histogram of -h. The histogram's counts aren't measurements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdyno.measure.readers.formats.printed import PROGRAMS
from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource

NAME = "cyclictest"
_LINES = next(program for program in PROGRAMS if program.name == NAME)
_HISTOGRAM = re.compile(r"^# Histogram\s*$", re.MULTILINE)
_SUMS = {"average": "# Avg Latencies:", "maximum": "# Max Latencies:"}


def recognises(source: FileSource) -> bool:
    return bool(_HISTOGRAM.search(source.head)) or _LINES.recognises(source)


def read(source: FileSource) -> ProgramOutput:
    """Read the average and the maximum of each thread, in microseconds; of several histograms, those of each."""
    if not _HISTOGRAM.search(source.head):
        return _LINES.read(source)
    values: dict[str, list[str]] = {}
    for benchmark, text in _sums(source.text):
        values.setdefault(benchmark, []).append(text)
    return ProgramOutput(*positive([printed_series(name, "us", texts, "lower") for name, texts in values.items()]))


def _sums(text: str) -> Iterator[tuple[str, str]]:
    """Yield (benchmark, number) of each thread."""
    for line in text.splitlines():
        for name, beginning in _SUMS.items():
            if line.startswith(beginning):
                numbers = [word for word in line.removeprefix(beginning).split() if word.isdecimal()]
                yield from ((f"{NAME} {name}, thread {place}", number) for place, number in enumerate(numbers))
