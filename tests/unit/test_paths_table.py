"""The table of paths in docs/silicon.md, made of the kernel's own (tools/paths_table.py)."""

from __future__ import annotations

from pathlib import Path

import paths_table
import pytest

from kdyno.measure.paths.table import paths


def test_each_path_has_a_row_and_each_other_one_is_held_out() -> None:
    rows = paths_table.paths_table().strip().splitlines()[2:]
    assert [row.split(" | ")[1] for row in rows] == list(paths())
    assert ["held-out" in row for row in rows] == [False, True] * (len(rows) // 2)


def test_a_table_that_is_not_the_kernels_is_stale_and_is_written_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "silicon.md"
    page.write_text("before\n\n<!-- tools/check-docs: paths -->\n\n| group |\n| --- |\n\nafter\n")
    monkeypatch.setattr(paths_table, "PAGE", page)
    assert len(paths_table.stale(write=False)) == 1
    assert paths_table.stale(write=True) == paths_table.stale(write=False) == []
    assert page.read_text().startswith("before\n\n") and page.read_text().endswith(" |\n\nafter\n")
