"""Columns that say whether a measurement succeeded: the number of one that failed is not a measurement."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kdyno.measure.readers.numerals import is_missing

_CLEAR = {
    **dict.fromkeys(("pass", "passed", "success", "succeeded", "successful", "✅", "✔", "✓"), True),
    **dict.fromkeys(("fail", "failed", "failure", "timeout", "timed_out", "crashed", "❌", "✗", "✘"), False),
}
"""Words that say it in a column of any name."""
_WORDS = _CLEAR | {
    **dict.fromkeys(("ok", "okay", "good", "valid", "done", "complete", "completed", "finished", "passing"), True),
    **dict.fromkeys(("nok", "not_ok", "ko", "bad", "invalid", "incomplete", "broken", "unstable", "blocked"), False),
    **dict.fromkeys(("err", "error", "errored", "failing", "timedout", "xfail", "skip", "skipped", "lost"), False),
    **dict.fromkeys(("abort", "aborted", "cancelled", "canceled", "killed", "crash", "panic", "oops", "oom"), False),
    **dict.fromkeys(("hang", "hung", "interrupted", "notrun", "not_run", "unsupported", "dead"), False),
}
"""Words that say it in a column that is called like one; true: it succeeded."""
_TRUTHS = {"true": True, "t": True, "yes": True, "y": True, "false": False, "f": False, "no": False, "n": False}
_DIGITS = {"1": True, "0": False}
_NAMES = frozenset(("status", "state", "result", "outcome", "verdict", "conclusion", "test_result", "test_status"))
_SUCCESS = frozenset(("ok", "success", "successful", "succeeded", "passed", "valid", "is_valid"))
_FAILURE = frozenset(("fail", "failed", "failure", "error", "errored", "timeout", "timed_out", "skipped", "crashed"))
_EXIT_CODES = frozenset(
    ("exit", "exit_code", "exitcode", "exit_status", "rc", "ret", "retval", "return_code", "returncode", "errno")
)
_COUNTED = frozenset(
    (
        *("pass", "passed", "passes", "fail", "failed", "fails", "failure", "failures", "skip", "skipped", "skips"),
        *("error", "errors", "timeout", "timeouts", "crashed", "warn", "warning", "warnings", "xfail", "ignored"),
    )
)
_EXIT_CODE = re.compile(r"-?\d{1,5}(?:\.0)?")


@dataclass(frozen=True)
class StatusColumn:
    """A column that says of each row whether its measurement succeeded."""

    column: str
    words: Mapping[str, bool] | None
    """Word -> whether it means success; None: the column has exit codes, of which 0 means success."""

    def has_failed(self, text: str) -> bool | None:
        """Return whether a row with this text has failed; None if the text says neither. An empty cell is no failure:
        many people mark only those.
        """
        if is_missing(text):
            return False
        word = _fold(text)
        if self.words is None:
            return float(word) != 0 if _EXIT_CODE.fullmatch(word) else None
        return not self.words[word] if word in self.words else None


def find_status_columns(
    names: Mapping[str, str], cells: Mapping[str, Sequence[str]], variants: frozenset[str]
) -> tuple[StatusColumn, ...]:
    """Return the columns of a status. `names` are the columns with their folded names, `cells` the first ones of each;
    a column whose name is among `variants` has none.
    """
    statuses = []
    for column, name in names.items():
        words = [_fold(text) for text in cells[column] if not is_missing(text)]
        if name in variants or not words:
            continue
        for known, fits in (
            (_WORDS, name in _NAMES | _SUCCESS or not _CLEAR.keys().isdisjoint(words)),
            (_TRUTHS | _DIGITS, name in _SUCCESS),
            (_TRUTHS, name in _NAMES),
            ({word: not truth for word, truth in _TRUTHS.items()}, name in _FAILURE),
        ):
            if fits and known.keys() >= set(words):
                statuses.append(StatusColumn(column, known))
                break
        else:
            if name in _EXIT_CODES and all(map(_EXIT_CODE.fullmatch, words)):
                statuses.append(StatusColumn(column, None))
    return tuple(statuses)


def counts_a_status(heading: str) -> bool:
    """Return whether a column counts the tests that passed, failed or were skipped, by its name."""
    return _fold(heading) in _COUNTED


def _fold(text: str) -> str:
    """Return a text in small letters, with `_` between its words, without the sign that makes a picture of it."""
    return "_".join(text.replace("\ufe0f", "").lower().replace("-", "_" if len(text) > 3 else "-").split())
