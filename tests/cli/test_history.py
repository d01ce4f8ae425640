"""`kdyno history` over the runs of a store."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema

from kdyno.cli.schemas import schema
from tests.cli.conftest import Lab
from tests.unit.history_specimen import REPOSITORY, commit, fill


def slower_from_3(kernel: int, *_: object) -> float:
    return 1040.0 if kernel >= 3 else 1000.0


def test_the_table_has_the_change_with_its_commands(lab: Lab, tmp_path: Path) -> None:
    fill(tmp_path / "store", 5, ["lat_pipe.roundtrip"], slower_from_3).close()
    result = lab("history", "--store", f"sqlite:///{tmp_path}/store")
    assert (result.status, result.err) == (0, "")
    first, _, change, benchmarks, bisect, explain = result.out.splitlines()
    assert first == "5 runs, 5 kernels on 1 axis, 1 change"
    before, after = (f"v6.13-rc1-{kernel}-g{commit(kernel)[:12]}" for kernel in (2, 3))
    assert change == f"{before} -> {after}: 2 worse, 0 better; model: qemu max"
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
