"""The pages of a history in a browser: they draw, filter, sort, are accessible, and load nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from kdyno.judge.history.changes import history
from kdyno.report.history_html import INDEX, write_pages
from tests.e2e.test_browser import browser, violations
from tests.unit.history_specimen import commit, fill
from tests.unit.served_site import served

__all__ = ["browser"]
HOSTILE = "lat_</script><img src=x onerror=document.title=1>.a|b`c"
NAMES = ["lat_b10.x", "lat_b9.x", HOSTILE]
KERNELS = 30
TOKEN = "0123456789abcdef0123"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    def cost(kernel: int, variant: str, name: str, block: int) -> float:
        level = 1000 * (1.1 if kernel >= 20 and name == HOSTILE else 1) * (0.9 if variant.startswith("clang") else 1)
        return level * (1 + block / 100)

    directory = tmp_path_factory.mktemp("history")
    with fill(directory / "store", KERNELS, NAMES, cost) as store:
        write_pages(history(store.series()), directory / "pages")
    return directory / "pages"


@pytest.fixture
def opened(browser: Any, pages: Path) -> Iterator[Any]:
    """Returns a function that opens a page; at the end nothing may have been said or requested."""
    said: list[str] = []
    requests: list[str] = []
    contexts: list[Any] = []

    def open_page(name: str, width: int = 1280, **settings: Any) -> Any:
        context = browser.new_context(viewport={"width": width, "height": 900}, **settings)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(name if name.startswith("http://127.0.0.1:") else (pages / name).as_uri())
        return page

    yield open_page
    assert said == []
    assert {url for url in requests if not url.startswith((pages.as_uri(), "http://127.0.0.1:"))} == set()
    for context in contexts:
        context.close()


def names(page: Any) -> list[str]:
    shown: list[str] = page.locator("#benchmarks tbody tr:visible a").all_inner_texts()
    return shown


def chart_page(pages: Path) -> str:
    return next(path.name for path in sorted(pages.glob("*-*.html")) if HOSTILE[:4] in path.read_text())


def test_the_index_filters_and_sorts_by_keyboard(opened: Any) -> None:
    page = opened(INDEX)
    assert names(page) == NAMES
    button = page.locator("#benchmarks thead button").first
    button.focus()
    page.keyboard.press("Enter")
    assert names(page) == [HOSTILE, "lat_b9.x", "lat_b10.x"]
    page.keyboard.press("Enter")
    assert names(page) == ["lat_b10.x", "lat_b9.x", HOSTILE]
    page.locator("#filter").fill("B9")
    assert names(page) == ["lat_b9.x"]
    page.locator("#filter").fill("")
    page.locator("#changed").check()
    assert names(page) == [HOSTILE]
    page.locator("#benchmarks tbody a:visible").click()
    expect(page.locator("h1")).to_have_text(HOSTILE)


def test_the_chart_draws_a_line_for_each_recipe_and_arrow_keys_read_it(opened: Any, pages: Path) -> None:
    page = opened(chart_page(pages))
    expect(page.locator("#chart[data-drawn=yes] canvas")).to_have_count(1)
    expect(page.locator(".u-legend .u-series:visible")).to_have_count(3)
    page.locator("#chart").focus()
    page.keyboard.press("Home")
    page.keyboard.press("ArrowRight")
    where = page.locator("#where")
    expect(where).to_contain_text("v6.13-rc1-1-g")
    expect(where).to_contain_text("gcc-12 1,005 instr (")
    assert page.title().startswith("lat_")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (820, "light"), (1280, "dark")])
@pytest.mark.parametrize("kind", ["index", "chart"])
def test_the_pages_are_accessible_and_fit_their_window(
    opened: Any, pages: Path, width: int, scheme: str, kind: str
) -> None:
    page = opened(INDEX if kind == "index" else chart_page(pages), width, color_scheme=scheme, bypass_csp=True)
    if kind == "chart":
        expect(page.locator("#chart[data-drawn=yes] canvas")).to_have_count(1)
    assert violations(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.fixture(scope="module")
def address(pages: Path) -> Iterator[str]:
    """Where a server has the same history."""
    with served(pages.parent / "store", {TOKEN: "ada"}) as port:
        yield f"http://127.0.0.1:{port}/"


def test_a_change_is_triaged_by_keyboard(opened: Any, address: str) -> None:
    page = opened(f"{address}sign-in")
    page.locator("input[name=token]").fill(TOKEN)
    page.keyboard.press("Enter")
    panel = page.locator("#changes details").first
    panel.locator("select").select_option("expected")
    panel.locator("input[name=owner]").fill("Bo")
    panel.locator("input[name=note]").fill("<b>stays</b>")
    page.keyboard.press("Enter")
    expect(panel.locator(".state")).to_have_text("expected")
    expect(panel.locator("p.triage")).to_contain_text("expected, owner Bo: <b>stays</b> ada, ")
    page.locator("#open").check()
    expect(panel).to_be_hidden()
    page.get_by_role("button", name="Sign out").click()
    expect(page.locator("form.triage")).to_have_count(0)


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_two_kernels_are_compared_and_the_pages_of_the_server_are_accessible(
    opened: Any, address: str, width: int, scheme: str
) -> None:
    page = opened(address, width, color_scheme=scheme, bypass_csp=True)
    page.get_by_text("Compare two kernels").click()
    page.locator("input[name=before]").fill(commit(1)[:12])
    page.locator("input[name=after]").fill(commit(25)[:12])
    page.get_by_role("button", name="Compare").click()
    expect(page.locator("#benchmarks tbody tr")).to_have_count(2 * len(NAMES))
    expect(page.locator("#benchmarks tbody tr").first).to_contain_text("+10.0 %")
    for path in (page.url, address, f"{address}runs", f"{address}sign-in"):
        page.goto(path)
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
