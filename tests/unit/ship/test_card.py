"""Cards of kernels that are installed or run, and the forms of others."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from types import SimpleNamespace

import pytest

from kdyno.ship.attestation import components, statement
from kdyno.ship.card import Card
from kdyno.ship.code import compare_code
from kdyno.ship.find_card import CardOfAnother, NoCard, NoKernelThere, build_id_in, find_card
from kdyno.ship.terminal import card_lines
from kdyno.ship.verify import differences
from tests.unit.ship_packages import CARD_PATH, KERNEL, KERNEL_PATH, RELEASE, card


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The root of a machine on which the package is installed."""
    for name, content in ((KERNEL_PATH, KERNEL), (CARD_PATH, card().written())):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    return tmp_path


def notes(build_id: str) -> bytes:
    other = struct.pack("<III", 6, 1, 7) + b"Linux\0\0\0" + b"x\0\0\0"
    return other + struct.pack("<III", 4, len(build_id) // 2, 3) + b"GNU\0" + bytes.fromhex(build_id)


def test_an_installed_kernel_has_its_card(root: Path) -> None:
    assert find_card(str(root / KERNEL_PATH), None).card == card()


def test_a_kernel_that_was_replaced_has_no_card(root: Path) -> None:
    (root / KERNEL_PATH).write_bytes(KERNEL + b"evil")
    with pytest.raises(CardOfAnother, match="SHA-256"):
        find_card(str(root / KERNEL_PATH), None)


def test_a_kernel_without_a_card_is_told_where_it_would_be(root: Path) -> None:
    (root / CARD_PATH).unlink()
    with pytest.raises(NoCard, match=RELEASE):
        find_card(str(root / KERNEL_PATH), None)


def test_a_file_that_is_not_there_is_one_message(tmp_path: Path) -> None:
    with pytest.raises(NoKernelThere, match="No such file"):
        find_card(str(tmp_path / "vmlinuz"), None)


def test_the_running_kernel_is_known_by_release_and_build_id(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(release=RELEASE))
    (root / "sys/kernel").mkdir(parents=True)
    (root / "sys/kernel/notes").write_bytes(notes("ab" * 20))
    assert "build ID agree" in find_card("running", None, root).subject
    (root / "sys/kernel/notes").write_bytes(notes("cd" * 20))
    with pytest.raises(CardOfAnother, match="cdcd"):
        find_card("running", None, root)
    (root / "sys/kernel/notes").unlink()
    with pytest.raises(CardOfAnother, match="unknown"):
        find_card("running", None, root)


@pytest.mark.parametrize("damaged", [b"", b"\xff" * 40, struct.pack("<III", 2**32 - 1, 2**32 - 1, 3) + b"GNU\0"])
def test_damaged_notes_have_no_build_id(damaged: bytes) -> None:
    assert build_id_in(damaged) == ""


def test_a_card_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str], root: Path) -> None:
    from kdyno.cli.main import main

    hostile = card(kdyno="\x1b[2J\x1b]0;owned\x07")
    (root / CARD_PATH).write_bytes(hostile.written())
    for form in ([], ["--json"], ["--in-toto"], ["--cyclonedx"]):
        assert main(["card", str(root / KERNEL_PATH), *form]) == 0
        printed = capsys.readouterr().out
        assert printed
        assert "\x1b" not in printed


def test_an_in_toto_statement_is_about_the_kernel_and_what_it_is_made_of() -> None:
    made = statement(card())
    assert made["_type"] == "https://in-toto.io/Statement/v1"
    assert made["subject"] == [{"name": KERNEL_PATH, "digest": {"sha256": card().image.sha256}}]
    digests = [one["digest"] for one in made["predicate"]["buildDefinition"]["resolvedDependencies"]]
    assert {"sha256": "5" * 64} in digests
    assert {"sha256": "d" * 64} in digests
    json.dumps(made)


def test_the_list_of_components_obeys_the_schema_of_cyclonedx_and_is_the_same_each_time() -> None:
    made = components(card())
    assert made == components(card())
    assert made["bomFormat"] == "CycloneDX"
    assert made["metadata"]["component"]["hashes"][0]["content"] == card().image.sha256
    assert {one["name"] for one in made["components"]} == {"linux source", "gcc"}


def test_differences_name_the_claim_and_both_values() -> None:
    other = card().model_copy(update={"make": ("CC=clang",)})
    assert list(differences(card(), card())) == []
    [line] = differences(other, card())
    assert line == "make: the card has ['CC=clang'], and here it is ['ARCH=x86_64', 'CC=gcc']"


def test_a_card_is_shown_with_its_patches_and_what_it_needs(root: Path) -> None:
    text = "\n".join(card_lines(find_card(str(root / KERNEL_PATH), None)))
    for part in (
        "`kdyno verify` proves them",
        "fast.patch",
        "popcnt",
        "STACKPROTECTOR",
        "all 10 functions",
        "not confirmed on a processor",
    ):
        assert part in text


def test_functions_are_compared_by_name_address_and_size() -> None:
    before = "01 02 t a\n10 04 T b\n20 04 t b\n30 01 D data\n"
    assert compare_code(before, before).is_same
    moved = compare_code(before, before.replace("10 04 T b", "12 04 T b"))
    assert (moved.functions, moved.moved, moved.resized) == (3, 1, 0)
    gone = compare_code(before, before.replace("01 02 t a\n", ""))
    assert (gone.moved, gone.resized) == (0, 1)


def test_a_written_card_is_read_as_it_was() -> None:
    assert Card.model_validate_json(card().written()) == card()
