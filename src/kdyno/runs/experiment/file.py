"""Reads an experiment file, and reports each mistake with its line and the likely intention."""

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
"""The largest file that is read; a long one has ten thousand bytes."""


@dataclass(frozen=True)
class FileText:
    """The text of an experiment file. Messages name its lines; the file needn't exist."""

    path: Path
    text: str

    def line_of(self, *keys: object) -> int:
        """Return the number (from 1) of the line that has these keys."""
        return line_of(self.text, keys)

    def refusal(self, file_mistakes: Sequence[Mistake]) -> BadExperiment:
        """Return the error that reports these mistakes, one on each line."""
        problems = [
            f"{self.path}:{self._line(mistake)}: {problem(mistake, ExperimentFile)}"
            for mistake in file_mistakes[:SHOWN]
        ]
        more = [f"... and {len(file_mistakes) - SHOWN:,} more"] if len(file_mistakes) > SHOWN else []
        return BadExperiment(problems="\n".join([*problems, *more]))

    def _line(self, mistake: Mistake) -> int:
        return self.line_of(*mistake.keys, *(["type"] if mistake.kind == "union_tag_invalid" else []))


@dataclass(frozen=True)
class ReadFile:
    """An experiment file and its content: the first stage of an experiment."""

    written: FileText
    content: ExperimentFile


def read_file(path: Path) -> ReadFile:
    """Read and check an experiment file. Raises NoExperiment, NotToml and BadExperiment."""
    try:
        text = read_whole(path, MOST_BYTES).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise NoExperiment(path=path, why=getattr(error, "strerror", None) or "not UTF-8") from error
    return parse_file(text, path)


def parse_file(text: str, path: Path) -> ReadFile:
    """Check the text of an experiment file that would be at `path`. Raises NotToml and BadExperiment."""
    written = FileText(path, text)
    try:
        table = toml.parse(text)
    except ValueError as error:
        raise NotToml(path=path, why=error) from error
    for keys, reason in unfit(table):
        raise written.refusal([Mistake(keys, keys, "", reason)])
    try:
        return ReadFile(written, ExperimentFile.model_validate(table))
    except ValidationError as error:
        raise written.refusal(mistakes(error, ExperimentFile, table)) from None
