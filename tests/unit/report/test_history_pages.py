"""The pages of a history, without a browser; tests/e2e/test_history_pages.py opens them in one."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from kdyno.judge.history.changes import history
from kdyno.judge.history.model import History
from kdyno.report import packing
from kdyno.report.history_html import INDEX, HistoryPages, NotADirectory, write_pages
from tests.unit.history_specimen import add_run, fill, run_of_kernel

HOSTILE = "lat_</script><script>x.a|b`c\x1b[2J\u202e"
NAMES = [HOSTILE, "lat_pipe.roundtrip"]


def cost(kernel: int, variant: str, name: str, block: int) -> float:
    del block
    return 1000 * (1.1 if kernel >= 3 and name == HOSTILE else 1) * (0.9 if variant.startswith("clang") else 1)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Two axes: six kernels, and a kernel on another machine."""
    with fill(tmp_path_factory.mktemp("history") / "store", 6, NAMES, cost) as store:
        other = run_of_kernel(9, machine={"type": "qemu", "cpu": "</style><script>y</script>"})
        add_run(store, other.model_copy(update={"created": run_of_kernel(0).created}), 9, NAMES[1:], cost)
        return history(store.series())


@pytest.fixture(scope="module")
def pages(made: History) -> dict[str, str]:
    pages = HistoryPages(made)
    return {name: pages.render(name) for name in pages.names}


def packed(text: str) -> dict[str, Any]:
    [content] = re.findall(r'<script type="application/octet-stream" id="data">([^<]*)</script>', text)
    data: dict[str, Any] = json.loads(packing.unpack(content))
    return data


def test_there_is_an_index_for_each_axis_and_a_page_for_each_benchmark_on_it(
    made: History, pages: dict[str, str]
) -> None:
    newest, other = made.axes
    expected = {INDEX, f"axis-{other.id}.html", f"{newest.id}-0.html", f"{newest.id}-1.html", f"{other.id}-0.html"}
    assert pages.keys() == expected
    assert list(pages)[-1] == INDEX, "it comes last, when what it links to is there"
    for text in pages.values():
        links = set(re.findall(r'href="([^"]*)"', text))
        assert links <= expected
        assert not re.findall(r"(?:src|action|data)=\"", text)


def test_the_chart_has_every_point_with_its_interval_and_the_changes(made: History, pages: dict[str, str]) -> None:
    data = packed(pages[f"{made.axes[0].id}-0.html"])
    assert len(data["kernels"]) == 6
    assert data["changes"] == [[3, True]]
    assert [line["recipe"] for line in data["lines"]] == ["gcc-12", "clang-19-thinlto"]
    for line in data["lines"]:
        assert line["kernel"] == list(range(6))
        assert all(
            low <= value <= high for low, value, high in zip(line["low"], line["value"], line["high"], strict=True)
        )


def test_hostile_names_are_text_and_the_policy_names_every_script(pages: dict[str, str]) -> None:
    for text in pages.values():
        shown = re.sub(r'<script type="application/octet-stream".*?</script>', "", text)
        scripts = re.findall(r"<script>(.*?)</script>", shown, flags=re.DOTALL)
        hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
        [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', text)
        assert policy.startswith("default-src 'none'; ")
        assert re.findall(r"script-src ([^;]*)", policy) == [" ".join(f"'sha256-{one}'" for one in hashes)]
        assert shown.count("<script") == len(scripts)
        assert not set(text) & set("\x1b\u202e")
    assert "lat_&lt;/script&gt;" in pages[INDEX].replace("<wbr>", "")


def test_a_store_without_kernels_has_an_index_that_says_so(tmp_path: Path) -> None:
    with fill(tmp_path / "store", 0, NAMES, cost) as store:
        empty = history(store.series())
    assert write_pages(empty, tmp_path / "pages") == 1
    assert "No run of the store has a kernel" in (tmp_path / "pages" / INDEX).read_text()


def test_a_file_in_the_place_of_the_directory_is_refused(made: History, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectory, match="File exists"):
        write_pages(made, tmp_path / "file")


@pytest.mark.parametrize(("name", "stem"), [("uplot.min.js", "uplot"), ("uplot-style.css", "uplot-style")])
def test_uplot_is_the_one_whose_origin_is_on_record(name: str, stem: str) -> None:
    content = (packing.TEMPLATES / name).read_bytes()
    origin = tomllib.loads((packing.TEMPLATES / f"{stem}.toml").read_text(encoding="utf-8"))
    assert hashlib.sha256(content).hexdigest() == origin["sha256"], "tools/update-scripts"
    assert origin["url"].endswith(f"/uplot-{origin['version']}.tgz")
    assert (packing.TEMPLATES / f"{stem}.LICENSE").read_text().startswith(f"The {origin['licence']} License")
