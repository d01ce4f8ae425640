"""The server of the history: what it answers, to whom, and what it refuses. Each test asks a real one, by HTTP."""

from __future__ import annotations

import http.client
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlencode

import pytest
from local_fleet import wait_until

from kdyno.base.talk import Talk
from kdyno.report.served import server
from kdyno.report.served.errors import (
    AddressTaken,
    CertificateUnfit,
    NoName,
    NotAnAddress,
    TokensInClear,
    TokensUnfit,
)
from kdyno.report.served.live_history import LiveHistory
from kdyno.report.served.server import Listening, bind
from kdyno.report.served.site import COOKIE, MOST_FORM_BYTES
from kdyno.report.served.tokens import read_tokens
from kdyno.store.artefacts import Artefacts
from kdyno.store.errors import RecordCorrupt
from kdyno.store.store import Store
from kdyno.store.url import parse
from tests.unit.history_specimen import add_run, commit, fill, run_of_kernel
from tests.unit.served_site import served

NAMES = ["lat_b", "lat_</script><img src=x>.a"]
TOKEN, NAME = "0123456789abcdef0123", "ada"


def cost(kernel: int, variant: str, name: str, block: int) -> float:
    del variant
    return 1000 * (1.1 if kernel >= 3 and name == NAMES[0] else 1) * (1 + block / 100)


@dataclass
class Answer:
    status: int
    text: str
    headers: dict[str, str] = field(default_factory=dict)


class Client:
    """Asks the server, as a browser or a script does."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, path: str, form: dict[str, str] | bytes | None = None, **headers: str) -> Answer:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        body = urlencode(form) if isinstance(form, dict) else form
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request("GET" if form is None else "POST", path, body, named)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        return Answer(response.status, text, {name.lower(): value for name, value in response.getheaders()})


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with fill(tmp_path / "store.sqlite", 6, NAMES, cost) as filled:
        yield filled


@pytest.fixture
def ask(store: Store, tmp_path: Path) -> Iterator[Client]:
    assert store.count_records() == (6, 24)
    with served(tmp_path / "store.sqlite", {TOKEN: NAME}) as port:
        yield Client(port)


def change_of(ask: Client) -> dict[str, object]:
    document = json.loads(ask("/history.json").text)
    [change] = document["changes"]
    return dict(change)


def test_every_page_of_the_history_is_there_and_its_links_lead_to_pages(ask: Client) -> None:
    seen: set[str] = set()
    todo = ["/"]
    while todo:
        path = todo.pop()
        seen.add(path)
        answer = ask(path)
        assert answer.status == 200, path
        assert "form-action 'self'" in answer.text or path.startswith("/run-")
        if not path.startswith("/run-"):
            links = {re.sub(r"#.*", "", link) for link in re.findall(r'href="([^"]*)"', answer.text)}
            todo += [
                f"/{link.removeprefix('./')}" for link in links if f"/{link.removeprefix('./')}" not in {*seen, *todo}
            ]
    assert {"/", "/runs", "/sign-in"} < seen
    assert sum(path.startswith("/run-") for path in seen) == 6


def test_answers_keep_other_sites_out(ask: Client) -> None:
    answer = ask("/")
    assert answer.headers["x-frame-options"] == "DENY"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "server" not in answer.headers
    assert ask("/", Host="evil.example").status == 400


def test_two_kernels_are_compared_by_name_or_commit(ask: Client) -> None:
    axis = str(change_of(ask)["axis"])
    answer = ask(
        f"/compare?{urlencode({'axis': axis, 'before': commit(0)[:8], 'after': f'v6.13-rc1-5-g{commit(5)[:12]}'})}"
    )
    assert answer.status == 200
    assert "2 of 4 values differ beyond the margin of 1 %" in answer.text
    assert answer.text.count("+10.0 %") == 2
    assert "lat_&lt;/script&gt;" in answer.text.replace("<wbr>", "")
    missing = ask(f"/compare?{urlencode({'axis': axis, 'before': 'v6.13-rc1-9', 'after': '<b>'})}")
    assert missing.status == 400
    assert "no kernel on this axis has the name or the commit v6.13-rc1-9" in missing.text
    assert ask("/compare?axis=nothing&before=a&after=b").status == 404


def test_who_signs_in_says_what_becomes_of_a_change(ask: Client, store: Store) -> None:
    change = change_of(ask)
    form = {
        "change": str(change["id"]),
        "state": "acknowledged",
        "owner": "Bo <b>",
        "note": "see\x1b[2J mail",
        "page": "x.html",
    }
    assert ask("/triage", form).status == 401
    assert ask("/sign-in", {"token": "wrong"}).status == 403
    signed_in = ask("/sign-in", {"token": TOKEN})
    assert signed_in.status == 303
    cookie = signed_in.headers["set-cookie"]
    assert {"HttpOnly", "SameSite=strict"} <= {part.strip() for part in cookie.split(";")}
    done = ask("/triage", form, Cookie=f"{COOKIE}={TOKEN}")
    assert (done.status, done.headers["location"]) == (303, f"x.html#change-{change['id']}")
    [entry] = store.triage()
    assert (entry.state, entry.owner, entry.author) == ("acknowledged", "Bo <b>", NAME)
    page = ask("/", Cookie=f"{COOKIE}={TOKEN}").text
    assert "owner Bo &lt;b&gt;: see mail" in page
    assert '<form class="triage"' in page
    assert '<form class="triage"' not in ask("/").text


def test_scripts_sign_entries_by_a_header(ask: Client, store: Store) -> None:
    form = {"change": str(change_of(ask)["id"])[:8], "state": "fixed"}
    assert ask("/triage", form, Authorization=f"Bearer {TOKEN}").status == 303
    assert [entry.state for entry in store.triage()] == ["fixed"]


@pytest.mark.parametrize(
    ("form", "headers", "message"),
    [
        ({"change": "", "state": "fixed"}, {}, "the history has no change"),
        ({"change": "ffff", "state": "fixed"}, {}, "the history has no change"),
        ({"state": "nonsense"}, {}, "a state is one of open, acknowledged"),
        ({"state": "fixed", "note": "x" * 4001}, {}, "can&#39;t be recorded of a change: `note`"),
        (b"x" * (MOST_FORM_BYTES + 1), {}, "it has more than 20,000 bytes"),
        (b"\xff=1", {}, "the form can&#39;t be read"),
        ({"state": "fixed"}, {"Origin": "https://evil.example"}, "another site sent it"),
    ],
)
def test_entries_that_are_wrong_or_foreign_are_refused(
    ask: Client, store: Store, form: dict[str, str] | bytes, headers: dict[str, str], message: str
) -> None:
    if isinstance(form, dict):
        form = {"change": str(change_of(ask)["id"])} | form
    answer = ask("/triage", form, Authorization=f"Bearer {TOKEN}", **headers)
    assert answer.status == 400
    assert message in answer.text
    assert store.triage() == []


def test_what_is_not_there_is_said(ask: Client) -> None:
    for path in ("/nothing.html", "/a/b", "/../etc/passwd", "/%2e%2e/x"):
        assert ask(path).status == 404
    assert ask("/run-ffffffffffff.html").status == 400
    assert "no run" in ask("/run-ffffffffffff.html").text


def test_new_runs_are_shown_without_a_restart(ask: Client, store: Store) -> None:
    assert "v6.13-rc1-7-" not in ask("/").text
    add_run(store, run_of_kernel(7), 7, NAMES, cost)
    wait_until(lambda: json.loads(ask("/history.json").text)["runs"] == 7, "the new run is in the history")


def test_a_store_that_cannot_be_read_any_more_is_said_once_it_was_tried(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = LiveHistory(parse(f"sqlite:///{tmp_path}/store.sqlite"))

    def refuse(_: LiveHistory) -> None:
        raise RecordCorrupt(where="the store", record="boot 7", why="a number is none")

    monkeypatch.setattr(LiveHistory, "_compute", refuse)
    add_run(store, run_of_kernel(7), 7, NAMES, cost)
    assert live.current().report.runs == 6
    renewal = live._renewal
    assert renewal
    renewal.join()
    with pytest.raises(RecordCorrupt, match="boot 7"):
        live.current()
    assert live.current().report.runs == 6


@pytest.mark.parametrize(
    ("text", "mode", "why"),
    [
        (f"{NAME} {TOKEN}\n", 0o644, "others may read it"),
        (f"{NAME}\n", 0o600, "line 1 is not NAME TOKEN"),
        ("# nobody\n\n", 0o600, "it has no token"),
        (f"{NAME} short\n", 0o600, "the token in line 1 has fewer than 20 characters"),
        (f"{NAME} {TOKEN}\nbo {TOKEN}\n", 0o600, "line 2 has the token of another line"),
    ],
)
def test_a_file_of_tokens_is_for_one_person_a_line_and_secret(tmp_path: Path, text: str, mode: int, why: str) -> None:
    path = tmp_path / "tokens"
    path.write_text(text)
    path.chmod(mode)
    with pytest.raises(TokensUnfit, match=why):
        read_tokens(path)


def test_tokens_do_not_cross_a_network_in_clear(tmp_path: Path) -> None:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"{NAME} {TOKEN}\n")
    tokens.chmod(0o600)
    store = parse(f"sqlite:///{tmp_path}/store.sqlite")
    with pytest.raises(TokensInClear):
        server.serve(store, Artefacts(tmp_path), Listening("0.0.0.0:0"), tokens, Talk(quiet=True))


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0"])
def test_a_server_on_all_addresses_has_a_name(tmp_path: Path, address: str) -> None:
    with pytest.raises(NoName, match="would answer nobody"):
        server.serve(parse(f"sqlite:///{tmp_path}/s"), Artefacts(tmp_path), Listening(address), None, Talk(quiet=True))


def test_an_address_or_a_certificate_that_is_none_is_refused(tmp_path: Path) -> None:
    for text in ("8420", "localhost:", "localhost:99999", ":1"):
        with pytest.raises(NotAnAddress):
            bind(Listening(text))
    with bind(Listening("127.0.0.1:0")) as bound, pytest.raises(AddressTaken, match="in use"):
        bind(Listening(f"127.0.0.1:{bound.getsockname()[1]}"))
    (tmp_path / "cert.pem").write_text("no certificate")
    pair = Listening("127.0.0.1:0", certificate=tmp_path / "cert.pem", key=tmp_path / "key.pem")
    with pytest.raises(CertificateUnfit):
        server.serve(parse(f"sqlite:///{tmp_path}/s"), Artefacts(tmp_path), pair, None, Talk(quiet=True))
