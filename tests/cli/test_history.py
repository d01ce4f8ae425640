"""`kdyno history` over the runs of a store."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest

from kdyno.cli.schemas import schema
from tests.cli.conftest import Lab
from tests.unit.history_specimen import REPOSITORY, add_run, commit, fill, run_of_kernel


def slower_from_3(kernel: int, *_: object) -> float:
    return 1040.0 if kernel >= 3 else 1000.0


def test_the_table_has_the_change_with_its_commands(lab: Lab, tmp_path: Path) -> None:
    fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3).close()
    result = lab("history", "--store", f"sqlite:///{tmp_path}/store")
    assert (result.status, result.err) == (0, "")
    first, _, change, triage, benchmarks, bisect, explain = result.out.splitlines()
    assert first == "5 runs, 5 kernels on 1 axis, 1 change"
    before, after = (f"v6.13-rc1-{kernel}-g{commit(kernel)[:12]}" for kernel in (2, 3))
    assert change == f"{before} -> {after}: 2 worse, 0 better; model: qemu max"
    assert re.fullmatch(r"  change [0-9a-f]{12}: open", triage)
    assert benchmarks.strip() == "lat_pipe.roundtrip +4.0 % (gcc-12), lat_pipe.roundtrip +4.0 % (clang-19-thinlto)"
    assert bisect.startswith(f"  bisect:  kdyno bisect '{REPOSITORY}#{commit(2)[:12]}..{commit(3)[:12]}' -t lat_pipe ")
    assert explain.startswith("  explain: kdyno ab ")


def test_the_json_is_as_its_schema_says_and_pages_are_written_beside_it(lab: Lab, tmp_path: Path) -> None:
    fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3).close()
    result = lab("history", "--store", f"sqlite:///{tmp_path}/store", "--json", "--html", str(tmp_path / "pages"))
    document = json.loads(result.out)
    jsonschema.Draft202012Validator(schema("history")).validate(document)
    assert len(document["changes"]) == 1
    assert f"2 pages: {tmp_path}/pages/index.html" in result.err
    assert len(list((tmp_path / "pages").iterdir())) == 2


def test_recordings_have_no_kernel_of_a_known_source(lab: Lab) -> None:
    lab.recording.add("same")
    assert lab("run", lab.experiment("same"), "-q").status == 0
    result = lab("history")
    assert result.out == "1 run, 0 kernels on 0 axes, 0 changes\n1 run without a kernel of a known source\n"


def test_a_change_gets_a_state_and_an_owner_which_stay_when_its_range_gets_smaller(lab: Lab, tmp_path: Path) -> None:
    store = fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3, kernels_left_out=(2,))
    words = ("history", "--store", f"sqlite:///{tmp_path}/store")
    change = json.loads(lab(*words, "--json").out)["changes"][0]
    assert change["triage"] is None
    done = lab(*words, "--triage", change["id"][:6], "acknowledged", "--owner", "Ada", "--note", "a\x1b[2Jb")
    assert (done.status, done.out) == (0, "")
    assert f"{change['id']} v6.13-rc1-1-g" in done.err
    add_run(store, run_of_kernel(2), 2, ["lat_pipe.roundtrip"], slower_from_3)
    store.close()
    smaller = json.loads(lab(*words, "--json").out)["changes"][0]
    assert smaller["before"]["identity"] == f"git:{commit(2)}"
    assert (smaller["triage"]["state"], smaller["triage"]["owner"]) == ("acknowledged", "Ada")
    assert f"change {smaller['id']}: acknowledged, Ada (" in lab(*words).out
    assert smaller["triage"]["note"] == "ab"
    assert smaller["id"] not in lab(*words, "--open").out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--triage", "beef", "fixed"), "the history has no change with an id that begins with beef"),
        (("--triage", "beef"), "argument --triage: expected 2 arguments"),
    ],
)
def test_triage_of_nothing_is_refused(lab: Lab, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3).close()
    result = lab("history", "--store", f"sqlite:///{tmp_path}/store", *words)
    assert result.status == 1
    assert message in result.err


def test_an_unknown_state_and_a_note_that_is_too_long_are_refused(lab: Lab, tmp_path: Path) -> None:
    fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3).close()
    words = ("history", "--store", f"sqlite:///{tmp_path}/store")
    change = json.loads(lab(*words, "--json").out)["changes"][0]
    for state, note, which in (("fixed", "x" * 4001, "note"), ("fixd", "", "state")):
        result = lab(*words, "--triage", change["id"], state, "--note", note)
        assert result.status == 1
        assert f"this can't be recorded of a change: `{which}`: " in result.err
