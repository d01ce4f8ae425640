"""The promises of docs/security.md and the tests that they name (tools/promises.py)."""

from __future__ import annotations

from pathlib import Path

import promises
import pytest

ROOT = Path(__file__).parents[2]
TEST = "tests/unit/test_a.py"


def table(*rows: str) -> str:
    lines = [promises.HEADING, "| --- | --- |", *(f"| a promise | {row} |" for row in rows)]
    return "\n".join(["# Security", "", *lines, "", "## After", ""])


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / TEST).parent.mkdir(parents=True)
    (tmp_path / TEST).write_text("def helper() -> None: ...\n\n\ndef test_it() -> None: ...\n")
    (tmp_path / "tests/unit/base.py").write_text("def helper() -> None: ...\n")
    (tmp_path / "crates").mkdir()
    (tmp_path / "crates/daemon.rs").write_text("#[test]\nfn ends() {}\n")
    return tmp_path


def test_each_promise_of_the_page_names_tests_that_exist() -> None:
    assert promises.promise_problems((ROOT / "docs/security.md").read_text(encoding="utf-8"), ROOT) == []


def test_files_and_single_tests_of_both_languages_are_found(root: Path) -> None:
    assert promises.promise_problems(table(TEST, f"{TEST}::test_it, crates/daemon.rs"), root) == []


@pytest.mark.parametrize(
    ("tests", "problem"),
    [
        ("", "must name its tests as paths, got ''"),
        ("by hand", "must name its tests as paths"),
        (f"{TEST} and others", "must name its tests as paths"),
        ("tests/unit/test_b.py", "there is no test tests/unit/test_b.py"),
        (f"{TEST}::test_other", f"there is no test {TEST}::test_other"),
        ("tests/unit/base.py", "there is no test tests/unit/base.py"),
        (f"{TEST}, crates/gone.rs", "there is no test crates/gone.rs"),
    ],
)
def test_a_promise_without_an_existing_test_is_a_problem(root: Path, tests: str, problem: str) -> None:
    [found] = promises.promise_problems(table(tests), root)
    assert problem in found and found.endswith("a promise")


def test_a_page_without_the_table_is_a_problem(root: Path) -> None:
    assert promises.promise_problems("# Security\n", root) == ["there is no table of promises"]
