"""Reading an experiment file: what it says, or each mistake with its line and what was probably meant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from kdyno.base import toml
from kdyno.base.files import read_whole
from kdyno.base.mistakes import SHOWN, Mistake, mistakes, problem, unfit
from kdyno.runs.experiment.errors import BadExperiment, NoExperiment, NotToml
from kdyno.runs.experiment.models import ExperimentFile
from kdyno.runs.experiment.toml_lines import line_of

MOST_BYTES = 1_000_000
"""Of a file; a long one has ten thousand."""


@dataclass(frozen=True)
class FileText:
    """The text of an experiment file, which messages name lines of; there needs to be no such file."""

    path: Path
    text: str

    def line_of(self, *keys: object) -> int:
        """The number (from 1) of the line where these keys stand."""
        return line_of(self.text, keys)

    def refused(self, found: Sequence[Mistake]) -> BadExperiment:
        """The error that tells of these mistakes, a line each."""
        problems = [
            f"{self.path}:{self._line(mistake)}: {problem(mistake, ExperimentFile)}" for mistake in found[:SHOWN]
        ]
        more = [f"... and {len(found) - SHOWN:,} more"] if len(found) > SHOWN else []
        return BadExperiment(problems="\n".join([*problems, *more]))

    def _line(self, mistake: Mistake) -> int:
        return self.line_of(*mistake.keys, *(["type"] if mistake.kind == "union_tag_invalid" else []))


@dataclass(frozen=True)
class ReadFile:
    """An experiment file that was read: the first stage of an experiment."""

    written: FileText
    content: ExperimentFile


def read_file(path: Path) -> ReadFile:
    """Raises NoExperiment, NotToml and BadExperiment."""
    try:
        text = read_whole(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NoExperiment(path=path, why=getattr(error, "strerror", None) or "not UTF-8") from error
    return parse_file(text, path)


def parse_file(text: str, path: Path) -> ReadFile:
    """The same of a text that would stand there. Raises NotToml and BadExperiment."""
    written = FileText(path, text)
    try:
        table = toml.parse(text)
    except ValueError as error:
        raise NotToml(path=path, why=error) from error
    for keys, why in unfit(table):
        raise written.refused([Mistake(keys, keys, "", why)])
    try:
        return ReadFile(written, ExperimentFile.model_validate(table))
    except ValidationError as error:
        raise written.refused(mistakes(error, ExperimentFile, table)) from None
