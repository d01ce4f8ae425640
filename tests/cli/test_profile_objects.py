"""`kdyno profile objects`, word for word and as JSON."""

from __future__ import annotations

import json

import pytest
from jsonschema import Draft202012Validator

from kdyno.base.state import State
from kdyno.cli.schemas import schema
from kdyno.kernel.image import Image
from kdyno.kernel.recipe import Recipe
from tests.cli.conftest import Lab
from tests.cli.test_golden import check
from tests.unit.objects_specimen import COUNTING, TUNED, keep_all, keep_image
from tests.unit.specimen import image


@pytest.fixture
def tuned(lab: Lab) -> Image:
    return keep_all(State(lab.state))


@pytest.mark.usefixtures("tuned")
def test_objects_without_the_profile_are_shown_by_reason_and_directory(lab: Lab) -> None:
    check("profile-objects", lab, lab("profile", "objects", TUNED[:12], "--hot"))


@pytest.mark.usefixtures("tuned")
def test_all_objects_without_the_profile_are_listed_on_request(lab: Lab) -> None:
    out = lab("profile", "objects", TUNED[:12], "-v").out
    assert [line.strip() for line in out.splitlines() if line.startswith("  fs/ext4/")] == [
        "fs/ext4/acl.c",
        "fs/ext4/dir.c",
    ]


@pytest.mark.usefixtures("tuned")
def test_the_json_is_as_its_schema_has_it(lab: Lab) -> None:
    report = json.loads(lab("profile", "objects", TUNED, "--json").out)
    Draft202012Validator(schema("profile-objects")).validate(report)
    assert report["counts"] == {"never-ran": 3, "profile": 2} | dict.fromkeys(
        (
            "reading-only",
            "not-instrumented",
            "not-in-counting-kernel",
            "other-compiler",
            "other-code",
            "assembly",
        ),
        1,
    )
    assert [section["section"] for section in report["functions"]] == [
        ".text.hot.copy_process.isra.0",
        ".text.hot.vfs_read",
        ".text.unlikely.vfs_read",
    ]


def test_an_image_from_before_hot_functions_were_kept_says_so(lab: Lab) -> None:
    keep_all(State(lab.state), sections=False)
    result = lab("profile", "objects", TUNED)
    assert result.status == 0
    assert "hot and cold functions are not on record" in result.out.splitlines()[0]
    assert json.loads(lab("profile", "objects", TUNED, "--json").out)["functions"] is None
    check("profile-objects-older", lab, lab("profile", "objects", TUNED, "--hot"))


def test_an_image_without_a_profile_is_refused(lab: Lab) -> None:
    keep_image(State(lab.state), image("plain", Recipe()).model_copy(update={"key": COUNTING}), {})
    check("profile-objects-plain", lab, lab("profile", "objects", COUNTING))


def test_an_unknown_image_is_refused(lab: Lab) -> None:
    check("profile-objects-unknown", lab, lab("profile", "objects", "0123456789"))


def test_a_damaged_list_is_named(lab: Lab, tuned: Image) -> None:
    (tuned.directory / "sections.jsonl").write_text("{}\n")
    result = lab("profile", "objects", TUNED)
    assert result.status == 3
    assert "sections.jsonl is not the file that was built" in result.err
    with_it = tuned.record.model_copy(update={"key": "9" * 64})
    files = {"delegation.jsonl": (tuned.directory / "delegation.jsonl").read_bytes(), "sections.jsonl": b"{}\n"}
    keep_image(State(lab.state), with_it, files)
    result = lab("profile", "objects", "9" * 64)
    assert result.status == 3
    assert "can't read the list of hot and cold functions" in result.err
