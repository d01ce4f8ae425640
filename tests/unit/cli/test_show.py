"""`kdyno show`: what two hosts compare where their runs of one image don't come to the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kdyno.cli.main import main
from kdyno.kernel.image import ImageFile
from tests.unit import specimen


def test_the_digests_of_what_was_booted_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = specimen.run_record(blocks=1)
    files: dict[ImageFile, str] = {"bzImage": "b" * 64, "vmlinux": "e" * 64, "config": "c" * 64}
    first, *others = run.variants
    [image] = first.images
    first = first.model_copy(update={"images": (image.model_copy(update={"files": files}),)})
    specimen.report(tmp_path, run.model_copy(update={"variants": (first, *others)}), boots=[])
    assert main(["show", "latest", "--state", str(tmp_path)]) == 0
    lines = [line.strip() for line in capsys.readouterr().out.splitlines()]
    assert [line for line in lines if " sha256 " in line] == [
        f"bzImage sha256 {'b' * 64}",
        f"vmlinux sha256 {'e' * 64}",
    ]
    assert main(["show", "latest", "--json", "--state", str(tmp_path)]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert [variant["images"][0]["files"] for variant in shown["run"]["variants"]] == [files, {}, {}]
