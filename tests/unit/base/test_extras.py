"""Libraries of verbs that not everybody uses."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from kdyno.base import extras
from kdyno.base.extras import EXTRAS, ExtraMissing, missing_libraries, require_extra
from kdyno.understand import doctor
from kdyno.understand.doctor import DoctorFinding

ROOT = Path(__file__).parents[3]
FOR_DEVELOPERS = {"dev", "pages"}
TOO_LARGE = {"symbolic"}
"""Extras whose libraries the tests have only where somebody installed them."""


def test_the_extras_are_those_of_the_package_and_the_tests_have_all_libraries() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert set(project["optional-dependencies"]) - FOR_DEVELOPERS == set(EXTRAS)
    for extra in EXTRAS.keys() - TOO_LARGE:
        assert missing_libraries(extra) == []
        require_extra(extra)


def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extras, "find_spec", lambda name: None if name == "uvicorn" else object())
    with pytest.raises(ExtraMissing, match="`kdyno serve` needs the library uvicorn") as missing:
        require_extra("serve")
    assert missing.value.advice == "run: pip install 'kdyno[serve]'"
    expected = DoctorFinding("extra serve", "optional", "`kdyno serve` needs uvicorn", "pip install 'kdyno[serve]'")
    assert doctor._extra("serve") == expected
    assert doctor._extra("fleet").status == "ok"
