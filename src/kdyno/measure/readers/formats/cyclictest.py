"""cyclictest: the lines of -q, and the sums below the histogram of -h. The histogram's counts aren't measurements."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kdyno.measure.readers.formats.printed import Line, PrintedProgram
from kdyno.measure.readers.readings import ProgramOutput, positive, printed_series
from kdyno.measure.readers.source import FileSource

NAME = "cyclictest"
_LINES = PrintedProgram(
    NAME,
    # what it prints while it runs moves the cursor up, and each of its lines is about a part of the run
    re.compile(r"\A(?![^\x1b]*\x1b\[\d+A)(?=[^\x1b]*^T: *\d+ \( *\d+\) P: *\d+ I:)", re.MULTILINE),
    "lines of -q like `T: 0 ( 1234) P:80 I:1000 C:  10000 Min:      2 Act:    3 Avg:    3 Max:      20`, or of -h like "
    "`# Avg Latencies: 00003 00004`",
    (
        (Line(re.compile(r"^T:.* Avg: *(?P<value>\d+)\b"), "us", "lower", "average"),),
        (Line(re.compile(r"^T:.* Max: *(?P<value>\d+)\b"), "us", "lower", "maximum"),),
    ),
    facts={r"^T: *(\d+) ": r"thread \1"},
)
TITLE, EXCERPT = _LINES.title, _LINES.excerpt
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
