"""Readers of foreign bytes: measurements that other tools wrote."""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from kdyno.judge.verdicts.model import to_json
from kdyno.judge.verdicts.of_files import judge_files
from kdyno.measure.readers.formats.registry import READERS
from kdyno.measure.readers.request import JudgeRequest
from kdyno.report.terminal import render
from tests.fuzz.check import LARGEST, Target
from tests.fuzz.inputs import files, is_shown_as_it_is
from tests.unit.foreign_outputs import DATA as FOREIGN_DATA
from tests.unit.foreign_outputs import OUTPUTS

FOREIGN = {**OUTPUTS, "table": ("compiler_patch.md",) * 2, "csv": ("values.csv",) * 2}
"""By format of `kdyno judge`: a file that stays as it is, and those that are changed."""
ALONE = ("csv", "table")
"""Formats whose files hold several variants."""
VALUES_CSV = "kernel,boot,test,value (ns),status\n" + "".join(
    f"{kernel},{boot},{test},{value + boot * 0.25},{'FAIL' if boot == 3 and test == 'pipe' else 'PASS'}\n"
    for kernel, offset in (("before", 0.0), ("after", -3.0))
    for boot in range(4)
    for test, value in (("pipe", 100.0 + offset), ("fork", 5000.0 + offset))
)


def judged(reader: str | None, companion: Path | None = None) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        with tempfile.NamedTemporaryFile() as copy:
            copy.write(path.read_bytes())
            copy.flush()
            names = [str(path)] if reader in ALONE else [f"before={companion or copy.name}", f"after={path}"]
            report = judge_files(names, JudgeRequest(format=reader, n="12"))
        json.loads(to_json(report), parse_constant=_no_number)
        text = io.StringIO()
        render(report, Console(file=text, width=110, force_terminal=False))
        assert is_shown_as_it_is(text.getvalue())

    return read


def _no_number(name: str) -> None:
    raise AssertionError(f"the report's JSON has {name}")


def foreign_seeds(*names: str) -> Callable[[], Sequence[bytes]]:
    return lambda: [
        VALUES_CSV.encode() if name == "values.csv" else (FOREIGN_DATA / name).read_bytes()[:LARGEST] for name in names
    ]


def all_foreign() -> Sequence[bytes]:
    return [seed for name, names in FOREIGN.items() if name not in ALONE for seed in foreign_seeds(*names)()]


def claims(path: Path) -> None:
    """Published statistics, held against values that stay as they are."""
    with tempfile.NamedTemporaryFile(suffix=".csv") as values:
        values.write((FOREIGN_DATA / "compiler_patch.csv").read_bytes())
        values.flush()
        report = judge_files([values.name], JudgeRequest(), [str(path)])
    text = io.StringIO()
    render(report, Console(file=text, width=110, force_terminal=False))
    assert is_shown_as_it_is(text.getvalue())


TARGETS = (
    Target("claims", claims, files(FOREIGN_DATA / "compiler_patch_claims.csv"), examples=100),
    Target("judge", judged(None), all_foreign, examples=150),
    *(
            Target(
                f"judge-{reader.name}",
                judged(reader.name, FOREIGN_DATA / FOREIGN[reader.name][0]),
                foreign_seeds(*FOREIGN[reader.name][1:]),
                examples=100,
            )
            for reader in READERS
        ),
)  # fmt: skip
