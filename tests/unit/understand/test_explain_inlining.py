from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from kdyno.base import debuginfo
from kdyno.base.debuginfo import CodeFrame
from kdyno.understand.explain import line_tables
from kdyno.understand.explain.inlining import inlining
from kdyno.understand.explain.model import Inlining
from kdyno.understand.explain.rows import sentence
from tests.unit.explain_specimen import Kernel, pair


def sentences(before: Kernel, after: Kernel) -> list[str]:
    return [sentence(claim, "op") for claim in inlining(before.measured(), after.measured())]


def test_inlining_that_appears_is_named() -> None:
    assert sentences(*pair()) == ["fput seems inlined into ksys_read (12 calls/op gone)"]


def test_inlining_that_went_is_named() -> None:
    before, after = pair()
    assert sentences(after, before) == ["fput seems no longer inlined into ksys_read (12 calls/op came)"]


def test_a_call_that_another_function_makes_now_is_no_inlining() -> None:
    before = Kernel().function("a", 50, calls={"f": 1}).function("b", 50).function("f", 10)
    after = Kernel().function("a", 60, size=200).function("b", 50, calls={"f": 1}).function("f", 10)
    assert sentences(before, after) == []


def test_a_call_that_is_made_no_more_is_no_inlining() -> None:
    before = Kernel().function("a", 50, calls={"f": 1}).function("f", 10)
    assert sentences(before, Kernel().function("a", 45, size=200)) == []


def test_a_call_that_is_made_no_more_is_no_inlining_though_the_caller_grew_a_little() -> None:
    before = Kernel().function("a", 50, calls={"f": 1}).function("f", 100)
    assert sentences(before, Kernel().function("a", 52, size=200)) == []


def test_a_caller_of_the_same_size_has_the_same_code() -> None:
    before = Kernel().function("a", 50, calls={"f": 1}).function("f", 10)
    assert sentences(before, Kernel().function("a", 90)) == []


def test_what_two_functions_lose_to_each_other_ends() -> None:
    before = Kernel().function("a", 50, calls={"b": 1}).function("b", 50, calls={"a": 1})
    assert sentences(before, Kernel().function("c", 100, size=200)) == []


def test_a_chain_of_inlining_names_every_link() -> None:
    before = Kernel().function("a", 50, calls={"b": 1}).function("b", 20, calls={"c": 1}).function("c", 10)
    assert sentences(before, Kernel().function("a", 75, size=200)) == [
        "b seems inlined into a (1 calls/op gone)",
        "c seems inlined into b (1 calls/op gone)",
    ]


def test_a_clone_is_not_another_callee() -> None:
    before = Kernel().function("a", 50, calls={"f": 1}).function("f", 10)
    after = Kernel().function("a", 51, size=200, calls={"f.constprop.0": 1}).function("f.constprop.0", 10)
    assert sentences(before, after) == []


def test_calls_that_are_too_rare_to_matter_are_left_out() -> None:
    before = Kernel().function("a", 50, calls={"f": 0.002}).function("f", 10)
    assert sentences(before, Kernel().function("a", 60, size=200)) == []


@pytest.mark.parametrize(
    ("confirmed", "expected"),
    [
        (True, "fput is inlined into ksys_read (12 calls/op gone, by the line tables)"),
        (False, "fput seems inlined into ksys_read (12 calls/op gone, not in the line tables)"),
    ],
)
def test_what_line_tables_say_is_said(confirmed: bool, expected: str) -> None:
    claim = Inlining(caller="ksys_read", callee="fput", calls=12, appeared=True, confirmed=confirmed)
    assert sentence(claim, "op") == expected


def test_line_tables_confirm_what_they_show(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    def chains(addresses: list[int], vmlinux: Path) -> list[list[str]]:  # noqa: ARG001
        asked.extend(addresses)
        return [["ksys_read"], ["fput", "fdput", "ksys_read"]]

    monkeypatch.setattr(line_tables, "has_line_tables", lambda _: True)
    monkeypatch.setattr(line_tables, "chains", chains)
    claims = [
        Inlining(caller="ksys_read", callee=callee, calls=1, appeared=True, confirmed=None)
        for callee in ("fput", "never")
    ]
    checked = line_tables.confirm_inlining(claims, pair()[1].measured(), tmp_path / "vmlinux")
    assert [claim.confirmed for claim in checked] == [True, False]
    assert asked


def test_without_line_tables_nothing_is_confirmed(tmp_path: Path) -> None:
    vmlinux = tmp_path / "vmlinux"
    vmlinux.write_bytes(b"not an ELF file")
    claim = Inlining(caller="ksys_read", callee="fput", calls=1, appeared=True, confirmed=None)
    assert line_tables.confirm_inlining([claim], pair()[1].measured(), vmlinux) == [claim]


def test_a_function_is_called_as_in_the_source_even_where_the_file_has_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def frames(vmlinux: Path, addresses: Iterable[int]) -> list[tuple[CodeFrame, ...]]:  # noqa: ARG001
        return [
            (CodeFrame("fput.isra.0", "a.c", 1, 2), CodeFrame("ksys_read", "b.c", 3, 4)),
            (CodeFrame("", "", 0, 0),),
        ]

    vmlinux = tmp_path / "vmlinux"
    vmlinux.write_bytes(b"\x7fELF\x02\x01 cut off")
    assert line_tables.chains([0x10, 0x20], vmlinux) == []
    monkeypatch.setattr(debuginfo, "frames", frames)
    assert line_tables.chains([0x10, 0x20], vmlinux) == [["fput", "ksys_read"], [""]]
