"""Small experiments as files."""

from __future__ import annotations

from pathlib import Path

MINIMAL = """\
name = "small"
source = "linux"
baseline = "plain"

[variants.plain]
"""


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "experiment.toml"
    path.write_text(text)
    return path
