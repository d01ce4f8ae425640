"""Naming a store: what is taken, what is refused with one message, and that no password is ever said."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg
import pytest

from kdyno.base.errors import KdynoError, UserError
from kdyno.store.errors import StoreUnreachable
from kdyno.store.store import Store
from kdyno.store.url import StoreFileUnfit, StoreUrlInvalid, parse, sqlite_file

SECRET = "hush"


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///x.sqlite", "x.sqlite"),
        ("sqlite:////abs/a b.sqlite", "/abs/a b.sqlite"),
        ("sqlite:///x.sqlite?mode=ro", "x.sqlite"),
        ("sqlite:///file:/abs/a%20b?mode=rw&uri=true", "/abs/a b"),
    ],
)
def test_a_file_of_sqlite_is_known_by_its_path(url: str, path: str) -> None:
    store = parse(url)
    assert (store.path, store.where) == (Path(path), path)


@pytest.mark.parametrize("url", ["postgresql://kdyno@[::1]:5433/db", "postgresql:///db", "postgres://h/db?host=/run"])
def test_servers_may_have_any_address(url: str) -> None:
    store = parse(url)
    assert store.path is None
    assert store.url.drivername == "postgresql+psycopg"
    assert "db" in store.where


@pytest.mark.parametrize(
    "url",
    [
        *(
            "",
            "store.sqlite",
            "postgresql",
            "://",
            "sqlite",
            "sqlite:/x",
            "sqlite://",
            "sqlite:///",
            "sqlite://x.sqlite",
        ),
        *("sqlite:///:memory:", "sqlite:///file::memory:?uri=true", "sqlite:///file:x", "sqlite:///x?mode=memory"),
        *("sqlite:///x?mode=ro&mode=rw", "sqlite:///x?timeout=abc", "sqlite:///x?vfs=unix-none", "sqlite:///x\0y"),
        *("sqlite:///x?cache=shared", "sqlite:///x?nolock=1&uri=true", "sqlite+aiosqlite:///x", "sqlite:///x\nrm"),
        *("postgresql://h:abc/x", "postgresql://h:99999999/x", "postgresql://h:0/x", "postgresql://h:-1/x"),
        *(
            f"postgresql://h:{'9' * 5000}/x",
            "postgresql://[::1/x",
            "postgresql+asyncpg://h/x",
            "mysql://h/x",
            "x" * 10**6,
        ),
    ],
    ids=lambda url: repr(url)[:40],
)
def test_what_names_no_store_is_one_message(url: str) -> None:
    with pytest.raises(StoreUrlInvalid) as invalid:
        parse(url)
    assert invalid.value.exit_code == 1
    assert len(str(invalid.value)) < 6000
    assert "postgresql://" in invalid.value.advice


MALFORMED = [
    "kdyno:hush@host/db",
    "postgresql:kdyno:hush@host/db",
    "postgresql:/kdyno:hush@host/db",
    "postgresql//kdyno:hush@host/db",
    "postgresql://kdyno:hush",
    "postgresql://kdyno:hush/db",
    "postgresql://kdyno:hush@host:port/db",
    "postgresql://kdyno:hush@host:99999999/db",
    "postgresql://kdyno:x@hush@host/db",
    "postgresql://kdyno:x/y@hush/@host/db",
    "postgresql://kdyno:hush@[::1/db",
    "postgresql+asyncpg://kdyno:hush@host/db",
    "mysql://root:hush@host/db",
    "sqlite://kdyno:hush@host/db",
    "postgresql://kdyno:hush\n@host/db",
    "postgresql://kdyno:" + 5000 * "hush" + "@host/db",
]
REFUSED_LATER = [
    "postgresql://kdyno:hush@127.0.0.1:1/db",
    "postgresql://kdyno@127.0.0.1:1/db?password=hush",
    "postgresql://kdyno@127.0.0.1:1/db?password=x&password=hush",
    "postgresql://kdyno:x@127.0.0.1:1/db?sslpassword=hush&sslmode=hushed",
    "postgresql://kdyno:hush@127.0.0.1:1/db?connect_timeout=hush",
    "postgresql://kdyno:hush@127.0.0.1:1/db?nonsense=hush",
    "postgresql://kdyno:hush@127.0.0.1:1/db?port=x",
    "postgresql://kdyno%00:hush@127.0.0.1:1/db",
    "postgresql://kdyno:%00hush@127.0.0.1:1/db",
    "postgresql://kdyno:hush@127.0.0.1:1/db?options=%00hush",
    "postgresql://kdyno:hush@127.0.0.1:1/db?client_encoding=hush",
    "postgresql://kdyno:hush@127.0.0.1:1/db?service=nowhere",
    "postgresql://kdyno:hush@/db?host=/nowhere",
]


@pytest.mark.parametrize("url", [*MALFORMED, *REFUSED_LATER], ids=lambda url: url[:60])
def test_a_password_is_never_said(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGCONNECT_TIMEOUT", "2")
    with pytest.raises(KdynoError) as refused:
        Store(url)
    assert SECRET not in f"{refused.value} {refused.value.advice}"


def test_a_path_that_looks_like_an_option_of_a_url_is_a_path(tmp_path: Path) -> None:
    path = tmp_path / "50%20?mode=ro#.sqlite"
    with Store(sqlite_file(path)) as store:
        assert store.where == str(path)
    assert path.is_file()


def test_a_file_may_hold_the_url(tmp_path: Path) -> None:
    file = tmp_path / "url"
    file.write_text("sqlite:///x.sqlite\n")
    assert parse(f"@{file}") == parse("sqlite:///x.sqlite")
    file.write_text("postgresql://kdyno:hush@host/db\n")
    file.chmod(0o600)
    assert parse(f"@{file}").url.password == SECRET


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660])
def test_a_file_with_a_password_that_others_may_read_is_refused(tmp_path: Path, mode: int) -> None:
    file = tmp_path / "url"
    file.write_text("postgresql://kdyno@host/db?password=hush")
    file.chmod(mode)
    with pytest.raises(StoreFileUnfit, match="it holds a password, and others may read it") as refused:
        parse(f"@{file}")
    assert refused.value.advice == f"chmod 600 {file}"
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"one two", b"@other", b"\xff", b"x" * 5000, None],
    ids=["empty", "two", "@", "bytes", "long", "pipe"],
)
def test_a_file_that_holds_no_url_is_one_message(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "url"
    if content is None:
        os.mkfifo(file)
    else:
        file.write_bytes(content)
    with pytest.raises(UserError, match=str(file)):
        parse(f"@{file}")
    with pytest.raises(StoreFileUnfit, match="/dev/zero: it is not a regular file"):
        parse("@/dev/zero")
    with pytest.raises(StoreFileUnfit, match="No such file"):
        parse(f"@{file}-gone")


def test_what_a_driver_quotes_of_a_password_is_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def quoting(*_: object, **__: object) -> None:
        raise psycopg.OperationalError("could not parse 'host=h password=hush'")

    monkeypatch.setattr("psycopg.connect", quoting)
    with pytest.raises(StoreUnreachable) as refused:
        Store("postgresql://kdyno:hush@h/db")
    assert "could not parse 'host=h password=***'" in str(refused.value)
